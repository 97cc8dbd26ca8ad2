"""What a tick of a recording holds: one layout for the ring, the file and whoever reads it."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array

FORMAT = 1
"""Of a recording."""
TOPIC, TYPE = "/retorque/tick", "retorque_msgs/msg/Tick"
ABOUT = "retorque"
"""Name of the metadata record that says whose recording it is."""
CDR = b"\x00\x01\x00\x00"
"""What stands before a message of plain, little-endian CDR, the encoding of ROS 2."""
SCALARS = ("sequence", "time", "stamp", "health", "belief")
"""Number of the tick, the robot's time [s], this machine's [ns since 1970], the tick's codes, the belief's version."""
VECTORS = {
    "position": "rad",
    "velocity": "rad/s",
    "torque": "N·m, as the robot reports it, gravity included",
    "nominal": "N·m, what the controller asked for",
    "command": "N·m, what was sent",
    "correction": "N·m, what the adapter asked for on top, sent or not",
}
"""Signals of every joint, with their units."""


@dataclass(frozen=True)
class TickLayout:
    """Where each signal of a tick lies, for a robot of n joints; every number takes 8 bytes."""

    n: int

    @property
    def width(self) -> int:
        """Numbers in a row."""
        return len(SCALARS) + len(VECTORS) * self.n

    @property
    def row(self) -> struct.Struct:
        """A row as bytes: the scalars, then each vector as the bytes of an array."""
        return struct.Struct("<QdQQQ" + f"{8 * self.n}s" * len(VECTORS))

    def schema(self) -> str:
        """The message's definition, as ROS 2 writes it."""
        lines = ["uint64 sequence", "float64 time", "uint64 stamp", "uint64 health", "uint64 belief"]
        return "\n".join([*lines, *(f"float64[{self.n}] {name}" for name in VECTORS)]) + "\n"

    @cached_property
    def dtype(self) -> np.dtype:
        """A row as a record of NumPy."""
        kinds = {"sequence": "<u8", "time": "<f8", "stamp": "<u8", "health": "<u8", "belief": "<u8"}
        return np.dtype([*kinds.items(), *((name, "<f8", (self.n,)) for name in VECTORS)])

    def rows(self, data: bytes) -> Array:
        """Records of rows that lie one after another."""
        return np.frombuffer(data, self.dtype)


def kinematics_of(robot: Robot) -> str:
    """A digest of the joints' names, kinds, axes and places to 0.1 mm: what identification does not change."""
    tree = [
        [
            [link.joint.name, link.joint.kind] if link.joint is not None else [],
            [round(float(value), 4) + 0.0 for value in (*link.position, *link.quaternion)],
            [round(float(value), 4) + 0.0 for value in (link.joint.axis if link.joint is not None else ())],
        ]
        for link in robot.links
    ]
    return hashlib.blake2b(json.dumps(tree).encode(), digest_size=8).hexdigest()
