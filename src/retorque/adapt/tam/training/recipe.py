"""TAM's shards: what rollouts of a robot are recorded for, and what their files say."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.preset import FORMAT, Preset
from retorque.adapt.tam.training.rollouts import RolloutSettings, generate
from retorque.learn.shards import shard_seed
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, tensor_bytes

KIND = "a TAM shard"
HISTORY_FIELDS = ("average", "patch", "stride", "half_window", "slow", "columns", "window")
"""What a shard's arrays depend on; the network's sizes do not matter to it."""


@dataclass(frozen=True, kw_only=True)
class TamRecipe:
    """What all shards of a run are made from."""

    robots: tuple[str, ...]
    """Names on board or paths of files; robots take turns."""
    preset: Preset
    """Whose histories."""
    rollouts: RolloutSettings
    """How rollouts are made."""
    seed: int
    """Of the run."""

    def make(self, index: int) -> bytes:
        """The content of shard number `index`."""
        own = shard_seed(self.seed, index)
        name = self.robots[index % len(self.robots)]
        robot = Robot.load(name)
        rng = np.random.default_rng([own, 1])
        if rng.uniform() < self.rollouts.other_armature:
            robot = with_armature(robot, _other_armature(robot, rng))
        arrays = generate(Context(robot), self.preset, self.rollouts, own)
        return shard_bytes(arrays, shard_header(name, robot, self.preset, self.rollouts, own))


def shard_header(name: str, robot: Robot, preset: Preset, settings: RolloutSettings, seed: int) -> dict[str, Any]:
    """What travels with a shard of the robot that is loaded by a name or path."""
    return {
        "robot": name,
        "joints": list(robot.joint_names),
        "armature": robot.armature.tolist(),
        "history": _histories(preset),
        "rollouts": asdict(settings),
        "seed": seed,
    }


def shard_bytes(arrays: dict[str, Array], header: dict[str, Any]) -> bytes:
    """The content of a shard's file."""
    return tensor_bytes(arrays, KIND, FORMAT, header)


def load_shard(path: Path, preset: Preset) -> tuple[dict[str, Array], dict[str, Any]]:
    """Arrays and header of a shard; one made for other histories is refused."""
    arrays, header = load_tensors(path, KIND, FORMAT)
    if header.get("history") != _histories(preset):
        raise RetorqueError(f"the shard '{path}' was made for other histories than preset '{preset.name}'; delete it")
    return arrays, header


def _histories(preset: Preset) -> dict[str, Any]:
    return {name: getattr(preset, name) for name in HISTORY_FIELDS}


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
