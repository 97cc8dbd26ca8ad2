"""Weights of the learned module: safetensors with a JSON header; anything that does not fit is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from retorque.adapt.tam.weights import FOLDER, checksum, read
from retorque.adapt.tam_recursive.residuals import BLOCK, FEATURES, TAPS
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

KEY = "retorque-tam-recursive"
FORMAT = 1
ON_BOARD = FOLDER / "tam-recursive.safetensors"
SHAPE = {"block": BLOCK, "features": FEATURES, "taps": TAPS, "rate": 1000.0}
"""What the numbers depend on."""


def save_weights(path: Path, tensors: dict[str, Array], made: dict[str, Any]) -> None:
    """Write weights whole; `made` says how."""
    header = {"format": FORMAT, "shape": SHAPE, "made": made, "checksum": checksum(tensors)}
    write_whole(path, save(tensors, metadata={KEY: json.dumps(header)}))


def load_weights(path: Path = ON_BOARD) -> tuple[dict[str, Array], dict[str, Any]]:
    """Tensors and header of a file (default: the ones on board); a truncated, altered or foreign one is refused."""
    tensors, header = read(path, KEY, "tam-recursive", FORMAT)
    if header.get("shape") != SHAPE:
        raise RetorqueError(f"'{path}' was made for another version of tam-recursive; train it again")
    return tensors, header
