"""DeLaN as an identification method: a log in, a black box out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np

from retorque.identify.methods.black_box import BlackBox
from retorque.identify.methods.delan import DeLaNSettings, fit_delan, predict_delan
from retorque.logs.motion import Motion, MotionSource, join
from retorque.physics.friction import Friction
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

MOST = 100_000
"""Samples learnt from: a longer log is thinned, for training passes over all of them hundreds of times."""
NOTE = (
    "DeLaN is a black box: it has no physical parameters, no standard errors, no pseudo-inertia eigenvalues and no "
    "friction (--friction is not used), and nothing to export"
)


@dataclass(frozen=True, kw_only=True)
class DeepLagrangian:
    """Train a DeLaN on a log; torques are measured in each joint's own range."""

    settings: DeLaNSettings = field(default_factory=DeLaNSettings)
    progress: Callable[[int, float], None] | None = None
    """Told the number of finished epochs and the last loss."""

    def fit(self, data: MotionSource, robot: Robot, friction: Friction) -> BlackBox:
        """Learn to predict the torques of a motion; friction has no place in a Lagrangian and is not used."""
        begun = time.perf_counter()
        motion = _thinned(data)
        if motion.n != robot.n:
            raise RetorqueError(f"the log has {motion.n} joints and robot '{robot.name}' has {robot.n}")
        if len(motion) <= 10:
            raise RetorqueError(f"only {len(motion)} usable samples; identification needs a longer motion")
        losses: list[float] = []

        def tell(epoch: int, loss: float) -> None:
            losses.append(loss)
            if self.progress:
                self.progress(epoch, loss)

        model = fit_delan(motion, np.maximum(np.ptp(motion.torque, axis=0), 1e-9), self.settings, tell)
        return BlackBox(
            robot=robot,
            method="delan",
            samples=len(motion),
            predictor=lambda other: predict_delan(model, other),
            note=NOTE,
            details={
                "weights": sum(weight.numel() for weight in model.parameters()),
                "epochs": len(losses),
                "loss": min(losses),
                "training": asdict(self.settings),
                "seconds": time.perf_counter() - begun,
            },
        )


def _thinned(data: MotionSource) -> Motion:
    """At most about MOST samples, spread over the whole log."""
    count = sum(len(piece) for piece in data.chunks())
    stride = max(1, -(-count // MOST))
    return join(piece[::stride].copy() for piece in data.chunks())
