"""The rolling store of rollouts that training batches are drawn from, with robots of different size side by side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.physical import PhysicalRange
from retorque.adapt.tam.preset import Preset
from retorque.adapt.tam.training.recipe import load_shard, with_armature
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot

JOINT_AXES: dict[str, tuple[int, ...]] = {
    "fast": (2,),
    "slow": (2,),
    "window": (4,),
    "A": (3, 4),
    "ideal_mass": (3, 4),
    "ideal_inverse": (3, 4),
    "probe_matrix": (4, 5),
    "probe_bias": (4,),
    "dead_zone": (1,),
    "torque_scale": (1,),
    "b": (3,),
    "losses": (3,),
    "ideal_bias": (3,),
    "acceleration": (3,),
    "external": (3,),
    "command": (3,),
    "joint_numbers": (1,),
    "payload_numbers": (),
}
"""Which axes of a shard's arrays count joints."""
PER_ROLLOUT = ("fast", "slow", "dead_zone", "torque_scale", "joint_numbers", "payload_numbers")
"""Arrays that belong to a rollout as a whole; the others belong to its states."""


class Scales:
    """A robot's `Context` as tensors padded to `joints`; missing joints have unit scales."""

    def __init__(self, context: Context, joints: int):
        robot = context.robot
        self.robot, self.physical = robot, PhysicalRange(context)
        limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0 * context.unit)
        values = {
            "unit": context.unit,
            "load": context.load,
            "armature": robot.armature,
            "armature_range": context.armature_range,
            "armature_shift": context.armature_shift,
            "limit": limit,
            "command_noise": context.profile.command_noise_white,
        }
        self.values = {name: _padded(value.astype(np.float32), (0,), joints, 1.0) for name, value in values.items()}
        self.values["static"] = _padded(context.static, (0,), joints, 0.0)
        self.values["present"] = torch.arange(joints) < robot.n


class Pool:
    """The newest `capacity` shards; `draw` makes a batch of rollouts out of them."""

    def __init__(self, preset: Preset, joints: int, capacity: int):
        self.preset, self.joints, self.capacity = preset, joints, capacity
        self._shards: list[dict[str, Tensor]] = []
        self._scales: list[Scales] = []

    def __len__(self) -> int:
        return len(self._shards)

    def add(self, path: Path) -> None:
        """Take in a shard; the oldest leaves when there are too many."""
        arrays, head = load_shard(path, self.preset)
        robot = with_armature(Robot.load(head["robot"]), np.array(head["armature"]))
        scales = Scales(Context(robot), self.joints)
        joint, payload = scales.physical.encode(Parameters.unflatten(scales.robot, arrays["parameters"].astype(float)))
        arrays.update(joint_numbers=joint.astype(np.float32), payload_numbers=payload.astype(np.float32))
        fill = {"torque_scale": 1.0}
        self._shards.append(
            {k: _padded(arrays[k], axes, self.joints, fill.get(k, 0.0)) for k, axes in JOINT_AXES.items()}
        )
        self._scales.append(scales)
        if len(self._shards) > self.capacity:
            self._shards.pop(0)
            self._scales.pop(0)

    def draw(self, rollouts: int, states: int, rng: np.random.Generator) -> dict[str, Tensor]:
        """A batch: rollouts with all columns, `states` states for each column, and each robot's scales."""
        which = rng.integers(0, len(self._shards), rollouts)
        parts: dict[str, list[Tensor]] = {}
        for index in which:
            shard, scales = self._shards[index], self._scales[index].values
            row = int(rng.integers(len(shard["fast"])))
            picked = torch.from_numpy(rng.permutation(shard["A"].shape[2])[:states])
            for key, value in shard.items():
                parts.setdefault(key, []).append(value[row] if key in PER_ROLLOUT else value[row][:, picked])
            for key, value in scales.items():
                parts.setdefault(key, []).append(value)
        return {key: torch.stack(values) for key, values in parts.items()}


def _padded(array: np.ndarray, axes: tuple[int, ...], size: int, fill: float) -> Tensor:
    widths = [(0, size - array.shape[axis] if axis in axes else 0) for axis in range(array.ndim)]
    return torch.from_numpy(np.pad(array, widths, constant_values=fill))
