"""Which samples of a log to believe: numbers, possible values, times that go forward, no jumps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

REACH = 0.02
"""A step that noise alone may make [rad]."""
PATIENCE = 20
"""After so many rows that jumped away the robot really is elsewhere: the log has a hole."""


@dataclass
class Dropped:
    """How many rows of a log were left out, and why."""

    counts: Counter[str] = field(default_factory=Counter)
    """Rows by reason."""
    first: dict[str, int] = field(default_factory=dict)
    """The first row of each reason."""
    rows: int = 0
    """Rows seen."""
    pieces: int = 0
    """Uninterrupted stretches that were used."""
    notes: list[str] = field(default_factory=list)
    """What else a reader should know: a file that ends too early, signals that had to be made."""

    def note(self, reason: str, rows: Array) -> None:
        """Count rows left out."""
        if len(rows):
            self.counts[reason] += len(rows)
            self.first.setdefault(reason, int(rows[0]))

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def words(self) -> str:
        """One sentence."""
        notes = "".join(f"; {note}" for note in self.notes)
        if not self.total:
            return f"all {self.rows} rows used{notes}"
        parts = []
        for reason, count in self.counts.most_common():
            where = f" (first: row {self.first[reason]})" if reason in self.first else ""
            parts.append(f"{count} {reason}{where}")
        return f"{self.total} of {self.rows} rows left out: {'; '.join(parts)}{notes}"


@dataclass(frozen=True)
class Limits:
    """What a joint can do at all: far outside of this is a corrupt number, not a motion."""

    lower: Array
    upper: Array
    speed: Array
    effort: Array

    @classmethod
    def of(cls, robot: Robot, current: bool) -> Limits:
        """Generous limits of a robot; a current's own limit is not known."""

        def finite(values: Array, otherwise: float) -> Array:
            return np.where(np.isfinite(values), values, otherwise)

        torque = np.full(robot.n, 1e4) if current else 3.0 * finite(robot.torque_limit, 1e4)
        return cls(
            lower=np.minimum(finite(robot.lower, -50.0) - 0.5, -2.0 * np.pi - 0.5),
            upper=np.maximum(finite(robot.upper, 50.0) + 0.5, 2.0 * np.pi + 0.5),
            speed=3.0 * finite(robot.velocity_limit, 20.0),
            effort=torque,
        )


def check_velocity(q: Array, qd: Array, rate: float) -> None:
    """Refuse velocities that are not the rate of change of the positions: other columns, another unit, another robot.

    Args:
        q: (samples, n) filtered, even positions [rad].
        qd: (samples, n) filtered velocities [rad/s].
        rate: [Hz]
    """
    slope = np.gradient(q, 1.0 / rate, axis=0)
    size = np.sqrt(np.mean(np.square(slope), axis=0))
    wrong = np.sqrt(np.mean(np.square(slope - qd), axis=0))
    bad = np.flatnonzero((np.maximum(size, np.sqrt(np.mean(np.square(qd), axis=0))) > 0.05) & (wrong > 0.5 * size))
    if len(bad):
        joints = ", ".join(str(index + 1) for index in bad)
        raise RetorqueError(
            f"the velocities of joints {joints} are not the rate of change of their positions; "
            "check the columns, their units and the number of joints"
        )


