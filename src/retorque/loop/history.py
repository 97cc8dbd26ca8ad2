"""The last ticks of a batch of robots: the one ring of reports, and the one rule for what is missing or not finite."""

from __future__ import annotations

import numpy as np

from retorque.loop.clock import Clock
from retorque.robots.state import State
from retorque.work.array import Array

ROOM = 256
"""Rows beyond those asked for, at least: rows are moved once in a while instead of every tick."""
BRIDGED = 3
"""So many ticks in a row that are missing or not finite are interpolated once the next good one is there."""


class History:
    """Positions, velocities and torques as reported, one row for every control period, oldest first.

    A tick that was missed, and a trial's report that is not finite, repeat that trial's last good report and are not
    valid; a short run of them is interpolated, and then is. What happens to one trial never touches another. Before
    the first report, the first report stands. Rows lie in one of two arrays by turns, so that a reader in another
    thread is not written over.

    Args:
        ticks: how many are kept at least.
        trials: robots served at once.
        n: joints.
        timestep: control period [s].
    """

    remembered = ("_rows", "_valid", "_end", "_current", "total", "time", "_missing", "clock")

    def __init__(self, ticks: int, trials: int, n: int, timestep: float):
        self.ticks, self.trials, self.timestep = ticks, trials, timestep
        self.clock = Clock(timestep)
        length = ticks + max(ticks, ROOM)
        self._rows = np.zeros((2, 3, length, trials, n))
        self._valid = np.zeros((2, length, trials), dtype=bool)
        self._missing = np.zeros(trials, dtype=np.int64)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.clock.reset()
        self._current = 0
        self._end = self.ticks
        self._rows[:] = 0.0
        self._valid[:] = False
        self._missing[:] = BRIDGED  # nothing good came before
        self.total = 0
        """Rows since the start."""
        self.time = -np.inf
        """Stamp of the newest report [s]."""

    @property
    def count(self) -> int:
        """Rows that stand for a control period, up to `ticks`."""
        return min(self.total, self.ticks)

    def add(self, state: State) -> bool:
        """Take in a report; False where it was late or repeated and is left out."""
        step = self.clock.ticks_since(state.time)
        if step == 0:
            return False
        self.time = state.time
        for _ in range(min(step - 1, self.ticks)):
            if self.total:
                self._begin_row()
                self._hold(np.ones(self.trials, dtype=bool))
        self._put(state)
        return True

    def last(self, count: int, back: int = 0) -> Array:
        """Views of `count` rows, oldest first, that end `back` rows before the newest, (3, count, trials, n)."""
        end = self._end - back
        return self._rows[self._current][:, end - count : end]

    def valid(self, count: int, back: int = 0) -> Array:
        """Which of those rows are good, (count, trials)."""
        end = self._end - back
        return self._valid[self._current][end - count : end]

    def _begin_row(self) -> None:
        """Make room for one more row after the newest."""
        if self._end == self._valid.shape[1]:
            old, new = self._current, 1 - self._current
            self._rows[new][:, : self.ticks] = self._rows[old][:, -self.ticks :]
            self._valid[new][: self.ticks] = self._valid[old][-self.ticks :]
            self._current, self._end = new, self.ticks
        self._end += 1
        self.total += 1

    def _put(self, state: State) -> None:
        first = self.total == 0
        self._begin_row()
        k = self._end - 1
        rows, valid = self._rows[self._current], self._valid[self._current]
        rows[0, k], rows[1, k], rows[2, k] = state.position, state.velocity, state.torque
        finite = np.isfinite(rows[:, k])
        if finite.all():
            valid[k] = True
            if first:
                rows[:, :k] = rows[:, k : k + 1]
            if self._missing.any():
                self._bridge(np.ones(self.trials, dtype=bool))
            return
        good = finite.all(axis=(0, 2))
        if first:
            rows[:, :k] = np.where(good[:, None], rows[:, k : k + 1], 0.0)
        self._hold(~good)
        valid[k] = good
        self._bridge(good)

    def _hold(self, which: Array) -> None:
        """The newest row of some trials (trials,) repeats the one before it."""
        k = self._end - 1
        rows = self._rows[self._current]
        rows[:, k, which] = rows[:, k - 1, which]
        self._valid[self._current][k, which] = False
        self._missing[which] += 1

    def _bridge(self, good: Array) -> None:
        """Interpolate short runs of bad rows in the trials whose newest row is good again."""
        rows, valid = self._rows[self._current], self._valid[self._current]
        k = self._end - 1
        for trial in np.flatnonzero(good & (self._missing > 0)):
            length = int(self._missing[trial])
            if length <= BRIDGED and self.total > length + 1 and valid[k - length - 1, trial]:
                share = np.arange(1, length + 1)[:, None] / (length + 1)
                before, after = rows[:, k - length - 1, trial], rows[:, k, trial]
                rows[:, k - length : k, trial] = before[:, None] + share * (after - before)[:, None]
                valid[k - length : k, trial] = True
        self._missing[good] = 0
