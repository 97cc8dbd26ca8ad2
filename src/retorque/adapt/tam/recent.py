"""The last ticks of a batch of robots, newest first, always in one piece."""

from __future__ import annotations

import numpy as np

from retorque.robots.state import State
from retorque.work.array import Array

ROOM = 8
"""How many times the ticks asked for fit into the array: they are moved once in a while instead of every tick."""


class Recent:
    """Positions, velocities and torques as reported, gaps left out; the first report stands for all before it.

    Args:
        ticks: how many are kept.
        trials: robots served at once.
        n: joints.
    """

    def __init__(self, ticks: int, trials: int, n: int):
        self.ticks = ticks
        self._rows = np.zeros((3, ROOM * ticks, trials, n))
        self._position, self._velocity, self._torque = self._rows
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._newest = self._rows.shape[1] - self.ticks
        self._empty = True

    def add(self, state: State) -> None:
        """Take in a report. Rows are filled from the end towards the front, so that the newest comes first."""
        if self._newest == 0:
            self._newest = self._rows.shape[1] - self.ticks
            self._rows[:, self._newest :] = self._rows[:, : self.ticks]
        self._newest -= 1
        where = slice(self._newest, None) if self._empty else self._newest
        self._position[where] = state.position
        self._velocity[where] = state.velocity
        self._torque[where] = state.torque
        self._empty = False

    def last(self, begin: int, end: int) -> Array:
        """Views of the reports from `begin` to before `end` ticks ago, (3, end - begin, trials, n)."""
        return self._rows[:, self._newest + begin : self._newest + end]
