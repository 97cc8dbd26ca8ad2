"""Computed torque: the inverse dynamics at the acceleration that brings each joint back to its target."""

from __future__ import annotations

import numpy as np

from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.physics.inverse_model import InverseModel
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class ComputedTorque(Controller[JointAction]):
    """τ = model(q, q̇, q̈* + Kd (q̇* - q̇) + Kp (q* - q)).

    Args:
        robot: the ideal robot.
        model: any inverse dynamics: a `RigidBody`, a `ParametricModel` of an identified card, a hybrid network.
        stiffness: Kp, (n,) or (trials, n) [1/s²]; the square of each joint's natural frequency.
        damping: Kd, the same shape [1/s]; default: critical, 2 √Kp.
    """

    def __init__(self, robot: Robot, model: InverseModel, stiffness: Array, damping: Array | None = None):
        self.model = model
        self.stiffness = np.asarray(stiffness, dtype=float)
        self.damping = 2.0 * np.sqrt(self.stiffness) if damping is None else np.asarray(damping, dtype=float)
        for name, gain in (("stiffness", self.stiffness), ("damping", self.damping)):
            if gain.shape[-1:] != (robot.n,) or not np.all(np.isfinite(gain)) or np.any(gain < 0.0):
                raise RetorqueError(f"{name} must be {robot.n} finite numbers >= 0, one a joint")

    def command(self, state: State, action: JointAction) -> Command:
        wanted = self.stiffness * (action.position - state.position) + self.damping * (action.velocity - state.velocity)
        if action.acceleration is not None:
            wanted = wanted + action.acceleration
        return Command(torque=self.model.torque(state.position, state.velocity, wanted), gripper=action.gripper)
