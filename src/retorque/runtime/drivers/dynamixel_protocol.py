"""Dynamixel's protocol 2.0 as it lies on the wire, and the control table of X-series servos.

Facts from the maker's public manual; written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

HEADER = b"\xff\xff\xfd\x00"
BROADCAST = 0xFE
STATUS = 0x55


class Instruction(IntEnum):
    """What a servo can be asked."""

    PING = 0x01
    READ = 0x02
    WRITE = 0x03
    REBOOT = 0x08
    SYNC_READ = 0x82
    SYNC_WRITE = 0x83
    FAST_SYNC_READ = 0x8A


class Address(IntEnum):
    """Where a value lies in the control table."""

    MODEL = 0
    ID = 7
    OPERATING_MODE = 11
    TORQUE_ENABLE = 64
    HARDWARE_ERROR = 70
    WATCHDOG = 98
    GOAL_CURRENT = 102
    GOAL_POSITION = 116
    PRESENT_CURRENT = 126
    PRESENT_VELOCITY = 128
    PRESENT_POSITION = 132


CURRENT_MODE, POSITION_MODE = 0, 3
PRESENT = 10
"""Bytes of present current, velocity and position together."""
WATCHDOG_UNIT = 0.020
"""[s]"""
POSITION_UNIT = 2.0 * np.pi / 4096
"""[rad]"""
VELOCITY_UNIT = 0.229 * 2.0 * np.pi / 60.0
"""[rad/s]"""


def _table() -> list[int]:
    """CRC-16 of polynomial 0x8005, a byte at a time."""
    found = []
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = (value << 1) ^ 0x8005 if value & 0x8000 else value << 1
        found.append(value & 0xFFFF)
    return found


_CRC = _table()


def crc(data: bytes | bytearray, start: int = 0) -> int:
    """The checksum of a packet without its own two bytes."""
    value = start
    for byte in data:
        value = ((value << 8) & 0xFFFF) ^ _CRC[(value >> 8) ^ byte]
    return value


def packet(servo: int, instruction: int, parameters: bytes) -> bytes:
    """A packet, with a byte stuffed in wherever its content looks like a header."""
    body = (bytes([instruction]) + parameters).replace(b"\xff\xff\xfd", b"\xff\xff\xfd\xfd")
    data = HEADER + bytes([servo]) + (len(body) + 2).to_bytes(2, "little") + body
    return data + crc(data).to_bytes(2, "little")


def packets(buffer: bytearray) -> Iterator[tuple[int, int, bytes]]:
    """Take the whole and intact packets out of a buffer: servo, instruction and parameters."""
    while (start := buffer.find(HEADER)) >= 0:
        del buffer[:start]
        if len(buffer) < 7:
            return
        size = 7 + int.from_bytes(buffer[5:7], "little")
        if size < 10 or size > 1024:
            del buffer[:4]
            continue
        if len(buffer) < size:
            return
        data = bytes(buffer[:size])
        del buffer[:size]
        if crc(data[:-2]) == int.from_bytes(data[-2:], "little"):
            content = data[7:-2].replace(b"\xff\xff\xfd\xfd", b"\xff\xff\xfd")
            yield data[4], content[0], content[1:]
    if len(buffer) > 3:
        del buffer[:-3]  # a header may have begun
