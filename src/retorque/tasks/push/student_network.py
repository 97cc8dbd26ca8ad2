"""The student of the push in NumPy: a PointNet over two clouds, a gated recurrent unit, and a push for each side."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.learn.weights import check_only, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.tasks.push.box_clouds import CENTRE, KEYPOINTS, POINTS, UNIT, VIEWS, cloud_centre, scaled
from retorque.tasks.push.push_choice import SHIFT, SIDES
from retorque.tasks.push.push_model import FOLDER, SHAPE
from retorque.tasks.push.push_network import dense_layers, through
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NETWORK, FORMAT = "push student", 1
STUDENT = FOLDER / "push-student.safetensors"
"""The one on board."""
POINT = 3 + 3 + VIEWS
"""Numbers of a point: where it is, squares and product of x and y, whose means show how the box is turned, its view."""
CHOICES = SIDES + 1
"""The four sides, and to rest."""
ENDS = 5
"""Numbers of a push: where the hand begins, where it stops, how much higher than usual."""
VERTICES = 24
"""Numbers of the box's corners."""
CONTEXT = 3 * len(KEYPOINTS) + VERTICES + 3
"""Numbers beside the cloud: the hand's keypoints, the goal's corners, and where the cloud is."""


@dataclass(frozen=True)
class StudentShape:
    """Sizes."""

    features: int = 64
    """Of a point; the cloud's are their means and their largest values (the paper pools by the mean alone)."""
    memory: int = 96
    """Of the recurrent unit."""
    width: int = 128
    """Of the other hidden layers."""


@dataclass(frozen=True)
class StudentChoice:
    """What the student makes of what it sees, for k trials."""

    preference: Array
    """(k, CHOICES)"""
    first: Array
    """(k, SIDES, 2) where a push of each side begins [m]."""
    last: Array
    """(k, SIDES, 2) where it stops [m]."""
    up: Array
    """(k, SIDES) how much higher than usual [m]."""
    vertices: Array
    """(k, 8, 3) the box's corners as it takes them to be [m]."""
    memory: Array
    """(k, memory) what it remembers until the next look."""


class StudentNetwork:
    """Runs the weights that `retorque train push --method student` makes.

    Args:
        tensors: weights by name.
        shape: sizes.
    """

    def __init__(self, tensors: dict[str, Array], shape: StudentShape):
        self.shape = shape
        self._w = {name: np.asarray(value, dtype=np.float32) for name, value in tensors.items()}
        parts = ("points", "body", "corners", "head")
        self._points, self._body, self._corners, self._head = (dense_layers(tensors, part) for part in parts)
        widths = [
            (layers[0][0].shape[0], layers[-1][0].shape[1]) if layers else (0, 0)
            for layers in (self._points, self._body, self._corners, self._head)
        ]
        wanted = [
            (POINT, shape.features),
            (2 * shape.features + CONTEXT, shape.width),
            (shape.memory + 2 * shape.features, VERTICES),
            (shape.memory + 2 * VERTICES, CHOICES + SIDES * ENDS),
        ]
        gates = [self._w.get(f"memory.{name}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        sizes = [(3 * shape.memory, shape.width), (3 * shape.memory, shape.memory), *[(3 * shape.memory,)] * 2]
        if widths != wanted or [None if gate is None else gate.shape for gate in gates] != sizes:
            raise RetorqueError(f"the weights of a student do not have the sizes {asdict(shape)}; train it again")

    def __call__(self, points: Array, there: Array, hand: Array, goal: Array, memory: Array) -> StudentChoice:
        """What to do.

        Args:
            points: (k, VIEWS x POINTS, 3) of the clouds [m].
            there: (k, VIEWS x POINTS) which of them are there.
            hand: (k, 20, 3) keypoints [m].
            goal: (k, 8, 3) corners of the box at its goal [m].
            memory: (k, memory) after the last look, zero at first.
        """
        source = np.broadcast_to(np.repeat(np.eye(VIEWS), POINTS, axis=0), (*points.shape[:2], VIEWS))
        centre = cloud_centre(points, there)
        near = scaled(points, centre).reshape(points.shape)
        x, y = near[..., :1], near[..., 1:2]
        told = np.concatenate([near, x * x, x * y, y * y, source], axis=-1)
        each = through(self._points, told.astype(np.float32))
        count = there.sum(axis=1, keepdims=True)
        mean = np.where(there[..., None], each, 0.0).sum(axis=1) / np.maximum(count, 1)
        most = np.where(there[..., None], each, -np.inf).max(axis=1)
        pooled = np.concatenate([mean, np.where(count > 0, most, 0.0)], axis=-1)
        wanted = scaled(goal, centre)
        beside = np.concatenate([scaled(hand, centre), wanted, (centre - CENTRE) / UNIT], axis=-1)
        felt = _elu(through(self._body, np.concatenate([pooled, beside], axis=-1).astype(np.float32)))
        memory = self._remember(felt, memory.astype(np.float32))
        corners = through(self._corners, np.concatenate([memory, pooled.astype(np.float32)], axis=-1))
        out = through(self._head, np.concatenate([memory, corners, wanted.astype(np.float32)], axis=-1)).astype(float)
        ends = out[:, CHOICES:].reshape(-1, SIDES, ENDS)
        return StudentChoice(
            preference=out[:, :CHOICES],
            first=centre[:, None, :2] + UNIT * ends[..., :2],
            last=centre[:, None, :2] + UNIT * ends[..., 2:4],
            up=SHIFT * np.clip(ends[..., 4], -1.0, 1.0),
            vertices=centre[:, None] + UNIT * corners.reshape(-1, 8, 3).astype(float),
            memory=memory,
        )

    def _remember(self, x: Array, memory: Array) -> Array:
        """The gated recurrent unit, as PyTorch's."""
        w = self._w
        inward = x @ w["memory.weight_ih"].T + w["memory.bias_ih"]
        own = memory @ w["memory.weight_hh"].T + w["memory.bias_hh"]
        (reset, update, new), (own_reset, own_update, own_new) = (np.split(part, 3, axis=-1) for part in (inward, own))
        reset, update = _sigmoid(reset + own_reset), _sigmoid(update + own_update)
        return (1.0 - update) * np.tanh(new + reset * own_new) + update * memory


def load_student(path: Path, robot: Robot) -> StudentNetwork:
    """The student of a file; one for another robot, box or task is refused."""
    tensors, header = load_network(path, NETWORK, FORMAT)
    check_only(header, path, robot)
    shape = dict(header["shape"])
    if {name: shape.pop(name, None) for name in SHAPE} != SHAPE:
        raise RetorqueError(f"'{path}' was learnt with another box; run `retorque train push --method student` again")
    try:
        sizes = StudentShape(**shape)
    except TypeError as error:
        raise RetorqueError(f"'{path}' was made for another version of the student; train it again") from error
    return StudentNetwork(tensors, sizes)


def save_student(
    path: Path, tensors: dict[str, Array], shape: StudentShape, robot: Robot, made: dict[str, Any]
) -> Path:
    """Write a student whole."""
    header = weights_header([robot], {**SHAPE, **asdict(shape)}, made, only=robot.name)
    return save_network(path, tensors, NETWORK, FORMAT, header)


def _elu(x: Array) -> Array:
    return np.where(x > 0.0, x, np.expm1(np.minimum(x, 0.0)))


def _sigmoid(x: Array) -> Array:
    return 0.5 * (1.0 + np.tanh(0.5 * x))