@dataclass
class Cleaner:
    """Goes through a log block by block and keeps what can be believed; the state between blocks is the last row."""

    limits: Limits
    dropped: Dropped
    period: float | None = None
    """Usual time between rows [s], learnt from the first block."""
    last_time: float | None = None
    last_position: Array | None = None
    believed_time: float = 0.0
    strange: int = 0
    """Rows in a row that jumped away from the last believed position."""

    def clean(self, rows: Array, time: Array, position: Array, velocity: Array | None, effort: Array) -> Array:
        """Indices of the rows to keep."""
        signals = [position, effort] if velocity is None else [position, velocity, effort]
        finite = np.isfinite(time) & np.all([np.all(np.isfinite(x), axis=1) for x in signals], axis=0)
        self.dropped.note("rows with fields that are not numbers", rows[~finite])
        with np.errstate(invalid="ignore"):
            possible = np.all((position >= self.limits.lower) & (position <= self.limits.upper), axis=1)
            possible &= np.all(np.abs(effort) <= self.limits.effort, axis=1)
            if velocity is not None:
                possible &= np.all(np.abs(velocity) <= self.limits.speed, axis=1)
        self.dropped.note("rows with impossible values", rows[finite & ~possible])
        kept = np.flatnonzero(finite & possible)
        kept = kept[self._times(rows[kept], time[kept])]
        return kept[self._jumps(rows[kept], time[kept], position[kept])]

    def _times(self, rows: Array, time: Array) -> Array:
        """Which rows have a time after every earlier row's."""
        if len(time) == 0:
            return np.zeros(0, dtype=bool)
        if self.period is None:
            steps = np.diff(time)
            steps = steps[steps > 0.0]
            self.period = float(np.median(steps)) if len(steps) else 1e-3
        # for times that only rise the running median is the time itself; a single wild time stands out
        wild = np.zeros(len(time), dtype=bool)
        if len(time) >= 5:
            inner = np.median(np.lib.stride_tricks.sliding_window_view(time, 5), axis=1)
            middle = np.concatenate([inner[:1], inner[:1], inner, inner[-1:], inner[-1:]])
            wild = np.abs(time - middle) > max(50.0 * self.period, 0.5)
            # at a block's edge the median is not centred: two periods of slack are not enough after a pause
            wild[:2] &= np.abs(time[:2] - time[2]) > 60.0
            wild[-2:] &= np.abs(time[-2:] - time[-3]) > 60.0
        self.dropped.note("rows with a time far from their neighbours'", rows[wild])
        good = np.flatnonzero(~wild)
        if len(good) == 0:
            return ~wild
        sequence = time[good]
        before = -np.inf if self.last_time is None else self.last_time
        if sequence[0] < before - 1.0 and len(sequence) > 5:
            before = -np.inf  # the clock was set back for good: a new stretch begins
        highest = np.maximum.accumulate(np.concatenate([[before], sequence]))[:-1]
        repeated, backward = sequence == highest, sequence < highest
        restart = self._restart(sequence)
        if restart is not None:
            fresh = np.maximum.accumulate(np.concatenate([[-np.inf], sequence[restart:]]))[:-1]
            repeated[restart:], backward[restart:] = sequence[restart:] == fresh, sequence[restart:] < fresh
        self.dropped.note("rows with a repeated time", rows[good[repeated]])
        self.dropped.note("rows whose time runs backwards", rows[good[backward]])
        keep = np.zeros(len(time), dtype=bool)
        keep[good[~repeated & ~backward]] = True
        if np.any(keep):
            self.last_time = float(time[keep][-1])
        return keep

    @staticmethod
    def _restart(time: Array) -> int | None:
        """The row at which a clock was set back for good, if there is one."""
        back = np.flatnonzero(np.diff(time) < -1.0) + 1
        for index in back[::-1]:
            if len(time) - index > 20 and np.all(np.diff(time[index : index + 20]) > -1.0):
                return int(index)
        return None

    def _jumps(self, rows: Array, time: Array, position: Array) -> Array:
        """Which rows are within reach of the last believed one."""
        keep = np.ones(len(time), dtype=bool)
        if len(time) == 0:
            return keep
        known = self.last_position is not None
        believed = self.last_position if self.last_position is not None else position[0]
        believed_time = self.believed_time if known else time[0]
        waited = np.diff(time, prepend=believed_time)
        step = np.abs(np.diff(position, axis=0, prepend=believed[None]))
        if np.all(step <= self.limits.speed * np.maximum(waited, 0.0)[:, None] + REACH):
            self.last_position, self.believed_time, self.strange = position[-1], float(time[-1]), 0
            return keep
        for index in range(len(time)):
            reach = self.limits.speed * max(time[index] - believed_time, 0.0) + REACH
            if np.any(np.abs(position[index] - believed) > reach):
                self.strange += 1
                if self.strange < PATIENCE:
                    keep[index] = False
                    continue
            self.strange = 0
            believed, believed_time = position[index], float(time[index])
        self.dropped.note("rows that jump further than the joints can move", rows[~keep])
        self.last_position, self.believed_time = believed, believed_time
        return keep
