"""Demonstrations in one file: columns of frames, ten a second, episode after episode."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.tasks.scoop.pose_numbers import POSE
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

KIND, FORMAT = "scoop demonstrations", 1
COLUMNS = {
    "seen": (*POSE, "ball x", "ball y"),
    "x_des": POSE,
    "x_ref": POSE,
    "wrench": ("force x", "force y", "force z", "moment x", "moment y", "moment z"),
}
"""What a frame holds: what the policy sees, where the operator led, where compliance went, and what it felt."""
Frames = dict[str, Array]
"""One episode: each column (frames, numbers)."""


def save_episodes(path: Path, episodes: list[Frames], robot: str) -> Path:
    """Write episodes whole; at least one."""
    if not episodes:
        raise RetorqueError("there is no demonstration to write; record at least one that succeeded")
    arrays = {name: np.concatenate([episode[name] for episode in episodes]) for name in COLUMNS}
    lengths = [len(episode["seen"]) for episode in episodes]
    return save_tensors(path, arrays, KIND, FORMAT, {"lengths": lengths, "robot": robot})


def load_episodes(path: Path) -> list[Frames]:
    """The episodes of a file; a torn one, or one with other columns, is refused."""
    arrays, header = load_tensors(path, KIND, FORMAT, finite=True)
    ends = np.cumsum(np.array(header.get("lengths", []), dtype=int))
    for name, names in COLUMNS.items():
        if not len(ends) or name not in arrays or arrays[name].shape != (int(ends[-1]), len(names)):
            raise RetorqueError(f"'{path}' has no whole column '{name}'; record the demonstrations again")
    starts = [0, *ends[:-1]]
    return [{name: arrays[name][a:b] for name in COLUMNS} for a, b in zip(starts, ends, strict=True)]
