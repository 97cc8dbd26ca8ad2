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
STANDS = 0.01
"""Part of its velocity that the slope of a position stays below where it stands still: degrees leave 0.017 of it."""
LEAP = 600.0
"""A pause in a log that is worth telling [s]."""
STANDING = 0.15
"""Part of its motion over which a position may stand still before its encoder is called frozen."""
PATIENCE = 20
"""After so many rows that jumped away the robot really is elsewhere: the log has a hole."""


class DamagedLog(RetorqueError):
    """A log that cannot be what it says it is.

    Args:
        cause: one of the words of a verdict, such as "time unit" or "frozen channel".
        sentence: what is wrong and what to do.
    """

    def __init__(self, cause: str, sentence: str):
        super().__init__(sentence)
        self.cause = cause


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
    impossible: dict[str, Array] = field(default_factory=dict)
    """Rows with impossible values, by signal (position, velocity, effort) and joint."""
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

    def damage(self) -> DamagedLog | None:
        """What it means that so much is impossible, if it is that."""
        if not self.rows or self.counts["rows with impossible values"] < 0.4 * self.rows:
            return None
        worst = max(self.impossible, key=lambda signal: np.max(self.impossible[signal]))
        counts = self.impossible[worst]
        odd = np.flatnonzero(counts > 0.4 * self.rows)
        some = 0 < len(odd) < len(counts)  # where only some joints are, it is their unit and not the log's
        whose = f" of joint{'s' * (len(odd) > 1)} {', '.join(str(j + 1) for j in odd)}" if some else ""

        def scale(signal: str, factor: str) -> str:
            every = ", ".join(factor if j in odd else "1" for j in range(len(counts)))
            return f"{signal}_scale = [{every}]" if some else f"{signal}_scale = {factor}"

        degrees = f"then say {scale('position', '0.01745')} and {scale('velocity', '0.01745')}"
        hints = {
            "position": f"are they in degrees? {degrees if some else 'then say degrees = true'}",
            "velocity": f"are they in degrees per second? {degrees}"
            + ("" if some else "; or is the clock in another unit? then say time_unit"),
            "effort": "are they in N·m, or currents in A times drive gains at the joint? "
            f"from mA, say {scale('effort', '0.001')}",
        }
        turned = some or bool(np.any(self.impossible.get("position", 0)))
        cause = "time unit" if worst == "velocity" and not turned else "scale"
        name = {"velocity": "velocities"}.get(worst, f"{worst}s")
        said = f"the {name}{whose} are beyond what the robot can do"
        return DamagedLog(cause, f"{self.words()}; {said}: {hints[worst]} in a mapping file (--columns)")

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


UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Units of time that logs have besides seconds."""
SLOWEST, FASTEST = 2.0, 50_000.0
"""Sampling rates that logs of motion have [Hz]."""


def check_time(time: Array, where: str) -> None:
    """Refuse a clock that does not count seconds.

    Args:
        time: (rows,) the first times of a log.
        where: the file's name.
    """
    steps = np.diff(time[np.isfinite(time)])
    steps = steps[steps > 0.0]
    if len(steps) < 20:
        return
    period = float(np.median(steps))
    if period < 1.0 / SLOWEST:
        return
    units = [name for name, unit in UNITS.items() if 5.0 * SLOWEST < 1.0 / (period * unit) < FASTEST]
    if not units:
        raise DamagedLog(
            "time unit",
            f"'{where}' has one row every {period:.3g} s, too slow for motion; if its clock counts something else, say "
            "the factor to seconds in a mapping file (--columns): time_scale = ...",
        )
    rate = 1.0 / (period * UNITS[units[0]])
    raise DamagedLog(
        "time unit",
        f"'{where}' has one row every {period:.3g} s; is its clock in {units[0]} ({rate:.0f} Hz)? then say "
        f'time_unit = "{units[0]}" in a mapping file (--columns)',
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
    other = np.sqrt(np.mean(np.square(qd), axis=0))
    wrong = np.sqrt(np.mean(np.square(slope - qd), axis=0))
    bad = np.flatnonzero((np.maximum(size, other) > 0.05) & (wrong > 0.5 * np.maximum(size, 1e-12)))
    if not len(bad):
        return
    joints = ", ".join(str(index + 1) for index in bad)
    said = f"the velocities of joints {joints} are not the rate of change of their positions"
    if np.all(_standing(slope[:, bad], qd[:, bad]) > STANDING):
        raise DamagedLog(
            "frozen channel",
            f"{said}; their positions stand still for a part of the log: the encoders are frozen; leave those rows out "
            "(--rows)",
        )
    cause, hint = _why_not(slope, qd, bad, size, other)
    raise DamagedLog(cause, f"{said}; {hint}")


def _standing(slope: Array, qd: Array) -> Array:
    """(joints,) part of the time with a velocity during which the position stands still."""
    fast = np.abs(qd) > 0.25 * np.sqrt(np.mean(np.square(qd), axis=0))
    still = np.abs(slope) < STANDS * np.abs(qd)
    return np.sum(fast & still, axis=0) / np.maximum(np.sum(fast, axis=0), 1)


def _why_not(slope: Array, qd: Array, bad: Array, size: Array, other: Array) -> tuple[str, str]:
    """The cause that explains velocities unlike the positions' slopes, and what to do."""
    moving = np.flatnonzero((size > 0.0) & (other > 0.0))
    if np.all(size[bad] < STANDS * other[bad]):
        if len(bad) < len(size):
            return "frozen channel", "their positions stand still: the encoders are frozen"
        return "time unit", "the clock runs too slowly: say time_unit (ms, us or ns) in a mapping file (--columns)"
    ratio = np.array([float(slope[:, j] @ qd[:, j]) / float(qd[:, j] @ qd[:, j]) for j in moving])
    alike = np.corrcoef(slope[:, moving].T, qd[:, moving].T)[: len(moving), len(moving) :]
    alike = np.abs(np.nan_to_num(alike))
    match = np.argmax(alike, axis=1)
    if np.all(alike[np.arange(len(moving)), match] > 0.9) and not np.all(match == np.arange(len(moving))):
        order = ", ".join(str(moving[k] + 1) for k in match)
        return "permutation", f"positions of joints {', '.join(str(j + 1) for j in moving)} have velocities {order}"
    own = ratio[np.isin(moving, bad)]
    straight = np.all(np.diagonal(alike)[np.isin(moving, bad)] > 0.9)
    if straight and np.all(own < 0.0):
        return "sign", "they are counted the other way: say scale in a mapping file (--columns)"
    if straight and np.all(np.abs(np.log(np.abs(own) * np.rad2deg(1.0))) < 0.1):
        return "scale", "the velocities are in degrees: say velocity_scale = 0.01745 in a mapping file (--columns)"
    if straight and np.all(np.abs(np.log(np.abs(own) / np.rad2deg(1.0))) < 0.1):
        return "scale", "the positions are in degrees: say position_scale = 0.01745 in a mapping file (--columns)"
    if straight and len(bad) == len(moving) and np.ptp(np.log(np.abs(own))) < 0.2:
        return "time unit", f"all are off by {1.0 / own[0]:.3g}: is the clock in another unit? say time_unit"
    if np.any(size[bad] < STANDS * other[bad]):
        return "frozen channel", "some positions stand still: the encoders are frozen"
    return "permutation", "check the columns, their units and the number of joints"


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
            inside = {
                "position": (position >= self.limits.lower) & (position <= self.limits.upper),
                "effort": np.abs(effort) <= self.limits.effort,
            }
            if velocity is not None:
                inside["velocity"] = np.abs(velocity) <= self.limits.speed
        possible = np.all(list(inside.values()), axis=(0, 2))
        for signal, good in inside.items():
            counts = np.sum(finite[:, None] & ~good, axis=0)
            self.dropped.impossible[signal] = self.dropped.impossible.get(signal, 0) + counts
        self.dropped.note("rows with impossible values", rows[finite & ~possible])
        empty = np.all(position == 0.0, axis=1) & np.all(effort == 0.0, axis=1)
        self.dropped.note("rows of zeros", rows[finite & possible & empty])
        kept = np.flatnonzero(finite & possible & ~empty)
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
            self._note_jump("is set back", int(rows[good[0]]))
        highest = np.maximum.accumulate(np.concatenate([[before], sequence]))[:-1]
        repeated, backward = sequence == highest, sequence < highest
        for ahead in np.flatnonzero(np.diff(sequence) > LEAP)[:1] + 1:
            self._note_jump("jumps ahead", int(rows[good[ahead]]))
        for restart in self._restarts(sequence):
            self._note_jump("is set back", int(rows[good[restart]]))
            fresh = np.maximum.accumulate(np.concatenate([[-np.inf], sequence[restart:]]))[:-1]
            repeated[restart:], backward[restart:] = sequence[restart:] == fresh, sequence[restart:] < fresh
        self.dropped.note("rows with a repeated time", rows[good[repeated]])
        self.dropped.note("rows whose time runs backwards", rows[good[backward]])
        keep = np.zeros(len(time), dtype=bool)
        keep[good[~repeated & ~backward]] = True
        if np.any(keep):
            self.last_time = float(time[keep][-1])
        return keep

    def _note_jump(self, how: str, row: int) -> None:
        """Say it once for each way in which a clock jumps."""
        if not any(how in note for note in self.dropped.notes):
            self.dropped.notes.append(f"the clock {how} at row {row}: what follows is read as a stretch of its own")

    @staticmethod
    def _restarts(time: Array) -> list[int]:
        """The rows at which a clock was set back for good."""
        back = np.flatnonzero(np.diff(time) < -1.0) + 1
        return [
            int(index) for index in back if len(time) - index > 20 and np.all(np.diff(time[index : index + 20]) > -1.0)
        ]

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
