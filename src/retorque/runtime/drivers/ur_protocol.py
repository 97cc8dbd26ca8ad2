"""RTDE, the real-time data exchange of Universal Robots, version 2: packages as they lie on the wire.

Facts from the maker's public guide, and the registers through which ur_rtde talks to the program that it uploads.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

DASHBOARD, SCRIPT, EXCHANGE = 29999, 30003, 30004
"""Ports: dashboard server, programs, data exchange."""
HEADER = struct.Struct(">HB")
"""Size of the whole package and its kind."""
VERSION, CONTROLLER, OUTPUTS, INPUTS, START, PAUSE, DATA = (ord(kind) for kind in "VvOISPU")
"""Kinds of packages."""
LAYOUT = {
    "DOUBLE": "d",
    "VECTOR3D": "3d",
    "VECTOR6D": "6d",
    "VECTOR6INT32": "6i",
    "INT32": "i",
    "UINT8": "B",
    "UINT32": "I",
    "UINT64": "Q",
}
"""How each type is packed."""
POWER_ON, RUNNING = 1, 2
"""Bits of `robot_status_bits`."""
NORMAL, PROTECTIVE, EMERGENCY = 1, 4, 64
"""Bits of `safety_status_bits`: normal mode, protective stop, robot emergency stop."""
DIRECT_TORQUE, STOP_SCRIPT = 66, 255
"""Commands in input_int_register_0."""
READY = 1
"""In output_int_register_0: the uploaded program waits for a command."""
SINCE = (5, 26)
"""The PolyScope from which on ur_rtde's program knows direct torque; before, it takes the command and does nothing."""


def type_of(name: str) -> str:
    """The type of a variable that ur_rtde asks for."""
    if name.startswith(("output_int_register", "input_int_register")) or name in ("robot_mode", "safety_mode"):
        return "INT32"
    if name in ("timestamp", "speed_scaling") or "double_register" in name:
        return "DOUBLE"
    if name in ("robot_status_bits", "safety_status_bits", "runtime_state", "speed_slider_mask"):
        return "UINT32"
    if name == "joint_mode":
        return "VECTOR6INT32"
    if name.endswith("_bits") or re.match(r"actual_digital_(in|out)put", name):
        return "UINT64"
    return "VECTOR6D"


def package(kind: int, payload: bytes) -> bytes:
    """A package."""
    return HEADER.pack(HEADER.size + len(payload), kind) + payload


def packages(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Take the whole packages out of a buffer: kind and payload; raises ValueError on what is no RTDE."""
    while len(buffer) >= HEADER.size:
        size, kind = HEADER.unpack_from(buffer)
        if size < HEADER.size:
            raise ValueError("no RTDE package")
        if len(buffer) < size:
            return
        payload = bytes(buffer[HEADER.size : size])
        del buffer[:size]
        yield kind, payload


def recipe_layout(names: list[str]) -> struct.Struct:
    """How the values of these variables are packed."""
    return struct.Struct(">" + "".join(LAYOUT[type_of(name)] for name in names))
