"""Who makes the shards of a run: this process in between steps, others beside it, a cluster, or another of the run."""

from __future__ import annotations

import multiprocessing
import os
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from retorque.learn.shards import Recipe, make_shard, make_shards, shard_path
from retorque.work.cluster import joined_cluster, require_ray, result_of
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole


class Maker(ABC):
    """Puts shards into a folder; used as a context, at whose end nothing is being made any more."""

    def __enter__(self) -> Maker:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def want(self, first: int, count: int) -> None:
        """Shards from number `first` to below `count` are needed now or soon; returns at once."""

    @abstractmethod
    def bring(self, index: int) -> None:
        """Shard `index` is needed now: make it, or wait a moment for it; raises when it will never come."""


class InBetween(Maker):
    """Makes each shard when it is needed."""

    def __init__(self, folder: Path, recipe: Recipe):
        self._folder, self._recipe = folder, recipe

    def bring(self, index: int) -> None:
        """Make it."""
        make_shard(self._folder, index, self._recipe)


class Elsewhere(Maker):
    """Another process of the run makes them; the launcher ends this one should that one fail."""

    def bring(self, index: int) -> None:
        """Wait a moment."""
        time.sleep(0.1)


class Processes(Maker):
    """Processes on this machine make them beside the training, `count` at a time."""

    def __init__(self, folder: Path, recipe: Recipe, count: int, first: int):
        spawn = multiprocessing.get_context("spawn")
        self._wanted = spawn.Value("i", 0)
        common = (folder, recipe, self._wanted, os.getpid())
        self._workers: list[Any] = [
            spawn.Process(target=make_shards, args=(*common, first + worker, count), daemon=True)
            for worker in range(count)
        ]

    def __enter__(self) -> Processes:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.join()

    def want(self, first: int, count: int) -> None:
        """The processes go on up to there."""
        self._wanted.value = count

    def bring(self, index: int) -> None:
        """Wait a moment."""
        if not all(worker.is_alive() for worker in self._workers):
            raise RetorqueError("a process that makes rollouts has ended; run again with --workers 0 to see why")
        time.sleep(0.1)


class RayTasks(Maker):
    """Tasks of a Ray cluster make them, at most `at_once` at a time, and this process writes the files.

    Machines of the cluster need Retorque, but no folder in common with this one.
    """

    def __init__(self, folder: Path, recipe: Recipe, address: str, at_once: int):
        require_ray(address)
        self._folder, self._recipe, self._address, self._at_once = folder, recipe, address, at_once
        self._wanted = range(0)
        self._running: dict[Any, int] = {}  # the number of the shard that each task makes
        self._context = ExitStack()

    def __enter__(self) -> RayTasks:
        self._ray = self._context.enter_context(joined_cluster(self._address, self._at_once))
        self._make = self._ray.remote(_make)
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()
        self._context.close()

    def want(self, first: int, count: int) -> None:
        """Write what is finished and start what is missing."""
        self._wanted = range(first, count)
        self._turn(0.0)

    def bring(self, index: int) -> None:
        """Wait a moment."""
        self._turn(0.2)

    def _turn(self, patience: float) -> None:
        if self._running:
            done, _ = self._ray.wait(list(self._running), timeout=patience)
            for task in done:
                index = self._running.pop(task)
                write_whole(shard_path(self._folder, index), result_of(self._ray, task, f"shard {index}"))
        busy = set(self._running.values())
        for index in self._wanted:
            if len(self._running) >= self._at_once:
                break
            if index not in busy and not shard_path(self._folder, index).exists():
                self._running[self._make.remote(self._recipe, index)] = index


def _make(recipe: Recipe, index: int) -> bytes:
    """What a task does."""
    return recipe.make(index)
