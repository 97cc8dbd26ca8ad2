"""The learnt pushing policy in NumPy: an actor, and for RMA the encoder that reads a latent off the last pushes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import WeightsHeader, check_only, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.tasks.push.push_choice import NUMBERS, OBSERVATIONS, SENSED, SIDES
from retorque.tasks.push.push_model import FOLDER, SHAPE
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK, FORMAT = "push policy", 1
PPO, RMA = FOLDER / "push-ppo.safetensors", FOLDER / "push-rma.safetensors"
"""The two on board."""
HISTORY = 3
"""Pushes that the history holds."""
OUTPUTS = SIDES * (1 + NUMBERS)
"""A preference for each side, then the numbers of a push there."""


class PushNetwork:
    """A perceptron from observation and latent to preferences and pushes; without an encoder there is no latent.

    Args:
        tensors: weights by name: `actor.N.weight`, `encoder.N.weight`, biases.
    """

    def __init__(self, tensors: dict[str, Array]):
        self._actor, self._encoder = dense_layers(tensors, "actor"), dense_layers(tensors, "encoder")
        wide = self._actor[0][0].shape[0] if self._actor else 0
        self.latent = self._encoder[-1][0].shape[1] if self._encoder else 0
        """Numbers of the latent."""
        narrow = self._actor[-1][0].shape[1] if self._actor else 0
        history = self._encoder[0][0].shape[0] if self._encoder else HISTORY * SENSED
        if (wide, narrow, history) != (OBSERVATIONS + self.latent, OUTPUTS, HISTORY * SENSED):
            raise RetorqueError(
                f"a push policy takes {OBSERVATIONS} numbers and its latent and gives {OUTPUTS}; this one takes {wide} "
                f"and gives {narrow}"
            )

    def __call__(self, observation: Array, history: Array) -> tuple[Array, Array]:
        """Preferences (trials, SIDES) and numbers (trials, SIDES, NUMBERS).

        Args:
            observation: (trials, OBSERVATIONS).
            history: (trials, HISTORY, SENSED), oldest first.
        """
        x = observation.astype(np.float32)
        if self._encoder:
            latent = through(self._encoder, history.reshape(len(history), -1).astype(np.float32))
            x = np.concatenate([x, latent], axis=-1)
        out = through(self._actor, x).astype(float)
        return out[:, :SIDES], out[:, SIDES:].reshape(-1, SIDES, NUMBERS)


def load_push_network(path: Path, robot: Robot) -> PushNetwork:
    """The policy of a file; one for another robot, box or task is refused."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    check_only(header, path, robot)
    if header["shape"] != SHAPE:
        raise RetorqueError(f"'{path}' was learnt with another box; run `retorque train push --method ppo` again")
    return PushNetwork(tensors)


def save_push_network(path: Path, tensors: dict[str, Array], robot: Robot, made: dict[str, Any]) -> Path:
    """Write a policy whole."""
    header: WeightsHeader = weights_header([robot], dict(SHAPE), made, only=robot.name)
    return save_network(path, tensors, NETWORK, FORMAT, header)


def dense_layers(tensors: dict[str, Array], part: str) -> list[tuple[Array, Array]]:
    """Weights (in, out) and biases of a perceptron's layers, in order."""
    numbers = sorted({int(name.split(".")[1]) for name in tensors if name.startswith(f"{part}.")})
    lacking = {f"{part}.{k}.{what}" for k in numbers for what in ("weight", "bias")} - set(tensors)
    if lacking:
        raise RetorqueError(f"the weights lack '{min(lacking)}'; copy or train them again")
    return [
        (tensors[f"{part}.{k}.weight"].T.astype(np.float32), tensors[f"{part}.{k}.bias"].astype(np.float32))
        for k in numbers
    ]


def through(layers: list[tuple[Array, Array]], x: Array) -> Array:
    """What a perceptron makes of x (..., in)."""
    for index, (weight, bias) in enumerate(layers):
        x = x @ weight + bias
        if index < len(layers) - 1:
            x = np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))  # ELU
    return x
