"""How much of each joint's correction goes out: fades, ramps, and what trips it off."""

from __future__ import annotations

import numpy as np

from retorque.loop.guard.supervisor_settings import SupervisorSettings
from retorque.work.array import Array

AT_ONCE = 0.005
"""Time over which a nominal torque fades that drives the robot [s]."""
EASE = 0.25
"""Time at a limit is forgotten so much slower than it is counted."""


class Fading:
    """A gain between 0 and 1 for every joint.

    Args:
        shape: of a report, (..., n).
        timestep: control period [s].
        settings: of the supervisor.
    """

    def __init__(self, shape: tuple[int, ...], timestep: float, settings: SupervisorSettings):
        self._dt, self._s = timestep, settings
        self.gain = np.zeros(shape)
        """(..., n)"""
        self.nominal_gain = np.ones(shape)
        """(..., n) how much of the nominal torque goes out."""
        self._ramp, self._bad_for = np.zeros(shape), np.zeros(shape)
        self._at_limit, self._rested = np.zeros(shape), np.zeros(shape)
        self.tripped = np.zeros(shape, dtype=bool)
        """(..., n) which joints were at a limit for too long."""
        self.reset()

    def reset(self) -> None:
        """Start from no correction."""
        self.gain[...] = 0.0
        self.nominal_gain[...] = 1.0
        self._ramp[...] = self._dt / max(self._s.enable_ramp, self._dt)
        for array in (self._bad_for, self._at_limit, self._rested, self.tripped):
            array[...] = 0
        self.full = False
        """Whether every joint's correction goes out whole, and nothing counts against it."""

    def advance(self, trusted: Array, out: Array, limited: Array, blind: Array) -> None:
        """Fade a tick further.

        Args:
            trusted: (..., n) where the correction may be believed; elsewhere it is held for a while, then fades.
            out: (..., n) where it fades at once.
            limited: (..., n) where it is at a limit.
            blind: (..., n) where the nominal torque is not the controller's answer to anything real.
        """
        s, dt = self._s, self._dt
        self._note_limits(limited)
        self._bad_for = np.where(trusted, 0.0, self._bad_for + dt)
        out = out | (self._bad_for > s.bridge + 1e-9) | self.tripped
        down = self.gain - dt / max(s.fade, dt)
        up = np.where(trusted, self.gain + self._ramp, self.gain)
        self._ramp = np.where(out & (self.gain > 0.0), dt / max(s.recovery, dt), self._ramp)
        self.gain = np.minimum(np.maximum(np.where(out, down, up), 0.0), 1.0)
        change = np.where(blind, -dt / max(AT_ONCE, dt), dt / max(s.recovery, dt))
        self.nominal_gain = np.minimum(np.maximum(self.nominal_gain + change, 0.0), 1.0)
        self.full = bool(
            (self.gain == 1.0).all() and (self.nominal_gain == 1.0).all() and trusted.all() and not self._at_limit.any()
        )

    def _note_limits(self, limited: Array) -> None:
        """Seconds at a limit trip a joint off; seconds within it bring it back."""
        dt, s = self._dt, self._s
        self._at_limit = np.maximum(self._at_limit + np.where(limited, dt, -EASE * dt), 0.0)
        self._rested = np.where(limited, 0.0, self._rested + dt)
        over = self._at_limit > s.trip_after
        self.tripped = (self.tripped | over) & ~(self._rested > s.rearm)
        self._at_limit = np.where(over, 0.0, self._at_limit)
