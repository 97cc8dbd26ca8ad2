"""The one rule for when a report is new, late or missing."""

from __future__ import annotations

import math

SETTLED = 3
"""Reports in a row that go on from a time in the past: by then the robot's clock has been set anew."""
TRACKING = 0.02
"""How fast the clock's zero follows stamps that drift."""
FARTHEST = 10**9
"""Ticks ahead beyond which a stamp comes from another clock, which is taken over: eleven days at 1 kHz."""


class Clock:
    """Counts control periods by the stamps of reports.

    A stamp is compared with where the next one is expected; that expectation is averaged over many, so that stamps
    which jitter by less than half a period are all in order. A report that is not newer than the last one is late. A
    clock that was set back goes on after a few reports as if nothing had happened.

    Args:
        timestep: control period [s].
    """

    remembered = ("_zero", "_ticks", "_other", "_settled")

    def __init__(self, timestep: float):
        self.timestep = timestep
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._zero = math.nan  # what the stamp of tick 0 is taken to be [s]
        self._ticks = 0  # number of the newest tick
        self._other = math.nan  # stamp of the newest report that was late [s]
        self._settled = 0

    def ticks_since(self, time: float) -> int:
        """Control periods since the last report that counted: 1 is the next one, more means missed ones, 0 late."""
        if not math.isfinite(time):
            return 0
        dt = self.timestep
        if math.isnan(self._zero):
            self._zero, self._ticks = time, 0
            return 1
        exact = (time - self._zero) / dt - self._ticks
        step = round(exact)
        if step < 1:
            return self._late(time)
        if step > FARTHEST:
            self._zero, self._ticks, self._settled = time, 0, 0
            return FARTHEST
        self._ticks += step
        self._settled = 0
        self._zero += max(TRACKING, 1.0 / (self._ticks + 1)) * (exact - step) * dt
        return step

    def _late(self, time: float) -> int:
        follows = abs(time - self._other - self.timestep) < 0.5 * self.timestep
        self._settled = self._settled + 1 if follows else 0
        self._other = time
        if self._settled < SETTLED:
            return 0
        missed = SETTLED + 1  # the late ones before this one were new reports all along
        self._ticks += missed
        self._zero = time - self._ticks * self.timestep
        self._settled = 0
        return missed
