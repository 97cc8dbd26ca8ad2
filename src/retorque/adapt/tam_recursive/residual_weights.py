"""Weights of the learned module that reads residuals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retorque.adapt.tam.tam_weights import FOLDER
from retorque.adapt.tam_recursive.residuals import BLOCK, FEATURES, TAPS
from retorque.learn.weights import WeightsHeader, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK = "tam-recursive"
FORMAT = 1
ON_BOARD = FOLDER / "tam-recursive.safetensors"
SHAPE = {"block": BLOCK, "features": FEATURES, "taps": TAPS, "rate": 1000.0}
"""What the numbers depend on."""


def save_weights(path: Path, tensors: Mapping[str, Array], robots: Sequence[Robot], made: dict[str, Any]) -> None:
    """Write weights whole; `made` says how."""
    save_network(path, tensors, NETWORK, FORMAT, weights_header(robots, SHAPE, made, rate=SHAPE["rate"]))


def load_weights(path: Path = ON_BOARD) -> tuple[dict[str, Array], WeightsHeader]:
    """Tensors and header of a file (default: the ones on board); a truncated, altered or foreign one is refused."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    if header["shape"] != SHAPE:
        raise RetorqueError(f"'{path}' was made for another version of tam-recursive; train it again")
    return tensors, header
