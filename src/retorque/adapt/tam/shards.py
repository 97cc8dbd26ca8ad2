"""Shards of training data as safetensors files with a JSON header, and the process that makes them."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.data import RolloutSettings, generate
from retorque.adapt.tam.preset import FORMAT, Preset
from retorque.errors import RetorqueError
from retorque.files import write_whole
from retorque.physics.profile import profile_of
from retorque.robots.robot import Robot

Array = np.ndarray

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


def save_shard(path: Path, arrays: dict[str, Array], head: dict[str, Any]) -> None:
    """Write a shard whole."""
    write_whole(path, save(arrays, metadata={"retorque-tam-shard": json.dumps(head)}))


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


def make_shard(
    folder: Path, index: int, robots: list[str], preset: Preset, settings: RolloutSettings, seed: int
) -> Path:
    """Make shard number `index` unless it is there; robots take turns."""
    path = shard_path(folder, index)
    if not path.exists():
        own = shard_seed(seed, index)
        robot = Robot.load(robots[index % len(robots)])
        rng = np.random.default_rng([own, 1])
        if rng.uniform() < settings.other_armature:
            robot = with_armature(robot, _other_armature(robot, rng))
        save_shard(path, generate(Context(robot), preset, settings, own), header(robot, preset, settings, own))
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


def work(
    folder: Path,
    robots: list[str],
    preset: Preset,
    settings: RolloutSettings,
    seed: int,
    worker: int,
    workers: int,
    wanted: Any,
    parent: int,
) -> None:
    """What a generator process does: every `workers`-th shard up to number `wanted.value`, until its parent ends."""
    index = worker
    while os.getppid() == parent:
        if index >= wanted.value:
            time.sleep(0.2)
            continue
        make_shard(folder, index, robots, preset, settings, seed)
        index += workers
