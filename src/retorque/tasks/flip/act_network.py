"""The action-chunking transformer (ACT; TAM, E.2) in NumPy: from what is seen to the next seconds of actions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import check_only, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.tasks.flip.picture_encoder import picture_tokens, token_grid
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK, FORMAT = "flip ACT", 1
FOLDER = Path(__file__).parent / "weights"
ON_BOARD, BY_PICTURES = FOLDER / "flip-act.safetensors", FOLDER / "flip-act-image.safetensors"
"""The one that is told the cube's pose, and the one that sees through a camera."""


@dataclass(frozen=True, kw_only=True)
class ActShape:
    """Sizes; ACT's own are width 512, 8 heads, 4 + 1 layers, chunk 100, latent 32."""

    joints: int = 7
    """Of the arm."""
    actions: int = 8
    """Joint targets and the gripper."""
    things: int = 7
    """Numbers of the cube's pose."""
    chunk: int = 40
    """Actions predicted at once."""
    width: int = 96
    """Of a token."""
    heads: int = 4
    """Of attention."""
    layers: int = 2
    """Of the encoder; the decoder has one."""
    latent: int = 8
    """Of the style variable, zero where it runs."""
    picture_height: int = 0
    """Of what a camera sees; 0: the cube's pose is told instead [pixels]."""
    picture_width: int = 0
    """[pixels]"""

    @property
    def sees(self) -> bool:
        """Whether pictures are seen, and not the cube's pose."""
        return self.picture_height > 0

    @property
    def tokens(self) -> int:
        """Of the encoder: latent, joints, and what is seen."""
        rows, columns = token_grid(self.picture_height, self.picture_width) if self.sees else (1, 1)
        return 2 + rows * columns


class ActNetwork:
    """The encoder over latent, joints and cube or pictures, and the decoder over the chunk's queries; post-norm.

    Args:
        tensors: weights by name, as the PyTorch module has them.
        shape: sizes.
    """

    def __init__(self, tensors: dict[str, Array], shape: ActShape):
        self.shape = shape
        self._w = {name: np.asarray(value, dtype=np.float32) for name, value in tensors.items()}

    def __call__(self, joints: Array, seen: Array) -> Array:
        """Action chunks (trials, chunk, actions) in joint units.

        Args:
            joints: (trials, joints) [rad].
            seen: the cube's pose (trials, things), or pictures (trials, height, width, 3) of bytes.
        """
        w = self._w
        q = ((joints - w["joint_mean"]) / w["joint_scale"]).astype(np.float32)
        known = np.broadcast_to(w["latent.bias"], (len(q), self.shape.width))  # the latent is zero
        first = np.stack([known, self._linear("joints", q)], axis=1)
        memory = np.concatenate([first, self._seen(seen)], axis=1) + w["places"]
        for index in range(self.shape.layers):
            name = f"encoder.{index}"
            memory = self._norm(f"{name}.norm1", memory + self._attend(f"{name}.attention", memory, memory))
            memory = self._norm(f"{name}.norm2", memory + self._forward(name, memory))
        x = np.broadcast_to(w["queries"], (len(q), *w["queries"].shape))
        x = self._norm("decoder.norm1", x + self._attend("decoder.attention", x, x))
        x = self._norm("decoder.norm2", x + self._attend("decoder.cross", x, memory))
        x = self._norm("decoder.norm3", x + self._forward("decoder", x))
        return self._linear("head", x).astype(float) * w["action_scale"] + w["action_mean"]

    def _seen(self, seen: Array) -> Array:
        """(trials, tokens, width)"""
        w = self._w
        if self.shape.sees:
            return picture_tokens(seen, w)
        return self._linear("cube", ((seen - w["cube_mean"]) / w["cube_scale"]).astype(np.float32))[:, None]

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]

    def _forward(self, name: str, x: Array) -> Array:
        return self._linear(f"{name}.second", np.maximum(self._linear(f"{name}.first", x), 0.0))

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + 1e-5)
        return centred / scale * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]

    def _attend(self, name: str, x: Array, memory: Array) -> Array:
        """Attention of x (trials, a, width) over memory (trials, b, width)."""
        heads, each = self.shape.heads, self.shape.width // self.shape.heads

        def split(part: str, source: Array) -> Array:
            y = self._linear(f"{name}.{part}", source)
            return y.reshape(*y.shape[:-1], heads, each).swapaxes(-2, -3)

        q, k, v = split("query", x), split("key", memory), split("value", memory)
        scores = np.matmul(q, k.swapaxes(-1, -2)) / np.sqrt(each)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = np.matmul(scores / scores.sum(axis=-1, keepdims=True), v).swapaxes(-2, -3)
        return self._linear(f"{name}.out", mixed.reshape(*x.shape[:-1], self.shape.width))


def load_act(path: Path = ON_BOARD, robot: Robot | None = None) -> ActNetwork:
    """The network of a file, default the one on board; one that was made for another robot is refused."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    if robot is not None:
        check_only(header, path, robot)
    try:
        shape = ActShape(**header["shape"])
    except TypeError as error:
        raise RetorqueError(f"'{path}' was made for another version of ACT; train it again") from error
    return ActNetwork(tensors, shape)


def save_act(path: Path, tensors: dict[str, Array], shape: ActShape, robot: Robot, made: dict[str, Any]) -> Path:
    """Write a network whole."""
    header = weights_header([robot], asdict(shape), made, only=robot.name, rate=20.0)
    return save_network(path, tensors, NETWORK, FORMAT, header)
