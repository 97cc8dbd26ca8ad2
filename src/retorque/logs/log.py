"""A log as a source of motion: read, checked, made even, filtered and thinned, in pieces of bounded size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from retorque.logs.channels import Channels
from retorque.logs.clean import Cleaner, Dropped, Limits, check_time
from retorque.logs.clocks import own_clocks, together
from retorque.logs.columns import Columns, Picked, pick
from retorque.logs.corrections import Corrections
from retorque.logs.motion import Motion, join
from retorque.logs.overlap import SHORTEST, OverlapFilter
from retorque.logs.signal import Filter
from retorque.logs.table import BLOCK, Table, open_table
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

IN_MEMORY = 400_000
"""A log with fewer samples than this is kept once it has been read."""
FEWEST = 10
"""Samples without which there is no motion to speak of."""


@dataclass
class Log:
    """Files of one robot, as motion. Reading twice gives the same pieces."""

    paths: tuple[Path, ...]
    robot: Robot
    columns: Columns | None = None
    rows: slice = field(default_factory=lambda: slice(None))
    drive_gains: Array | None = None
    """(n,) [N·m/A] for logs of motor current."""
    filter: Filter = field(default_factory=Filter)
    dropped: Dropped = field(default_factory=Dropped)
    """What the last whole reading left out."""
    by_order: bool = False
    """Whether columns were told apart by their order alone, for want of names."""
    findings: tuple[tuple[str, str], ...] = ()
    """Causes and sentences that the raw channels of the last whole reading gave away; see `channels`."""
    _reading: Dropped = field(default_factory=Dropped)
    _found: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.paths:
            raise RetorqueError("name at least one log")
        gains = self.drive_gains
        if gains is None and self.columns is not None and self.columns.drive_gains is not None:
            gains = np.array(self.columns.drive_gains, dtype=float)
        if gains is not None:
            gains = np.asarray(gains, dtype=float)
            if gains.shape != (self.robot.n,) or not np.all(np.isfinite(gains)) or np.any(gains == 0.0):
                raise RetorqueError(
                    f"'{self.robot.name}' needs {self.robot.n} drive gains [N·m/A], none of them zero; "
                    f"got {', '.join(f'{gain:g}' for gain in gains.ravel())}"
                )
        self.drive_gains = gains

    def chunks(self) -> Iterator[Motion]:
        """Pieces of motion, thinned by the filter's stride; a log that was mostly left out is refused at its end."""
        self._reading, self._found, kept = Dropped(), [], 0
        for piece in self._pieces():
            kept += len(piece)
            yield piece
        self.dropped, self.findings = self._reading, tuple(self._found)
        damage = self.dropped.damage()
        if damage is not None:
            raise damage
        if kept >= FEWEST and self.dropped.total > 0.5 * self.dropped.rows:
            raise RetorqueError(
                f"{self.dropped.words()}; more than half of a log is never an accident: check columns, units and robot"
            )

    def _pieces(self) -> Iterator[Motion]:
        for path in self.paths:
            window = OverlapFilter(self.robot.n, self.filter)
            for begins, time, values in _stretches(self._believed(path)):
                if begins:
                    yield from self._finish(window)
                    window = OverlapFilter(self.robot.n, self.filter)
                yield from window.push(time, values)
            yield from self._finish(window)

    def _finish(self, window: OverlapFilter) -> Iterator[Motion]:
        if window.rows >= SHORTEST:
            self._reading.pieces += 1
        elif window.rows:
            self._reading.counts["rows in stretches too short to filter"] += window.rows
        yield from window.flush()

    def load(self) -> Motion | Log:
        """The whole motion where it fits in memory, else the log itself, to be read in pieces every time."""
        pieces, count = [], 0
        for piece in self.chunks():
            pieces.append(piece)
            count += len(piece)
            if count > IN_MEMORY:
                return self
        if count < FEWEST:
            where = ", ".join(map(str, self.paths))
            if not self.dropped.rows and (self.rows.start or self.rows.stop):
                raise RetorqueError(f"{where} ends before row {self.rows.start or 0}; choose other --rows")
            if not self.dropped.total:
                raise RetorqueError(
                    f"{where}: {self.dropped.rows} rows leave {count} samples, too few to learn from; use more rows or "
                    "thin less (--decimate)"
                )
            back = self.dropped.counts["rows whose time runs backwards"] > 0.5 * self.dropped.rows
            hint = "; if its rows are even, say the sampling rate instead (rate = 500.0) in a mapping file (--columns)"
            raise RetorqueError(f"no usable motion in {where}: {self.dropped.words()}{hint if back else ''}")
        return join(pieces)

    def raw(self, path: Path) -> Iterator[tuple[Array, Array, Array, Array | None, Array]]:
        """Blocks of row numbers, times, positions, velocities and torques, in SI units at the joints."""
        corrections = Corrections.of(self.columns, self.robot)
        gains = np.ones(self.robot.n) if self.drive_gains is None else self.drive_gains
        for rows, clock, q, qd, given in self._recorded(path):
            time, position, velocity, effort = corrections.apply(clock, q, qd, given)
            with np.errstate(over="ignore", invalid="ignore"):
                yield rows, time, position, velocity, effort * gains

    def _recorded(self, path: Path) -> Iterator[tuple[Array, Array, Array, Array | None, Array]]:
        """Blocks of row numbers, times, positions, velocities and efforts, as recorded."""
        if self.columns is not None and self.columns.files:
            yield from self._folder(path)
            return
        table = open_table(path)
        table.check(self.robot)
        self.by_order = table.names is None and self.columns is None
        where = path.name
        current = self.drive_gains is not None
        picked = pick(self.columns, table.names, table.width, self.robot, where, prefer_current=current)
        self._check_gains(picked, table)
        rate = self.columns.rate if self.columns is not None else None
        unit = Corrections.of(self.columns, self.robot).time  # rows are counted in seconds, not in the clock's unit
        if picked.velocity is None:
            self._reading.notes.append(f"'{where}' has no velocities of all joints, so positions are differentiated")
        for rows, values in table.blocks():
            for reason, bad in table.bad.items():
                lost = bad[self._chosen(bad)]
                self._reading.note(reason, lost)
                self._reading.rows += len(lost)
            chosen = self._chosen(rows)
            rows, values = rows[chosen], values[chosen]
            time = rows / (rate * unit) if picked.time is None and rate else values[:, picked.time or 0]
            velocity = None if picked.velocity is None else values[:, picked.velocity]
            yield rows, time, values[:, picked.position], velocity, values[:, picked.effort]
        self._note_cut(table)

    def has_currents(self) -> bool:
        """Whether the first file holds motor currents and no torques."""
        if self.columns is not None and self.columns.files:
            return "torque" not in self.columns.files
        table = open_table(self.paths[0])
        picked = pick(self.columns, table.names, table.width, self.robot, self.paths[0].name)
        return picked.is_current or table.names is None

    def _note_cut(self, table: Table) -> None:
        if table.cut:
            self._reading.notes.append(f"'{table.path.name}' ends within its compressed data: the rest of it is lost")

    def _check_gains(self, picked: Picked, table: Table) -> None:
        if picked.is_current and self.drive_gains is None:
            raise RetorqueError(
                f"'{table.path.name}' has motor currents; give --drive-gains [N·m/A], one for each joint"
            )
        if not picked.is_current and self.drive_gains is not None:
            raise RetorqueError(f"'{table.path.name}' has torques, which need no drive gains; leave --drive-gains out")

    def _chosen(self, rows: Array) -> Array:
        start, stop = self.rows.start or 0, self.rows.stop
        return (rows >= start) & (rows < stop) if stop is not None else rows >= start

    def _folder(self, folder: Path) -> Iterator[tuple[Array, Array, Array, Array | None, Array]]:
        """One file a signal: n values a row, or one value a line, joint after joint."""
        assert self.columns is not None and self.columns.files is not None
        files = self.columns.files
        effort = next((name for name in ("torque", "current", "effort") if name in files), "torque")
        missing = [name for name in ("position", effort) if name not in files]
        if not missing and folder.is_dir() and own_clocks(folder, files, self.robot):
            yield from self._clocked(folder, files, effort)
            return
        if missing or ("time" not in files and self.columns.rate is None):
            raise RetorqueError(
                "[files] must name 'position', 'torque' or 'current', and 'time' unless 'rate' is given"
            )
        if not folder.is_dir():
            raise RetorqueError(f"the mapping has [files], so the log must be a folder; '{folder}' is not")
        if effort == "current" and self.drive_gains is None:
            raise RetorqueError("the log has motor currents; give --drive-gains [N·m/A], one for each joint")
        names = [name for name in ("time", "position", "velocity", effort) if name in files]
        widths = [1 if name == "time" else self.robot.n for name in names]
        readers = [self._flat(folder / files[name], width) for name, width in zip(names, widths, strict=True)]
        number = 0
        nothing = np.zeros((0, 1))
        for parts in itertools.zip_longest(*readers, fillvalue=nothing):
            lengths = [len(part) for part in parts]
            count, longest = min(lengths), max(lengths)
            values = dict(zip(names, (part[:count] for part in parts), strict=True))
            rows = number + np.arange(count)
            beyond = number + np.arange(count, longest)
            number += longest
            lost = beyond[self._chosen(beyond)]
            self._reading.note("samples that not every file has", lost)
            self._reading.rows += len(lost)
            if not count:
                continue
            chosen = self._chosen(rows)
            time = values["time"][:, 0] if "time" in values else rows / (self.columns.rate or 1.0)
            velocity = values["velocity"][chosen] if "velocity" in values else None
            yield rows[chosen], time[chosen], values["position"][chosen], velocity, values[effort][chosen]

    def _clocked(
        self, folder: Path, files: dict[str, str], effort: str
    ) -> Iterator[tuple[Array, Array, Array, Array | None, Array]]:
        """One file a signal, each with its own clock."""
        values = together(folder, files, self.robot)
        self._reading.notes.append("each file has its own clock: signals are read at the positions' times")
        rows = np.arange(len(values["time"]))
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            block = block[self._chosen(block)]
            velocity = values["velocity"][block] if "velocity" in values else None
            yield block, values["time"][block], values["position"][block], velocity, values[effort][block]

    def _flat(self, path: Path, width: int) -> Iterator[Array]:
        """Blocks (rows, width) of a text file that holds `width` numbers a row, or one number a line."""
        table, number = open_table(path), 0
        if table.width not in (1, width):
            raise RetorqueError(f"'{path.name}' has {table.width} columns; it must have {width}, or one value a line")
        rest = np.zeros((0,))
        for rows, values in table.blocks():
            lost = np.concatenate([*table.bad.values(), np.zeros(0, dtype=int)])
            if len(lost) and table.width != width:
                raise RetorqueError(
                    f"line {lost[0] + 1} of '{path.name}' is not one value; every later joint would shift"
                )
            # a row that cannot be read keeps its place, or this file would run ahead of the others
            block = np.full((len(rows) + len(lost), table.width), np.nan)
            block[rows - number] = values
            number += len(block)
            flat = np.concatenate([rest, block.ravel()])
            # whole groups of BLOCK rows, so that all files of a folder advance together
            whole = len(flat) // (width * BLOCK) * BLOCK
            for start in range(0, whole, BLOCK):
                yield flat[start * width : (start + BLOCK) * width].reshape(BLOCK, width)
            rest = flat[whole * width :]
        self._note_cut(table)
        count = len(rest) // width
        if count:
            yield rest[: count * width].reshape(count, width)
        if len(rest) % width:
            self._reading.counts["rows with missing or extra columns"] += 1
            self._reading.rows += 1

    def _believed(self, path: Path) -> Iterator[tuple[Array, Array]]:
        """Times (rows,) and signals (rows, 2n or 3n) of the rows that passed every check."""
        cleaner = Cleaner(Limits.of(self.robot, current=self.drive_gains is not None), self._reading)
        channels, first = Channels(self.robot.n), True
        for rows, time, position, velocity, effort in self.raw(path):
            if first:
                check_time(time, path.name)
                first = False
            self._reading.rows += len(rows)
            channels.add(time, position, velocity, effort)
            keep = cleaner.clean(rows, time, position, velocity, effort)
            signals = [position, effort] if velocity is None else [position, velocity, effort]
            yield time[keep], np.concatenate(signals, axis=1)[keep]
        self._found += [found for found in channels.findings(self.robot.joint_names) if found not in self._found]


def _stretches(blocks: Iterator[tuple[Array, Array]]) -> Iterator[tuple[bool, Array, Array]]:
    """Cut a log where time stands still too long: whether a new stretch begins, times, signals."""
    period, last = 0.0, -np.inf
    for time, values in blocks:
        if len(time) == 0:
            continue
        if not period and len(time) > 1:
            period = float(np.median(np.abs(np.diff(time))))
        steps = np.diff(time, prepend=last)
        cuts = (steps > max(8.0 * period, 0.02)) | (steps <= 0.0)
        edges = sorted({0, *np.flatnonzero(cuts).tolist(), len(time)})
        for start, stop in itertools.pairwise(edges):
            yield bool(cuts[start]), time[start:stop], values[start:stop]
        last = time[-1]
