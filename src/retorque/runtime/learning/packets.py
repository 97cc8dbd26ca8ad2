"""Packets between a control process and its learner: reports out, beliefs back, sealed against change and mix-up."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import struct
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.runtime.learning.remote_learning import Twin, inner_of
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

MAGIC = b"RTQ1"
HEAD = struct.Struct("<4sBxxxQQ8s")
"""Magic, kind, session, number of the packet, digest of what both sides must have in common."""
SEAL = 16
"""Bytes of the keyed digest at the end."""
REPORTS, BELIEF = 1, 2
MOST = 60_000
"""Most bytes of a packet."""


def identity(adapter: Adapter) -> bytes:
    """What both sides must have in common, as 8 bytes: the adapter's class, the joints and the rate."""
    about = [type(inner_of(adapter)).__name__, list(adapter.robot.joint_names), round(1e9 * adapter.timestep)]
    return hashlib.blake2b(json.dumps(about).encode(), digest_size=8).digest()


def sealed(kind: int, session: int, number: int, who: bytes, payload: bytes, key: bytes) -> bytes:
    """A packet."""
    body = HEAD.pack(MAGIC, kind, session, number, who) + payload
    return body + hashlib.blake2b(body, digest_size=SEAL, key=key).digest()


@dataclass(frozen=True, slots=True)
class Packet:
    """What a packet says."""

    kind: int
    session: int
    number: int
    who: bytes
    payload: bytes


def opened(data: bytes, key: bytes) -> Packet | None:
    """The packet in a datagram; None where it is none, or was changed on its way."""
    if len(data) < HEAD.size + SEAL:
        return None
    body, seal = data[:-SEAL], data[-SEAL:]
    if not hmac.compare_digest(seal, hashlib.blake2b(body, digest_size=SEAL, key=key).digest()):
        return None
    magic, kind, session, number, who = HEAD.unpack_from(body)
    return Packet(kind, session, number, who, body[HEAD.size :]) if magic == MAGIC else None


class PacketLink(ABC):
    """The way to a learner elsewhere; whoever derives from it knows how bytes travel.

    Args:
        adapter: what corrects here; the other side must run the same.
        key: secret that both sides know; without one, changes are seen but forgeries are not.
    """

    def __init__(self, adapter: Adapter, key: bytes = b""):
        self.refused: Counter[str] = Counter()
        self._who, self._key = identity(adapter), key
        self._session = int.from_bytes(os.urandom(8), "little")
        self._rows: list[bytes] = []
        self._every = max(1, adapter.learn_every)
        self._sent = self._seen = 0

    @abstractmethod
    def close(self) -> None:
        """The learner forgets us by itself."""

    @abstractmethod
    def _post(self, data: bytes) -> None:
        """Send a packet; where nobody is there, the belief grows old, which is seen."""

    @abstractmethod
    def _fetch(self) -> bytes | None:
        """A packet that has come, without waiting."""

    def send(self, row: Array) -> None:
        """Hand over a report; they travel together, one packet for each time that is learnt."""
        self._rows.append(row.tobytes())
        if len(self._rows) >= self._every:
            payload = b"".join(self._rows)
            self._rows.clear()
            self._sent += 1
            self._post(sealed(REPORTS, self._session, self._sent, self._who, payload, self._key))

    def newest(self) -> bytes | None:
        """The newest belief that has come, those before it counted as repeated where they are."""
        newest = None
        while (data := self._fetch()) is not None:
            packet = opened(data, self._key)
            if packet is None:
                self.refused["altered"] += 1
            elif packet.kind != BELIEF or packet.session != self._session or packet.who != self._who:
                self.refused["foreign"] += 1
            elif packet.number <= self._seen:
                self.refused["repeated"] += 1
            else:
                self._seen = packet.number
                newest = packet.payload
        return newest


class PacketLearner:
    """The other end: learns for one control process at a time; a new session starts anew.

    Args:
        make: an adapter for the robot, fresh.
        robot: the ideal robot.
        key: secret that both sides know.
    """

    def __init__(self, make: Callable[[], Adapter], robot: Robot, key: bytes = b""):
        self._make, self._key, self._width = make, key, 1 + 3 * robot.n
        self._who = identity(make())
        self._session = self._seen = -1
        self._sent = 0
        self.refused: Counter[str] = Counter()
        """Packets that were not taken, by reason."""

    def _answer(self, data: bytes) -> bytes | None:
        """What to send back for a packet, if it was one and there is something new to say."""
        packet = opened(data, self._key)
        if packet is None:
            self.refused["altered"] += 1
            return None
        if packet.kind != REPORTS or packet.who != self._who or len(packet.payload) % (8 * self._width):
            self.refused["foreign"] += 1
            return None
        if packet.session != self._session:
            self._twin = Twin(self._make())
            self._session, self._seen, self._sent = packet.session, -1, 0
        if packet.number <= self._seen:
            self.refused["repeated"] += 1
            return None
        self._seen = packet.number
        belief = self._twin.take(np.frombuffer(packet.payload).reshape(-1, self._width))
        if belief is None or len(belief) >= MOST:
            return None
        self._sent += 1
        return sealed(BELIEF, self._session, self._sent, self._who, belief, self._key)


def check_door(host: str, key: bytes) -> None:
    """Refuse to listen beyond this machine without a key."""
    if not host.startswith("127.") and not key:
        raise RetorqueError(f"listening on {host} needs a --key that only you know; without one use 127.0.0.1")
