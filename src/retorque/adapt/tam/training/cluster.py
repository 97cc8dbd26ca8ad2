"""Shards as tasks of a Ray cluster: each task gives back the bytes of a shard, and this process writes them whole."""

from __future__ import annotations

import importlib.util
import logging
import socket
from pathlib import Path
from typing import Any

from retorque.adapt.tam.training.makers import Maker
from retorque.adapt.tam.training.shards import Recipe, shard_path
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


def require_ray() -> None:
    """Refuse to go on without Ray."""
    if importlib.util.find_spec("ray") is None:
        raise RetorqueError("--cluster needs Ray; install it with `pip install 'retorque[cluster]'`")


class RayTasks(Maker):
    """Tasks of a Ray cluster make the shards, at most `at_once` at a time.

    Machines of the cluster need Retorque, but no folder in common with this one.
    """

    def __init__(self, folder: Path, recipe: Recipe, address: str, at_once: int):
        require_ray()
        self._folder, self._recipe, self._address, self._at_once = folder, recipe, address, at_once
        self._wanted = range(0)
        self._running: dict[Any, int] = {}  # the number of the shard that each task makes
        self._ours = False

    def __enter__(self) -> RayTasks:
        import ray

        self._ours = not ray.is_initialized()
        if self._ours:
            _connect(self._address, self._at_once)
        self._make = ray.remote(_make)
        return self

    def __exit__(self, *_: object) -> None:
        import ray

        for task in self._running:
            ray.cancel(task, force=True)
        self._running.clear()
        if self._ours:
            ray.shutdown()

    def want(self, first: int, count: int) -> None:
        """Write what is finished and start what is missing."""
        self._wanted = range(first, count)
        self._turn(0.0)

    def bring(self, index: int) -> None:
        """Wait a moment."""
        self._turn(0.2)

    def _turn(self, patience: float) -> None:
        import ray

        if self._running:
            done, _ = ray.wait(list(self._running), timeout=patience)
            for task in done:
                index = self._running.pop(task)
                try:
                    content = ray.get(task)
                except ray.exceptions.RayError as error:
                    reason = str(error).strip().splitlines()[-1]
                    raise RetorqueError(
                        f"the Ray task for shard {index} failed ({reason}); run again without --cluster to see why"
                    ) from error
                write_whole(shard_path(self._folder, index), content)
        busy = set(self._running.values())
        for index in self._wanted:
            if len(self._running) >= self._at_once:
                break
            if index not in busy and not shard_path(self._folder, index).exists():
                self._running[self._make.remote(self._recipe, index)] = index


def _make(recipe: Recipe, index: int) -> bytes:
    """What a task does."""
    return recipe.make(index)


def _connect(address: str, at_once: int) -> None:
    """Join the cluster at an address, or start one here."""
    import ray

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
