"""ROS 2 bags (folders, .db3) and MCAP files of joint states as tables: time, position, velocity and effort by joint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.logs.table import BLOCK, Table
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

JOINT_STATE = "sensor_msgs/msg/JointState"
SIGNALS = ("position", "velocity", "effort")


@dataclass(frozen=True)
class _Message:
    time: float
    state: Any


class RosTable(Table):
    """The joint states of the topic that has most of them; joints that a message lacks are NaN."""

    values: Array

    @classmethod
    def open(cls, path: Path) -> RosTable:
        """Read all joint states."""
        folder = path if path.is_dir() else path.parent
        bag = path.suffix == ".mcap" and not (folder / "metadata.yaml").exists()
        topics = _mcap(path) if bag else _bag(folder)
        if not topics:
            raise RetorqueError(f"'{path}' holds no {JOINT_STATE}; record the topic /joint_states")
        topic = max(topics, key=lambda name: len(topics[name]))
        return cls.of(path, topics[topic])

    @classmethod
    def of(cls, path: Path, messages: list[_Message]) -> RosTable:
        """The columns of some messages."""
        sets = Counter(tuple(message.state.name) for message in messages)
        joints = sets.most_common(1)[0][0]
        place = {joint: k for k, joint in enumerate(joints)}
        names = ["time", *(f"{signal} {joint}" for signal in SIGNALS for joint in joints)]
        values = np.full((len(messages), len(names)), np.nan)
        for row, message in enumerate(messages):
            values[row, 0] = message.time
            for s, signal in enumerate(SIGNALS):
                numbers = np.asarray(getattr(message.state, signal), dtype=float)
                if len(numbers) == len(message.state.name):
                    for joint, number in zip(message.state.name, numbers, strict=True):
                        if joint in place:
                            values[row, 1 + s * len(joints) + place[joint]] = number
        kept = ~np.all(np.isnan(values), axis=0)  # a driver without velocities publishes none
        table = cls(path, tuple(name for name, keep in zip(names, kept, strict=True) if keep), int(np.sum(kept)))
        table.values = values[:, kept]
        return table

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        self.bad = {}
        for start in range(0, len(self.values), BLOCK):
            rows = self.values[start : start + BLOCK]
            yield np.arange(start, start + len(rows)), rows


def _stamped(state: Any, nanoseconds: int) -> _Message:
    stamp = state.header.stamp
    time = stamp.sec + 1e-9 * stamp.nanosec
    return _Message(time if time > 0.0 else 1e-9 * nanoseconds, state)


def _bag(folder: Path) -> dict[str, list[_Message]]:
    try:
        from rosbags.highlevel import AnyReader
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise RetorqueError("ROS 2 bags need rosbags; run: pip install 'retorque[record]'") from error
    found: dict[str, list[_Message]] = {}
    try:
        with AnyReader([folder], default_typestore=get_typestore(Stores.LATEST)) as reader:
            wanted = [connection for connection in reader.connections if connection.msgtype == JOINT_STATE]
            for connection, time, data in reader.messages(connections=wanted):
                state = reader.deserialize(data, connection.msgtype)
                found.setdefault(connection.topic, []).append(_stamped(state, time))
    except RetorqueError:
        raise
    except Exception as error:  # the library has several kinds of its own
        raise RetorqueError(f"'{folder}' cannot be read as a ROS 2 bag: {error}") from error
    return found


def _mcap(path: Path) -> dict[str, list[_Message]]:
    try:
        from mcap.reader import make_reader
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise RetorqueError(f"MCAP logs need {error.name}; run: pip install 'retorque[record]'") from error
    store = get_typestore(Stores.LATEST)
    found: dict[str, list[_Message]] = {}
    try:
        with open(path, "rb") as file:
            for schema, channel, message in make_reader(file).iter_messages():
                if schema is not None and schema.name == JOINT_STATE:
                    state = store.deserialize_cdr(message.data, JOINT_STATE)
                    found.setdefault(channel.topic, []).append(_stamped(state, message.log_time))
    except Exception as error:  # each decompressor has errors of its own
        raise RetorqueError(f"'{path}' cannot be read as MCAP: {error}") from error
    return found
