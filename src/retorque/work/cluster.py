"""A Ray cluster: joining one, or starting one on this machine."""

from __future__ import annotations

import importlib.util
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from retorque.work.errors import RetorqueError


def require_ray(cluster: str) -> None:
    """Refuse to go on when a cluster is asked for and Ray is not installed."""
    if cluster and importlib.util.find_spec("ray") is None:
        raise RetorqueError("--cluster needs Ray; install it with `pip install 'retorque[cluster]'`")


@contextmanager
def joined_cluster(address: str, at_once: int) -> Iterator[Any]:
    """The `ray` module, connected to a cluster until the end of the context.

    Args:
        address: `auto` (one that runs on this machine), `local` (a new one, of this machine only) or HOST:PORT.
        at_once: tasks at a time of a new one; 0: one a core.
    """
    require_ray(address)
    import ray

    ours = not ray.is_initialized()
    if ours:
        _connect(ray, address, at_once or os.cpu_count() or 1)
    try:
        yield ray
    finally:
        if ours:
            ray.shutdown()


def result_of(ray: Any, task: Any, what: str) -> Any:
    """The result of a finished task; its failure as a sentence, unless it was a sentence already."""
    try:
        return ray.get(task)
    except RetorqueError:  # bad input, found by the task: Ray raises it as both kinds
        raise
    except ray.exceptions.RayError as error:
        cause = getattr(error, "cause", None)
        if isinstance(cause, RetorqueError):
            raise RetorqueError(str(cause)) from error
        reason = str(error).strip().splitlines()[-1]
        raise RetorqueError(f"the Ray task for {what} failed ({reason}); run again without --cluster to see why") from (
            error
        )


def _connect(ray: Any, address: str, at_once: int) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        if address == "local":
            ray.init(address=address, num_cpus=at_once, include_dashboard=False, **quiet)
        else:
            _check_listening(address)
            ray.init(address=address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise RetorqueError(
            f"no Ray cluster at '{address}' ({reason}); start one with `ray start --head`, or say --cluster local"
        ) from error


def _check_listening(address: str) -> None:
    """Raise OSError when nothing listens at host:port: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if "://" not in address and host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=5.0).close()
