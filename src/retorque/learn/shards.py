"""Shards: numbered files of training data, each of which follows from a recipe and its number alone."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from retorque.work.files import write_whole
from retorque.work.processes import end_with_parent


class Recipe(Protocol):
    """What all shards of a run are made from: shard number i follows from it and i, wherever it is made."""

    def make(self, index: int) -> bytes:
        """The content of shard number `index`."""
        ...


def shard_path(folder: Path, index: int) -> Path:
    """Where shard number `index` lies."""
    return folder / f"shard-{index:06d}.safetensors"


def shard_seed(seed: int, index: int) -> int:
    """The seed of shard number `index`."""
    return int(np.random.SeedSequence([seed, index, 7]).generate_state(1)[0])


def make_shard(folder: Path, index: int, recipe: Recipe) -> Path:
    """Make shard number `index` unless it is there."""
    path = shard_path(folder, index)
    if not path.exists():
        write_whole(path, recipe.make(index))
    return path


def make_shards(folder: Path, recipe: Recipe, wanted: Any, parent: int, first: int, stride: int) -> None:
    """What a process beside the training does: every `stride`-th shard that is wanted, until its parent ends.

    Args:
        folder: where shards lie.
        recipe: what they are made from.
        wanted: shared number of shards that are wanted so far.
        parent: process number of the training.
        first: number of the first shard.
        stride: how many such processes there are.
    """
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the training hears the interrupt and ends this process
    index = first
    while True:
        if index >= wanted.value:
            time.sleep(0.2)
            continue
        make_shard(folder, index, recipe)
        index += stride
