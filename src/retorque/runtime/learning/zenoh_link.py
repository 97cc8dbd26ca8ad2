"""`learn` on another machine, over zenoh: through routers, where no datagram finds its way (an extra)."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Callable
from typing import Any

from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.runtime.learning.packets import PacketLearner, PacketLink, check_door
from retorque.work.errors import RetorqueError

PREFIX = "zenoh:"
"""What an address begins with that is a zenoh endpoint, such as zenoh:tcp/192.168.1.7:7447."""
WAITING = 256
"""Packets that may wait to be read; older ones are dropped."""


def endpoint_of(text: str) -> str:
    """The endpoint in zenoh:PROTOCOL/HOST:PORT."""
    endpoint = text.removeprefix(PREFIX)
    protocol, slash, place = endpoint.partition("/")
    host, colon, port = place.rpartition(":")
    if not (text.startswith(PREFIX) and slash and protocol and colon and host and port.isdigit()):
        raise RetorqueError(f"a zenoh address is zenoh:tcp/HOST:PORT, such as zenoh:tcp/127.0.0.1:7447, not '{text}'")
    return endpoint


class ZenohMail:
    """Packets under one name to another: one that is not read in time is dropped, oldest first.

    Args:
        how: `listen` or `connect`.
        text: the address.
        reads: the name under which packets come.
        writes: the name under which they go.
    """

    def __init__(self, how: str, text: str, reads: str, writes: str):
        endpoint = endpoint_of(text)
        try:
            import zenoh
        except ImportError:
            raise RetorqueError("learning over zenoh needs the extra: pip install 'retorque[zenoh]'") from None
        config = zenoh.Config()
        config.insert_json5("mode", json.dumps("peer"))
        config.insert_json5(f"{how}/endpoints", json.dumps([endpoint]))
        if how == "connect":  # opens no door of its own, and goes on where nobody is there yet
            config.insert_json5("listen/endpoints", json.dumps([]))
            config.insert_json5("connect/exit_on_failure", json.dumps(False))
            config.insert_json5("connect/timeout_ms", json.dumps(0))
        config.insert_json5("scouting/multicast/enabled", json.dumps(False))
        config.insert_json5("scouting/gossip/enabled", json.dumps(False))
        try:
            self._session: Any = zenoh.open(config)
        except zenoh.ZError as error:
            raise RetorqueError(f"zenoh cannot {how} at {endpoint} ({error}); choose another address") from None
        self._come: queue.Queue[bytes] = queue.Queue(WAITING)
        self._subscriber = self._session.declare_subscriber(reads, self._take)
        self._publisher = self._session.declare_publisher(writes)

    def _take(self, sample: Any) -> None:
        if self._come.full():
            with contextlib.suppress(queue.Empty):
                self._come.get_nowait()
        with contextlib.suppress(queue.Full):
            self._come.put_nowait(sample.payload.to_bytes())

    def put(self, data: bytes) -> None:
        """Send a packet."""
        self._publisher.put(data)

    def get(self, timeout: float = 0.0) -> bytes | None:
        """A packet that has come, or comes within a time [s]."""
        try:
            return self._come.get(timeout=timeout) if timeout else self._come.get_nowait()
        except queue.Empty:
            return None

    def close(self) -> None:
        """Nothing more comes or goes."""
        self._session.close()


class ZenohLink(PacketLink):
    """The way to a learner behind a zenoh endpoint.

    Args:
        adapter: what corrects here; the other side must run the same.
        address: zenoh:tcp/HOST:PORT, of the learner or of a router that both know.
        key: secret that both sides know.
    """

    def __init__(self, adapter: Adapter, address: str, key: bytes = b""):
        super().__init__(adapter, key)
        name = f"retorque/{self._who.hex()}"
        self._mail = ZenohMail("connect", address, f"{name}/beliefs", f"{name}/reports")

    def close(self) -> None:
        self._mail.close()

    def _post(self, data: bytes) -> None:
        self._mail.put(data)

    def _fetch(self) -> bytes | None:
        return self._mail.get()


class ZenohLearner(PacketLearner):
    """The other end.

    Args:
        make: an adapter for the robot, fresh.
        robot: the ideal robot.
        address: zenoh:tcp/HOST:PORT to listen on.
        key: secret that both sides know.
    """

    def __init__(self, make: Callable[[], Adapter], robot: Robot, address: str, key: bytes = b""):
        check_door(endpoint_of(address).partition("/")[2], key)
        super().__init__(make, robot, key)
        name = f"retorque/{self._who.hex()}"
        self._mail = ZenohMail("listen", address, f"{name}/reports", f"{name}/beliefs")
        self.address = address

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Learn while `goes_on`."""
        try:
            while goes_on():
                data = self._mail.get(0.1)
                answer = None if data is None else self._answer(data)
                if answer is not None:
                    self._mail.put(answer)
        finally:
            self._mail.close()
