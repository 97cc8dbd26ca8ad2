"""What the raw channels of a log give away by themselves: dead efforts, frozen encoders, stretches of zeros."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from retorque.work.array import Array

LONG = 0.5
"""A run of one and the same effort that no live sensor has [s]."""
DEAD = 0.5
"""Part of a log that an effort must stand still to be dead."""
MOVING = 0.05
"""Velocity that a joint at rest does not report [rad/s]."""
STUCK = 2.0
"""A run of one and the same effort while the joint moves that no live sensor has [s]."""


@dataclass
class Runs:
    """Longest stretch over which each column kept one value, block by block."""

    width: int
    longest: Array = field(init=False)
    """(width,) [s]"""
    total: Array = field(init=False)
    """(width,) time during which a column did not change from one row to the next [s]."""
    _since: Array = field(init=False)
    _last: Array | None = None
    _last_time: float = 0.0

    def __post_init__(self) -> None:
        self.longest, self.total, self._since = (np.zeros(self.width) for _ in range(3))

    def add(self, time: Array, values: Array) -> None:
        """Take in rows: times (rows,) and values (rows, width)."""
        if self._last is None:
            self._since = np.full(self.width, time[0])
            self._last, self._last_time = values[0], float(time[0])
        changed = np.diff(values, axis=0, prepend=self._last[None]) != 0.0
        steps = np.diff(time, prepend=time[0])
        self.total += np.sum(np.where((steps > 0.0) & (steps < 1.0), steps, 0.0)[:, None] * ~changed, axis=0)
        before = np.concatenate([[self._last_time], time[:-1]])  # the row before each, also in the block before
        for j in range(self.width):
            at = np.flatnonzero(changed[:, j])
            edges = np.concatenate([[self._since[j]], time[at]])
            ends = np.concatenate([before[at], time[-1:]])
            self.longest[j] = max(self.longest[j], float(np.max(ends - edges)))
            self._since[j] = edges[-1]
        self._last, self._last_time = values[-1], float(time[-1])


@dataclass
class Channels:
    """Statistics of a log's raw channels, taken in block by block."""

    n: int
    effort: Runs = field(init=False)
    position: Runs = field(init=False)
    all_zero: float = 0.0
    """Time during which every effort was exactly zero [s]."""
    still_but_fast: Array = field(init=False)
    """(n,) time during which a position kept its value while its velocity said otherwise [s]."""
    low: Array = field(init=False)
    high: Array = field(init=False)
    time: float = 0.0
    """Length of the log [s]."""

    def __post_init__(self) -> None:
        self.effort, self.position = Runs(self.n), Runs(self.n)
        self.still_but_fast = np.zeros(self.n)
        self.low, self.high = np.full(self.n, np.inf), np.full(self.n, -np.inf)

    def add(self, time: Array, position: Array, velocity: Array | None, effort: Array) -> None:
        """Take in rows that are numbers."""
        good = np.isfinite(time) & np.all(np.isfinite(position), axis=1) & np.all(np.isfinite(effort), axis=1)
        time, position, effort = time[good], position[good], effort[good]
        if len(time) < 2:
            return
        steps = np.diff(time, prepend=time[0])
        steps = np.where((steps > 0.0) & (steps < 1.0), steps, 0.0)
        self.time += float(np.sum(steps))
        self.effort.add(time, effort)
        self.position.add(time, position)
        self.all_zero += float(np.sum(steps[np.all(effort == 0.0, axis=1)]))
        if velocity is not None:
            same = np.diff(position, axis=0, prepend=position[:1]) == 0.0
            fast = np.abs(velocity[good]) > MOVING
            self.still_but_fast += np.sum(steps[:, None] * (same & fast), axis=0)
        self.low, self.high = np.minimum(self.low, position.min(axis=0)), np.maximum(self.high, position.max(axis=0))

    def findings(self, joints: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Causes and sentences."""
        found: list[tuple[str, str]] = []
        if self.time <= 0.0:
            return ()
        if self.all_zero > LONG:
            found.append(("zeros", f"every effort is exactly zero for {self.all_zero:.1f} s: leave those rows out"))
        dead = [
            joints[j]
            for j in range(self.n)
            if self.effort.longest[j] > max(LONG, DEAD * self.time) and self.all_zero < DEAD * self.time
        ]
        if dead:
            found.append(("dead channel", f"the effort of {', '.join(dead)} never changes: the channel is dead"))
        if self.all_zero >= DEAD * self.time:
            found.append(("dead channel", "no effort was recorded"))
        stuck = (self.effort.longest > STUCK) & (self.position.longest < 0.5 * self.effort.longest)
        stuck &= self.effort.longest > 0.7 * self.effort.total  # coarse channels keep their value now and then
        held = [joints[j] for j in np.flatnonzero(stuck) if joints[j] not in dead]
        if held and self.all_zero < LONG:
            words = f"the effort of {', '.join(held)} keeps one value for seconds while the joint moves"
            found.append(("frozen channel", f"{words}: leave those rows out"))
        jumped = self.still_but_fast > 0.1 * self.time
        constant = (self.high - self.low == 0.0) & (np.max(self.high - self.low) > 0.0)
        frozen = [joints[j] for j in np.flatnonzero(jumped | constant)]
        if frozen:
            words = "keeps one value while it moves" if np.any(jumped) else "never changes by a single count"
            found.append(("frozen channel", f"the position of {', '.join(frozen)} {words}: the encoder is frozen"))
        return tuple(found)
