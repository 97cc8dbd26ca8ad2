"""TAM's weights: where they lie on board, and the preset in their header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retorque.adapt.tam.preset import FORMAT, RATE, Preset
from retorque.learn.weights import WeightsHeader, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FOLDER = Path(__file__).parent / "weights"
"""Where the weights on board lie."""
NETWORK = "TAM"


def save_weights(
    path: Path, tensors: Mapping[str, Array], preset: Preset, robots: Sequence[Robot], only: str, made: dict[str, Any]
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
    header = weights_header(robots, preset.header(), made, only=only, rate=RATE)
    save_network(path, tensors, NETWORK, FORMAT, header)


def load_weights(path: Path) -> tuple[dict[str, Array], Preset, WeightsHeader]:
    """Tensors, preset and header of a file; a truncated, altered or foreign one is refused."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    try:
        preset = Preset.of(header["shape"])
    except RetorqueError as error:
        raise RetorqueError(f"'{path}': {error}") from error
    return tensors, preset, header


def find(variant: str, robot: str = "") -> Path:
    """The weights on board of a variant: for one robot, or for any arm."""
    path = FOLDER / (f"{variant}-{robot}.safetensors" if robot else f"{variant}.safetensors")
    if not path.exists():
        have = sorted(p.stem for p in FOLDER.glob("*.safetensors"))
        how = f" --robots {robot}" if robot else " --preset paper-small" if variant == "tam-paper" else ""
        raise RetorqueError(
            f"no weights '{path.stem}' on board (there are: {', '.join(have) or 'none'}); make them with "
            f"`retorque train tam{how}`"
        )
    return path
