"""Doors of a fake: on this machine only."""

from __future__ import annotations

import socket

from retorque.work.errors import RetorqueError


def listen(host: str, port: int, waiting: int) -> socket.socket:
    """A socket that listens on a loopback address, with so many clients in its queue.

    Args:
        host: 127.0.0.1, 127.0.0.2, ...
        port: to listen on.
        waiting: clients that may wait to be accepted.
    """
    check_loopback(host)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise RetorqueError(
            f"cannot listen on {host}:{port} ({error.strerror}); give another --host, 127.0.0.2 say"
        ) from error
    listener.listen(waiting)
    return listener


def check_loopback(host: str) -> None:
    """Refuse any address but this machine's own."""
    if not host.startswith("127."):
        raise RetorqueError(f"a fake listens on this machine only (127.0.0.1, 127.0.0.2, ...), not on {host}")
