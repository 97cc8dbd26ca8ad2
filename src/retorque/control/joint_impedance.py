"""Joint impedance: a spring and a damper to each joint's target, on top of the ideal robot's bias torque."""

from __future__ import annotations

import numpy as np

from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class JointImpedance(Controller[JointAction]):
    """τ = Kp (q* - q) + Kd (q̇* - q̇) + h(q, q̇).

    Args:
        robot: the ideal robot.
        stiffness: Kp, (n,) or (trials, n) [N·m/rad].
        damping: Kd, the same shape [N·m·s/rad].
    """

    def __init__(self, robot: Robot, stiffness: Array, damping: Array):
        self.body = RigidBody(robot)
        self.stiffness = np.asarray(stiffness, dtype=float)
        self.damping = np.asarray(damping, dtype=float)
        for name, gain in (("stiffness", self.stiffness), ("damping", self.damping)):
            if gain.shape[-1:] != (robot.n,) or not np.all(np.isfinite(gain)) or np.any(gain < 0.0):
                raise RetorqueError(f"{name} must be {robot.n} finite numbers >= 0, one a joint")

    def command(self, state: State, action: JointAction) -> Command:
        spring = self.stiffness * (action.position - state.position)
        damper = self.damping * (action.velocity - state.velocity)
        torque = spring + damper + self.body.bias(state.position, state.velocity)
        return Command(torque=torque, gripper=action.gripper)
