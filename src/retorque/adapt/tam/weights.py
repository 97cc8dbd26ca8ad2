"""Weights as safetensors with a JSON header that says what they are for; anything that does not fit is refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from retorque.adapt.tam.preset import FORMAT, RATE, Preset
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

FOLDER = Path(__file__).parent / "weights"
"""Where the weights on board lie."""
KEY = "retorque-tam"
GRAVITY = "torques include gravity"


def checksum(tensors: dict[str, Array]) -> str:
    """SHA-256 over names, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        array = np.ascontiguousarray(tensors[name], dtype=np.float32)
        digest.update(f"{name}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_weights(
    path: Path, tensors: dict[str, Array], preset: Preset, robots: list[str], only: str, made: dict[str, Any]
) -> None:
    """Write weights whole.

    Args:
        path: the file.
        tensors: the network's, by name, float32.
        preset: its sizes and variant.
        robots: robots it was trained on.
        only: the one robot it was fine-tuned for, or "" for weights that serve any arm.
        made: how: seed, steps, minutes.
    """
    header = {
        "format": FORMAT,
        "preset": preset.header(),
        "robots": robots,
        "only": only,
        "joints": {name: list(Robot.load(name).joint_names) for name in robots},
        "rate": RATE,
        "gravity": GRAVITY,
        "ranges": "the profile of each robot's card",
        "made": made,
        "checksum": checksum(tensors),
    }
    write_whole(path, save(tensors, metadata={KEY: json.dumps(header)}))


def load_weights(path: Path) -> tuple[dict[str, Array], Preset, dict[str, Any]]:
    """Tensors, preset and header of a file; a truncated, altered or foreign one is refused."""
    tensors, header = read(path, KEY, "TAM", FORMAT)
    return tensors, Preset.of(header["preset"]), header


def read(path: Path, key: str, kind: str, version: int) -> tuple[dict[str, Array], dict[str, Any]]:
    """Tensors of a safetensors file and the JSON header under a key; a truncated, altered or foreign one is refused."""
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {})[key])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        found, expected = header["format"], header["checksum"]
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RetorqueError(f"'{path}' does not hold {kind} weights ({error}); train or copy them again") from error
    if found != version:
        raise RetorqueError(f"'{path}' has weights of format {found}, this version reads {version}; train them again")
    if checksum(tensors) != expected:
        raise RetorqueError(f"'{path}' was altered: its numbers do not match its checksum; copy it again")
    return tensors, header


def check(header: dict[str, Any], path: Path, robot: Robot, timestep: float) -> None:
    """Refuse weights of another robot, joint order, rate or gravity convention."""
    check_rate(header["rate"], path, timestep)
    if header["gravity"] != GRAVITY:
        raise RetorqueError(f"'{path}' was trained with another gravity convention ('{header['gravity']}')")
    only = header["only"]
    if only and only != robot.name:
        raise RetorqueError(f"'{path}' was fine-tuned for '{only}', not for '{robot.name}'; use adapter 'tam'")
    joints = header["joints"].get(robot.name)
    if joints is not None and joints != list(robot.joint_names):
        raise RetorqueError(
            f"'{path}' expects joints {', '.join(joints)} of '{robot.name}', not {', '.join(robot.joint_names)}"
        )


def check_rate(rate: float, path: Path, timestep: float) -> None:
    """Refuse weights of another control rate [Hz]."""
    if abs(timestep * rate - 1.0) > 1e-6:
        raise RetorqueError(
            f"'{path}' was trained at {rate:.0f} Hz and cannot run at {1.0 / timestep:.0f} Hz; use a timestep of "
            f"{1.0 / rate} s"
        )


def find(variant: str, robot: str = "") -> Path:
    """The weights on board of a variant: for one robot, or for any arm."""
    path = FOLDER / (f"{variant}-{robot}.safetensors" if robot else f"{variant}.safetensors")
    if not path.exists():
        have = sorted(p.stem for p in FOLDER.glob("*.safetensors"))
        raise RetorqueError(
            f"no weights '{path.stem}' on board (there are: {', '.join(have) or 'none'}); make them with "
            f"`retorque train tam{f' --robots {robot}' if robot else ''}`"
        )
    return path
