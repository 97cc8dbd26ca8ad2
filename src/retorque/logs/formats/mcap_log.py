"""Reading our own recordings (MCAP): also a file that breaks off, or in which a piece was damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.logs.recording import ABOUT, CDR, FORMAT, TOPIC, VECTORS, TickLayout, kinematics_of
from retorque.logs.table import BLOCK, Table
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

COLUMNS = {"position": "q", "velocity": "qd", "torque": "tau"}
"""The short names under which identification knows these signals."""


@dataclass(frozen=True)
class RobotRecording:
    """A recording as it was read."""

    path: Path
    robot: str
    """The robot's name."""
    joints: tuple[str, ...]
    """Names of its joints, in order."""
    timestep: float
    """Control period [s]."""
    about: dict[str, Any]
    """What else the file says: adapter, driver, versions."""
    ticks: Array
    """(ticks,) records of `TickLayout.dtype`, in order, none twice."""
    whole: bool
    """Whether every part of the file was intact and had its end."""
    damaged: int
    """Pieces that had to be left out."""

    @property
    def lost(self) -> int:
        """Ticks that are missing between the first and the last."""
        if not len(self.ticks):
            return 0
        return int(self.ticks["sequence"][-1] - self.ticks["sequence"][0]) + 1 - len(self.ticks)

    def check(self, robot: Robot) -> None:
        """Refuse a recording of another robot."""
        tree = kinematics_of(robot)
        if self.joints != robot.joint_names or self.about.get("kinematics", tree) != tree:
            raise RetorqueError(
                f"'{self.path}' is a recording of '{self.robot}' ({', '.join(self.joints)}), "
                f"not of '{robot.name}'; name that robot, or another recording"
            )


def parts_of(path: str | Path) -> list[Path]:
    """A recording's files: itself, then what a writer that had to be started again went on with."""
    first = Path(path)
    return [first, *sorted(first.parent.glob(f"{first.stem}.part*{first.suffix}"))]


def read_recording(path: str | Path) -> RobotRecording:
    """All of a recording that can be read."""
    first = Path(path)
    if not first.is_file():
        raise RetorqueError(f"there is no recording '{path}'")
    about: dict[str, Any] = {}
    pieces: list[Array] = []
    whole, damaged = True, 0
    for part in parts_of(first):
        found = _read_part(part)
        about = about or found.about
        pieces += found.pieces
        whole, damaged = whole and found.ended, damaged + found.damaged
    if not about:
        raise RetorqueError(f"'{path}' holds no recording of ours: record one with `retorque drive --record FILE`")
    layout = TickLayout(len(about["joints"]))
    ticks = np.concatenate([np.zeros(0, layout.dtype), *(piece for piece in pieces if piece.dtype == layout.dtype)])
    order = np.unique(ticks["sequence"], return_index=True)[1]  # a writer that was killed may have told some twice
    return RobotRecording(
        first,
        str(about["robot"]),
        tuple(about["joints"]),
        float(about["timestep"]),
        about,
        ticks[order],
        whole and not damaged,
        damaged,
    )


@dataclass
class _RecordingPart:
    about: dict[str, Any]
    pieces: list[Array]
    ended: bool = False
    damaged: int = 0


def _read_part(path: Path) -> _RecordingPart:
    """One file, chunk by chunk, as far as it goes."""
    try:
        from mcap.records import Channel, Chunk, Footer, Message, Metadata
        from mcap.stream_reader import StreamReader, breakup_chunk
    except ModuleNotFoundError as error:
        raise RetorqueError("recordings need mcap; run: pip install 'retorque[record]'") from error
    found, channels, begun = _RecordingPart({}, []), {}, False
    with open(path, "rb") as file:
        records = StreamReader(file, emit_chunks=True, validate_crcs=False).records
        while True:
            try:
                record = next(records)
            except StopIteration:
                break
            except Exception as error:  # a decompressor has errors of its own
                if not begun:
                    raise RetorqueError(f"'{path}' is no MCAP file ({str(error) or type(error).__name__})") from None
                break
            begun = True
            if isinstance(record, Metadata) and record.name == ABOUT:
                found.about = _about(path, record.metadata)
            elif isinstance(record, Footer):
                found.ended = True
            elif isinstance(record, Chunk):
                try:
                    inside = list(breakup_chunk(record, validate_crc=True))
                except Exception:  # each decompressor has errors of its own
                    found.damaged += 1
                    continue
                channels.update({item.id: item.topic for item in inside if isinstance(item, Channel)})
                rows = [
                    item.data[len(CDR) :]
                    for item in inside
                    if isinstance(item, Message) and channels.get(item.channel_id, TOPIC) == TOPIC
                ]
                if found.about and rows:
                    layout = TickLayout(len(found.about["joints"]))
                    found.pieces.append(layout.rows(b"".join(row for row in rows if len(row) == layout.dtype.itemsize)))
    return found


def _about(path: Path, metadata: dict[str, str]) -> dict[str, Any]:
    try:
        about = json.loads(metadata["about"])
        if about["format"] != FORMAT:
            raise RetorqueError(f"'{path}' has format {about['format']}, this version reads {FORMAT}; record it again")
        if not (isinstance(about["joints"], list) and about["joints"] and float(about["timestep"]) > 0.0):
            raise ValueError("joints")
        str(about["robot"])
    except (KeyError, ValueError, TypeError) as error:
        raise RetorqueError(f"'{path}' does not say whose recording it is ({error!r}); record it again") from error
    return about


class RecordingTable(Table):
    """A recording as columns: time, q1.., qd1.., tau1.., and what else every tick holds."""

    recording: RobotRecording

    @classmethod
    def open(cls, path: Path) -> RecordingTable:
        """Read it all: an hour at 1 kHz takes about 1.3 GB of memory."""
        return cls.of(read_recording(path))

    @classmethod
    def of(cls, recording: RobotRecording) -> RecordingTable:
        """What has been read already."""
        count = range(1, len(recording.joints) + 1)
        names = ["time", *(f"{COLUMNS.get(signal, signal)}{k}" for signal in VECTORS for k in count)]
        table = cls(recording.path, tuple(names), len(names))
        table.recording, table.cut = recording, not recording.whole
        return table

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        ticks = self.recording.ticks
        for start in range(0, len(ticks), BLOCK):
            rows = ticks[start : start + BLOCK]
            columns = [rows["time"][:, None], *(rows[name] for name in VECTORS)]
            yield np.arange(start, start + len(rows)), np.concatenate(columns, axis=1)

    def check(self, robot: Robot) -> None:
        self.recording.check(robot)
