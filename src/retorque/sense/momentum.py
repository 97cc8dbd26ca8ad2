"""External torque by a momentum observer: also right when the robot moves fast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.external_torque import QuasiStatic, TorqueEstimate, TorqueSettings
from retorque.work.array import Array

BEHIND = 0.06
"""Time over which what the observer lags behind is averaged, so that noise does not count [s]."""


class Momentum(QuasiStatic):
    """τ_ext = d(M q̇)/dt - (τ_passed + Cᵀ q̇ - g), followed with a bandwidth of its own instead of a moving average.

    A free base is taken as standing still at its reported orientation.

    Args:
        robot: its card names the motors, unless the drive's own torque is the signal.
        trials: robots served at once.
        timestep: control period [s].
        settings: signal, noise; `smoothing` is not used.
        used: (n,) joints that matter.
        joints: the motors' constants.
        bandwidth: of the observer [1/s].
    """

    def __init__(
        self,
        robot: Robot,
        trials: int = 1,
        timestep: float = 0.02,
        settings: TorqueSettings | None = None,
        used: Array | None = None,
        joints: JointMotors | None = None,
        bandwidth: float = 40.0,
    ):
        super().__init__(robot, trials, timestep, settings, used, joints)
        self._body = RigidBody(welded(robot), armature=self.joints.armature)
        self._share = 1.0 - np.exp(-bandwidth * timestep)
        self._slow = 1.0 - np.exp(-timestep / BEHIND)
        self._residual, self._behind = np.zeros(self._shape), np.zeros(self._shape)
        self._momentum: Array | None = None
        self._world_gravity = np.array(robot.gravity, dtype=float)

    def reset(self, state: State) -> None:
        super().reset(state)
        self._residual[:], self._behind[:] = 0.0, 0.0
        self._momentum = None

    def update(self, state: State, tree: CompiledTree) -> TorqueEstimate:
        self._base_turn = tree.link_pose(self.robot.links[0].name)[1] if self.robot.floating else None
        return super().update(state, tree)

    def _balance(self, q: Array, qd: Array, passed: Array, tree: CompiledTree) -> Array:
        model, data = self._body.model, self._body.data
        momentum, drift = np.empty(self._shape), np.empty(self._shape)
        for t in range(self.trials):
            if self._base_turn is not None:
                model.gravity.linear[:] = self._base_turn[t].T @ self._world_gravity
            mass = np.triu(pin.crba(model, data, q[t]))
            momentum[t] = (mass + np.triu(mass, 1).T) @ qd[t]
            coriolis = pin.computeCoriolisMatrix(model, data, q[t], qd[t])
            drift[t] = coriolis.T @ qd[t] - pin.computeGeneralizedGravity(model, data, q[t])
        if self._momentum is not None:
            seen = (momentum - self._momentum) / self.timestep - passed - drift
            behind = seen - self._residual
            self._residual = self._residual + self._share * behind
            self._behind += self._slow * (behind - self._behind)
        self._momentum = momentum
        return self._residual

    def _lag(self) -> Array:
        return np.asarray(np.square(self._behind))

    def _smoothed(self, external: Array) -> Array:
        return external


def welded(robot: Robot) -> Robot:
    """The same robot with a free base held where it is, its frame as the world's."""
    if not robot.floating:
        return robot
    base = replace(robot.links[0], joint=None, position=(0.0, 0.0, 0.0), quaternion=(1.0, 0.0, 0.0, 0.0))
    return robot.with_links((base, *robot.links[1:]))
