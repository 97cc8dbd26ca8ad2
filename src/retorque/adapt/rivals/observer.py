"""A generalised-momentum disturbance observer whose estimate is fed forward."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.adapt.rivals.bounded import STEADY, Bounded, BoundedSettings
from retorque.physics.rigid_body import RigidBody
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

AHEAD = 1e-4
"""Time over which the momentum's change with the pose is differentiated [s]."""


@dataclass(frozen=True, kw_only=True)
class ObserverSettings(BoundedSettings):
    """Settings of the observer."""

    bandwidth: float = 200.0
    """Of the disturbance estimate [rad/s]."""
    share: float = 0.5
    """Largest disturbance that is fed forward, as a share of the joint's torque limit."""


class Observer(Bounded[ObserverSettings]):
    """Whatever the ideal model cannot explain is a disturbance, and is cancelled (De Luca and Mattone, 2003).

    r = K (p - ∫ (τ + C(q, q̇)ᵀ q̇ - g(q) + r) dt) with p = M(q) q̇ follows the disturbance with a lag of 1/K; the
    correction is -r. It needs neither training nor motion, and knows no difference between friction, payload and touch.
    """

    settings_type = ObserverSettings
    remembered: tuple[str, ...] = ("_sum", "disturbance", "_known")

    @classmethod
    def usual_settings(cls, timestep: float) -> ObserverSettings:
        tuned = ObserverSettings()
        return replace(tuned, bandwidth=min(tuned.bandwidth, STEADY / timestep))

    def _make(self) -> None:
        if not 0.0 < self.settings.bandwidth * self.timestep < 1.0:
            raise RetorqueError(f"the observer's bandwidth must lie between 0 and {1.0 / self.timestep:.0f} rad/s")
        self._body = RigidBody(self.robot)
        self._weightless = RigidBody(replace(self.robot, gravity=(0.0, 0.0, 0.0)))
        self._sum, self.disturbance = self._rows(), self._rows()
        """(trials, n) torque that pushes the robot beside its motors, as far as it is known [N·m]."""
        self._known = np.zeros(self.trials, dtype=bool)

    def reset(self) -> None:
        self._known[:] = False
        self.disturbance[:] = 0.0

    def observe(self, state: State) -> None:
        q, v, torque = state.position, state.velocity, state.torque
        good = np.isfinite(q + v + torque).all(axis=-1)
        if not good.all():
            q, v, torque = (np.where(good[:, None], x, 0.0) for x in (q, v, torque))
        zero, dt, k = np.zeros_like(q), self.timestep, self.settings.bandwidth
        momentum = self._weightless.inverse_dynamics(q, zero, v)
        later = self._weightless.inverse_dynamics(q + AHEAD * v, zero, v)
        # C(q, q̇)ᵀ q̇ - g = (dM/dt) q̇ - h, since dM/dt = C + Cᵀ.
        pull = (later - momentum) / AHEAD - self._body.bias(q, v)
        step = self._sum + dt * (torque + pull + self.disturbance)
        fresh = k * (momentum - step)
        fresh = np.clip(fresh, -self.most, self.most)
        use = (good & self._known)[:, None]
        self.disturbance = np.where(use, fresh, self.disturbance)
        self._sum = np.where(good[:, None], momentum - self.disturbance / k, self._sum)
        self._known = good  # after a gap the estimate goes on from where it was

    def correct(self, state: State, nominal_torque: Array) -> Array:
        return nominal_torque - self.disturbance
