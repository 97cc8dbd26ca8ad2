"""`learn` on another machine, over UDP."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.runtime.learning.packets import PacketLearner, PacketLink, check_door
from retorque.work.errors import RetorqueError


def address_of(text: str) -> tuple[str, int]:
    """HOST:PORT as a pair."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) < 65536:
        raise RetorqueError(f"an address is HOST:PORT, such as 127.0.0.1:5750, not '{text}'")
    return host, int(port)


class UdpLink(PacketLink):
    """The way to a learner on another machine.

    Args:
        adapter: what corrects here; the other side must run the same.
        host: of the learner.
        port: of the learner.
        key: secret that both sides know.
    """

    def __init__(self, adapter: Adapter, host: str, port: int, key: bytes = b""):
        super().__init__(adapter, key)
        try:
            self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self._socket.connect((host, port))
        except OSError as error:
            raise RetorqueError(f"cannot reach a learner at {host}:{port} ({error}); check the address") from error
        self._socket.setblocking(False)

    def close(self) -> None:
        self._socket.close()

    def _post(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.send(data)

    def _fetch(self) -> bytes | None:
        try:
            return self._socket.recv(65536)
        except OSError:
            return None


class UdpLearner(PacketLearner):
    """The other end.

    Args:
        make: an adapter for the robot, fresh.
        robot: the ideal robot.
        host: address to listen on.
        port: to listen on; 0 takes a free one.
        key: secret that both sides know.
    """

    def __init__(self, make: Callable[[], Adapter], robot: Robot, host: str, port: int, key: bytes = b""):
        check_door(host, key)
        super().__init__(make, robot, key)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            raise RetorqueError(f"cannot listen on {host}:{port} ({error.strerror}); choose another port") from error
        self._socket.settimeout(0.1)
        self.port: int = self._socket.getsockname()[1]
        self.address = f"{host}:{self.port}"

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Learn while `goes_on`."""
        try:
            while goes_on():
                try:
                    data, sender = self._socket.recvfrom(65536)
                except TimeoutError:
                    continue
                answer = self._answer(data)
                if answer is not None:
                    with contextlib.suppress(OSError):
                        self._socket.sendto(answer, sender)
        finally:
            self._socket.close()
