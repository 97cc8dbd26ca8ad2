"""External torque of a torque-controlled arm without motor models: from the torque it reports."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from retorque.physics.rigid_body import RigidBody
from retorque.robots.state import State
from retorque.work.array import Array


class TorqueReport:
    """Quasi-static or momentum estimate from `State.torque`, low-passed.

    Args:
        body: the arm's algebra.
        trials: robots served at once.
        timestep: control period [s].
        momentum: whether inertia and Coriolis torques are taken into account.
        bandwidth: of the low-pass or observer [1/s].
    """

    def __init__(self, body: RigidBody, trials: int, timestep: float, momentum: bool = True, bandwidth: float = 40.0):
        self._body, self._momentum, self.timestep = body, momentum, timestep
        self._share = 1.0 - np.exp(-bandwidth * timestep)
        self.torque = np.zeros((trials, body.robot.n))
        """(trials, n) [N·m]"""
        self._before: Array | None = None

    def update(self, state: State) -> Array:
        """External torque (trials, n) [N·m] at a report."""
        model, data = self._body.model, self._body.data
        q, qd, torque = (np.reshape(x, self.torque.shape) for x in (state.position, state.velocity, state.torque))
        seen = np.empty_like(self.torque)
        momentum = np.empty_like(self.torque)
        for t in range(len(q)):
            if not self._momentum:
                seen[t] = pin.computeGeneralizedGravity(model, data, q[t]) - torque[t]
                continue
            mass = np.triu(pin.crba(model, data, q[t]))
            momentum[t] = (mass + np.triu(mass, 1).T) @ qd[t]
            coriolis = pin.computeCoriolisMatrix(model, data, q[t], qd[t])
            seen[t] = pin.computeGeneralizedGravity(model, data, q[t]) - coriolis.T @ qd[t] - torque[t]
        if self._momentum:
            if self._before is None:
                self._before = momentum
                return self.torque
            seen += (momentum - self._before) / self.timestep
            self._before = momentum
        self.torque = self.torque + self._share * (seen - self.torque)
        return self.torque
