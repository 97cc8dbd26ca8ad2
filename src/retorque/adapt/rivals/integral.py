"""Bounded integral action on the velocity that the robot lacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.adapt.ideal_velocity import IdealVelocity, joint_inertia
from retorque.adapt.rivals.bounded import STEADY, Bounded, BoundedSettings
from retorque.robots.state import State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class IntegralSettings(BoundedSettings):
    """Settings of the integral action."""

    proportional: float = 100.0
    """Torque for each rad/s that is lacking, times the joint's inertia at home [1/s]."""
    integral: float = 800.0
    """The same for each rad that is lacking [1/s²]."""
    memory: float = 2.0
    """Time over which a lacking velocity is forgotten [s]."""


class Integral(Bounded[IntegralSettings]):
    """c = M_d (k_p s + k_i ∫ s dt), s being the velocity that the ideal robot would have gained and this one has not.

    The sum is clamped joint by joint, and what is beyond is forgotten rather than stored up. It knows neither the
    robot's coupling nor any reason for what is lacking: against a wall it presses up to its bound.
    """

    settings_type = IntegralSettings
    remembered: tuple[str, ...] = ("_ideal", "_missing", "_sum")

    @classmethod
    def usual_settings(cls, timestep: float) -> IntegralSettings:
        tuned = IntegralSettings()
        slower = min(1.0, STEADY / (timestep * tuned.proportional))
        return replace(tuned, proportional=slower * tuned.proportional, integral=slower**2 * tuned.integral)

    def _make(self) -> None:
        s, inertia = self.settings, joint_inertia(self.robot)
        self._proportional, self._integral = s.proportional * inertia, s.integral * inertia
        self._ideal = IdealVelocity(self.robot, self.trials, self.timestep, s.memory)
        self._missing, self._sum = self._rows(), self._rows()  # [rad/s], [N·m]

    def reset(self) -> None:
        self._ideal.reset()
        self._missing[:] = 0.0
        self._sum[:] = 0.0

    def carry(self) -> None:
        self._ideal.reset()
        self._missing[:] = 0.0

    def observe(self, state: State) -> None:
        missing = self._ideal.observe(state)
        self._missing = self._ideal.hold(missing, self.most / self._proportional)
        grown = self._sum + self.timestep * self._integral * self._missing
        self._sum = np.clip(grown, -self.most, self.most)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        self._ideal.command(state, nominal_torque)
        added = self._proportional * self._missing + self._sum
        return nominal_torque + np.clip(added, -self.most, self.most)
