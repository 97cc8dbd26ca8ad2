"""Whether a robot reports the torques that it was sent."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

SHARE, RELATIVE = 0.03, 0.1
"""A report may be off by so much of the joint's limit, and of what was sent."""
LEAST_DELAY = 5
"""Ticks that a report may be late, at least."""


class TorqueCheck:
    """The torques sent last, and how far a report may be from them.

    A report is late by an unknown number of ticks, so it may lie anywhere between the smallest and the largest torque
    that was sent within the longest delay, and a little beyond.

    Args:
        limit: torque limit of each joint, (n,) [N·m].
        shape: of a report, (..., n).
        timestep: control period [s].
        delay: longest delay of a report [s].
    """

    def __init__(self, limit: Array, shape: tuple[int, ...], timestep: float, delay: float):
        self.ticks = max(LEAST_DELAY, round(delay / timestep)) + 1
        self.tolerance = SHARE * limit
        """(n,) [N·m]"""
        self._ring = np.zeros((self.ticks, *shape))
        self._rows = list(self._ring)
        self._lag = min(self.ticks, 3)  # in the middle of the published delays
        self.reset()

    def reset(self) -> None:
        """Nothing has been sent yet."""
        self._count = 0
        self._ring[:] = 0.0

    def pause(self) -> None:
        """Reports were missing: the next ones may tell of torques that somebody else sent meanwhile."""
        if self._count:
            self._rows[0][...] = self.newest
            self._count = 1

    @property
    def ready(self) -> bool:
        """Whether enough was sent to judge a report by."""
        return self._count >= self.ticks

    @property
    def newest(self) -> Array:
        """What was sent last, (..., n) [N·m]."""
        return self._ring[(self._count - 1) % self.ticks]

    def sent(self, torque: Array) -> Array:
        """A torque (..., n) has been sent; what the next report is expected to be near to, (..., n) [N·m]."""
        count, rows, ticks = self._count, self._rows, self.ticks
        rows[count % ticks][...] = torque
        self._count = count = count + 1
        return rows[(count - self._lag) % ticks]

    def wrong(self, torque: Array) -> Array:
        """Which joints' reports are not what was sent, (..., n)."""
        if not self.ready:
            return np.zeros(np.shape(torque), dtype=bool)
        low, high = self._ring.min(axis=0), self._ring.max(axis=0)
        room = self.tolerance + RELATIVE * np.maximum(np.abs(low), np.abs(high))
        return ~((torque >= low - room) & (torque <= high + room))
