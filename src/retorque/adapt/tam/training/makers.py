"""Who makes the shards of a run: this process in between steps, processes beside it, or another process of the run."""

from __future__ import annotations

import multiprocessing
import os
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from retorque.adapt.tam.training.shards import Recipe, make_shard, work
from retorque.work.errors import RetorqueError


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
            spawn.Process(target=work, args=(*common, first + worker, count), daemon=True) for worker in range(count)
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
