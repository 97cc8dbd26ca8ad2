"""The one interface of all identification methods: fit(data, robot, friction) -> a model of the torques."""

from __future__ import annotations

import importlib
from typing import Literal, Protocol, overload

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.torque_model import TorqueModel
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError, unknown

METHODS: dict[str, str] = {
    "ols": "retorque.identify.methods.least_squares:OrdinaryLeastSquares",
    "wls": "retorque.identify.methods.least_squares:WeightedLeastSquares",
    "sdp": "retorque.identify.methods.sdp:SemidefiniteProgram",
    "diffbary": "retorque.identify.methods.differentiable:DiffBary",
    "diffnea": "retorque.identify.methods.differentiable:DiffNEA",
    "delan": "retorque.identify.methods.delan_estimator:DeepLagrangian",
}
"""Where each method's class is; imported when it is asked for, so that optional packages stay optional."""

Physical = Literal["ols", "wls", "sdp", "diffbary", "diffnea"]
"""The methods that give an `Estimate`."""
BLACK_BOXES = ("delan",)
"""The methods that give a `BlackBox`: without parameters, and without friction."""


class Estimator(Protocol):
    """A way to turn a motion into a model."""

    def fit(self, data: MotionSource, robot: Robot, friction: Friction) -> TorqueModel:
        """Learn a robot's torques from a motion."""
        ...


def estimator(method: str) -> Estimator:
    """The estimator of that name, with its default settings."""
    if method not in METHODS:
        raise unknown("identification method", method, METHODS)
    module, name = METHODS[method].split(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        extra = "train" if error.name == "torch" else "identify"
        raise RetorqueError(f"method '{method}' needs {error.name}; run: pip install 'retorque[{extra}]'") from error
    return found()


@overload
def fit(data: MotionSource, robot: Robot, friction: Friction | None = None, method: Physical = "sdp") -> Estimate: ...
@overload
def fit(data: MotionSource, robot: Robot, friction: Friction | None = None, method: str = "sdp") -> TorqueModel: ...
def fit(data: MotionSource, robot: Robot, friction: Friction | None = None, method: str = "sdp") -> TorqueModel:
    """Learn a robot's torques from a motion by the named method."""
    return estimator(method).fit(data, robot, friction or Friction())
