"""What a push does to the box, learnt from pushes: the forward model in NumPy."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.learn.weights import WeightsHeader, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.tasks.push.box_task import FRICTION, HALF, MASS
from retorque.tasks.push.pushes import Pushes
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK, FORMAT = "push model", 1
FOLDER = Path(__file__).parent / "weights"
ON_BOARD = FOLDER / "push-model.safetensors"
UNIT = np.array([0.05, 0.05, 0.5])
"""What counts as one: place [m], turn [rad]."""
SHAPE = {"box": list(HALF), "mass": MASS, "friction": FRICTION}
"""What the numbers depend on."""


class PushModel:
    """A small perceptron from a push to the change of the box's pose in its own frame.

    Args:
        tensors: weights by name.
    """

    def __init__(self, tensors: dict[str, Array]):
        self._layers = [(tensors[f"{i}.weight"].T, tensors[f"{i}.bias"]) for i in (0, 2, 4)]

    def __call__(self, pushes: Pushes) -> Array:
        """(..., 3) [m, m, rad]"""
        x = pushes.features().astype(np.float32)
        for index, (weight, bias) in enumerate(self._layers):
            x = x @ weight + bias
            if index < len(self._layers) - 1:
                x = np.tanh(x)
        return x.astype(float) * UNIT


def load_push_model(path: Path = ON_BOARD) -> PushModel:
    """The model of a file; default: the one on board."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    if header["shape"] != SHAPE:
        raise RetorqueError(f"'{path}' was learnt with another box; run `retorque train push` again")
    return PushModel(tensors)


def save_push_model(path: Path, tensors: dict[str, Array], robot: Robot, made: dict[str, object]) -> Path:
    """Write the model whole."""
    header: WeightsHeader = weights_header([robot], dict(SHAPE), dict(made), only=robot.name)
    return save_network(path, tensors, NETWORK, FORMAT, header)
