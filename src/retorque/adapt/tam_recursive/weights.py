"""Weights of the learned module: safetensors with a JSON header; anything that does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from retorque.adapt.tam.weights import FOLDER, checksum
from retorque.adapt.tam_recursive.residuals import BLOCK, FEATURES, TAPS
from retorque.errors import RetorqueError
from retorque.files import write_whole

Array = np.ndarray

KEY = "retorque-tam-recursive"
FORMAT = 1
ON_BOARD = FOLDER / "tam-recursive.safetensors"
SHAPE = {"block": BLOCK, "features": FEATURES, "taps": TAPS, "rate": 1000.0}
"""What the numbers depend on."""


def save_weights(path: Path, tensors: dict[str, Array], made: dict[str, Any]) -> None:
    """Write weights whole; `made` says how."""
    header = {"format": FORMAT, "shape": SHAPE, "made": made, "checksum": checksum(tensors)}
    write_whole(path, save(tensors, metadata={KEY: json.dumps(header)}))


def load_weights(path: Path | None = None) -> tuple[dict[str, Array], dict[str, Any]]:
    """Tensors and header of a file (default: the ones on board); a truncated, altered or foreign one is refused."""
    path = path or ON_BOARD
    try:
        with safe_open(path, framework="np") as file:
            header = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        version, expected, shape = header["format"], header["checksum"], header["shape"]
    except (OSError, SafetensorError, KeyError, ValueError, TypeError) as error:
        raise RetorqueError(
            f"'{path}' does not hold tam-recursive weights ({error}); make them with `retorque train tam-recursive`"
        ) from error
    if version != FORMAT or shape != SHAPE:
        raise RetorqueError(f"'{path}' was made for another version of tam-recursive; train it again")
    if checksum(tensors) != expected:
        raise RetorqueError(f"'{path}' was altered: its numbers do not match its checksum; copy it again")
    return tensors, header


def check(header: dict[str, Any], timestep: float) -> None:
    """Refuse another rate."""
    rate = header["shape"]["rate"]
    if abs(timestep * rate - 1.0) > 1e-6:
        raise RetorqueError(
            f"tam-recursive was trained at {rate:.0f} Hz and cannot run at {1.0 / timestep:.0f} Hz; use a timestep of "
            f"{1.0 / rate} s"
        )
