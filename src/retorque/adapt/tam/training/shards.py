"""Shards of training data as safetensors files with a JSON header, and the process that makes them."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.preset import FORMAT, Preset
from retorque.adapt.tam.training.rollouts import RolloutSettings, generate
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole
from retorque.work.processes import end_with_parent

HISTORY_FIELDS = ("average", "patch", "stride", "half_window", "slow", "columns", "window")
"""What a shard's arrays depend on; the network's sizes do not matter to it."""


def shard_path(folder: Path, index: int) -> Path:
    """Where shard number `index` lies."""
    return folder / f"shard-{index:06d}.safetensors"


def shard_seed(seed: int, index: int) -> int:
    """The seed of shard number `index`."""
    return int(np.random.SeedSequence([seed, index, 7]).generate_state(1)[0])


def header(robot: Robot, preset: Preset, settings: RolloutSettings, seed: int) -> dict[str, Any]:
    """What travels with a shard."""
    history = {name: getattr(preset, name) for name in HISTORY_FIELDS}
    return {
        "format": FORMAT,
        "robot": robot.name,
        "joints": list(robot.joint_names),
        "armature": robot.armature.tolist(),
        "history": history,
        "rollouts": asdict(settings),
        "seed": seed,
    }


def shard_bytes(arrays: dict[str, Array], head: dict[str, Any]) -> bytes:
    """The content of a shard's file."""
    return save(arrays, metadata={"retorque-tam-shard": json.dumps(head)})


def load_shard(path: Path, preset: Preset) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and header of a shard; one made for other histories is refused."""
    try:
        with safe_open(path, framework="np") as file:
            head = json.loads((file.metadata() or {})["retorque-tam-shard"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        made = {name: head["history"][name] for name in HISTORY_FIELDS}
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RetorqueError(f"cannot read the shard '{path}': {error!r}; delete it and it is made again") from error
    if head["format"] != FORMAT or made != {name: getattr(preset, name) for name in HISTORY_FIELDS}:
        raise RetorqueError(f"the shard '{path}' was made for other histories than preset '{preset.name}'; delete it")
    return arrays, head


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all shards of a run are made from: shard number i follows from it and i, wherever it is made."""

    robots: tuple[str, ...]
    """Robots, which take turns."""
    preset: Preset
    """Whose histories."""
    rollouts: RolloutSettings
    """How rollouts are made."""
    seed: int
    """Of the run."""

    def make(self, index: int) -> bytes:
        """The content of shard number `index`."""
        own = shard_seed(self.seed, index)
        robot = Robot.load(self.robots[index % len(self.robots)])
        rng = np.random.default_rng([own, 1])
        if rng.uniform() < self.rollouts.other_armature:
            robot = with_armature(robot, _other_armature(robot, rng))
        head = header(robot, self.preset, self.rollouts, own)
        arrays = generate(Context(robot), self.preset, self.rollouts, own)
        return shard_bytes(arrays, head)


def make_shard(folder: Path, index: int, recipe: Recipe) -> Path:
    """Make shard number `index` unless it is there."""
    path = shard_path(folder, index)
    if not path.exists():
        write_whole(path, recipe.make(index))
    return path


def with_armature(robot: Robot, armature: Array) -> Robot:
    """The robot with other armatures (n,) [kg·m²]."""
    values = iter(armature)
    links = []
    for link in robot.links:
        joint = link.joint
        if joint is not None and joint.kind != "free":
            link = replace(link, joint=replace(joint, armature=float(next(values))))
        links.append(link)
    return robot.with_links(tuple(links))


def _other_armature(robot: Robot, rng: np.random.Generator) -> Array:
    """Armatures of 0.3 to 6 times the largest hidden one, much the same for all joints."""
    largest = profile_of(robot).armature_max
    return largest * 0.3 * 20.0 ** rng.uniform() * rng.uniform(0.7, 1.4, robot.n)


def work(folder: Path, recipe: Recipe, wanted: Any, parent: int, first: int, stride: int) -> None:
    """What a generator process does: every `stride`-th shard that is wanted, until its parent ends.

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
