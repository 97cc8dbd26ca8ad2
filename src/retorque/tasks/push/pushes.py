"""Single pushes: where the fingertips start beside the box, and where they stop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.tasks.push.box_task import HALF
from retorque.work.array import Array

TIP = 0.0095
"""Half the fingertips' width [m]."""
CLEARANCE = 0.02
"""Between fingertips and box before the push [m]."""
OFFSET = 0.8
"""Largest offset from a face's middle, as a share of its half width."""
LENGTH = (0.01, 0.11)
"""Shortest and longest way from the touch on [m]."""
TILT = 0.4
"""Largest angle between a push and the face's normal [rad]."""
NORMALS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
"""Of the four faces, outwards, in the box's frame."""


@dataclass(frozen=True)
class Pushes:
    """A batch of pushes (...,)."""

    face: Array
    """(...) 0 to 3"""
    offset: Array
    """(...) along the face, -1 to 1."""
    length: Array
    """(...) from the touch on [m]."""
    tilt: Array
    """(...) of the direction against the face's normal [rad]."""

    @classmethod
    def sample(cls, shape: tuple[int, ...], rng: np.random.Generator) -> Pushes:
        """Pushes drawn uniformly from all that are allowed."""
        return cls(
            rng.integers(0, 4, shape),
            rng.uniform(-OFFSET, OFFSET, shape),
            rng.uniform(*LENGTH, shape),
            rng.uniform(-TILT, TILT, shape),
        )

    def features(self) -> Array:
        """(..., 7) what the forward model sees."""
        face = np.eye(4)[self.face]
        rest = np.stack([self.offset / OFFSET, self.length / LENGTH[1], self.tilt / TILT], axis=-1)
        return np.concatenate([face, rest], axis=-1)

    def ends(self, box: Array) -> tuple[Array, Array]:
        """Where the fingertips begin and stop in the world, (..., 2) each [m], for boxes (..., 3)."""
        normal = NORMALS[self.face]
        along = np.stack([-normal[..., 1], normal[..., 0]], axis=-1)
        half = np.abs(normal) @ np.array(HALF[:2])
        width = np.abs(along) @ np.array(HALF[:2])
        touch = normal * (half + TIP)[..., None] + along * (self.offset * width)[..., None]
        cos, sin = np.cos(self.tilt)[..., None], np.sin(self.tilt)[..., None]
        direction = -(cos * normal + sin * along)
        return to_world(box, touch - CLEARANCE * direction), to_world(box, touch + self.length[..., None] * direction)

    def take(self, index: Array) -> Pushes:
        """One push a row (m,), by its index along the second axis."""
        rows = np.arange(len(index))
        return Pushes(*(a[rows, index] for a in (self.face, self.offset, self.length, self.tilt)))


def to_world(box: Array, point: Array) -> Array:
    """Points (..., 2) of the box's frame in the world [m]."""
    cos, sin = np.cos(box[..., 2]), np.sin(box[..., 2])
    x, y = point[..., 0], point[..., 1]
    return box[..., :2] + np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)


def moved_box(box: Array, change: Array) -> Array:
    """Boxes (..., 3) after a change (..., 3) that is given in their own frames."""
    place = to_world(box, change[..., :2])
    return np.concatenate([place, (box[..., 2] + change[..., 2])[..., None]], axis=-1)


def change_of(before: Array, after: Array) -> Array:
    """The inverse of `moved_box`: what happened to boxes (..., 3), in their own frames."""
    d = after[..., :2] - before[..., :2]
    cos, sin = np.cos(before[..., 2]), np.sin(before[..., 2])
    turn = np.mod(after[..., 2] - before[..., 2] + np.pi, 2.0 * np.pi) - np.pi
    return np.stack([cos * d[..., 0] + sin * d[..., 1], -sin * d[..., 0] + cos * d[..., 1], turn], axis=-1)
