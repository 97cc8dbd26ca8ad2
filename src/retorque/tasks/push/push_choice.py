"""What a learnt pushing policy sees before a push, and what it may choose: a side of the box and how to push it."""

from __future__ import annotations

import numpy as np

from retorque.tasks.push.box_task import wrapped
from retorque.tasks.push.pushes import LENGTH, OFFSET, TILT, Pushes
from retorque.work.array import Array

REACH = (0.32, 0.76)
"""Distances from the base's axis at which fingertips can be [m]."""
SHIFT = 0.08
"""How far off the push that is meant the hand's target can be along each axis, against a hand that sags [m]."""
SIDES, NUMBERS, OBSERVATIONS = 4, 6, 10
"""Sides of the box, numbers of a push (offset, length, tilt, shift), and numbers that are seen."""


class BoxView:
    """The box's frame, mirrored so that the goal lies ahead and to the left: four pushes that are alike look alike.

    Args:
        box: (trials, 3) x, y [m] and yaw [rad].
        goal: (trials, 3).
        any_yaw: whether only the place counts; the goal's yaw is then not looked at.
    """

    def __init__(self, box: Array, goal: Array, any_yaw: bool = False):
        self.box = box
        cos, sin = np.cos(box[:, 2]), np.sin(box[:, 2])
        axes = np.stack([np.stack([cos, sin], axis=-1), np.stack([-sin, cos], axis=-1)], axis=1)
        towards = np.matmul(axes, (goal[:, :2] - box[:, :2])[..., None])[..., 0]
        self._sign = np.where(towards < 0.0, -1.0, 1.0)
        self._handed = self._sign[:, 0] * self._sign[:, 1]
        self._axes, self._towards = self._sign[..., None] * axes, np.abs(towards)
        self._turn = np.zeros(len(goal)) if any_yaw else wrapped(goal[:, 2] - box[:, 2])

    def observe(self) -> Array:
        """(trials, OBSERVATIONS) each around one: the goal, the world's axes, and where the box is."""
        seen = [
            self._towards / 0.1,
            (self._handed * self._turn)[:, None] / 0.5,
            np.cos(self._turn)[:, None],
            self._axes.reshape(-1, 4),
            (self.box[:, :2] - [0.53, 0.0]) / 0.1,
        ]
        return np.clip(np.nan_to_num(np.concatenate(seen, axis=-1), nan=0.0), -5.0, 5.0)

    def pushes(self, numbers: Array) -> Pushes:
        """What numbers (trials, SIDES, NUMBERS) mean at each of the view's sides, (trials, SIDES).

        In the view as in `pushes.NORMALS`, sides 0 and 1 look ahead and back, 2 and 3 left and right. A mirrored box
        has its offsets and tilts mirrored.
        """
        x = np.clip(np.nan_to_num(numbers, nan=0.0), -1.0, 1.0)
        flip = np.where(self._sign < 0.0, 1, 0)
        side = np.stack([0 ^ flip[:, 0], 1 ^ flip[:, 0], 2 + (0 ^ flip[:, 1]), 2 + (1 ^ flip[:, 1])], axis=-1)
        handed = self._handed[:, None]
        length = LENGTH[0] + 0.5 * (1.0 + x[..., 1]) * (LENGTH[1] - LENGTH[0])
        return Pushes(side, handed * OFFSET * x[..., 0], length, handed * TILT * x[..., 2])

    def reachable(self, pushes: Pushes) -> Array:
        """(trials, SIDES) which pushes begin and end where the hand can be; all, where none does."""
        box = np.broadcast_to(self.box[:, None], (*np.shape(pushes.face), 3))
        away = [np.linalg.norm(point, axis=-1) for point in pushes.ends(box)]
        fine = np.all([(REACH[0] <= a) & (a <= REACH[1]) for a in away], axis=0)
        return fine | ~fine.any(axis=-1, keepdims=True)


def shifted(numbers: Array) -> Array:
    """How far off the hand's target is (..., 3), along the world's axes [m], from the last three of the numbers."""
    return SHIFT * np.clip(np.nan_to_num(numbers[..., 3:], nan=0.0), -1.0, 1.0)


def shifted_ends(pushes: Pushes, box: Array, shift: Array, *, sags: bool) -> tuple[Array, Array]:
    """Where the hand is told to begin and to stop (..., 2) [m], its target shifted (..., 3).

    A hand that does not sag would come down on the box where it is shifted towards it: it begins no nearer than meant.

    Args:
        pushes: (...).
        box: (..., 3) x, y [m] and yaw [rad].
        shift: (..., 3) along the world's axes [m].
        sags: whether the shift makes up for a hand that is not where it is told to be.
    """
    first, last = pushes.ends(box)
    way = last - first
    direction = way / np.linalg.norm(way, axis=-1, keepdims=True)
    nearer = np.maximum(np.sum(shift[..., :2] * direction, axis=-1, keepdims=True), 0.0)
    begin = shift[..., :2] if sags else shift[..., :2] - nearer * direction
    return first + begin, last + shift[..., :2]


SENSED = 3 + 3 + SIDES + NUMBERS + 7
"""Numbers that the history holds of a push."""


def sense(lag: Array, change: Array, pushes: Pushes, shift: Array, joints: Array) -> Array:
    """What RMA's history holds of a push, (trials, SENSED).

    Args:
        lag: from where the hand was told to be to where it was after the push (trials, 3) [m].
        change: of the box's pose in its own frame (trials, 3) [m, m, rad].
        pushes: what was done (trials,).
        shift: how far off the hand was told to be (trials, 3) [m].
        joints: (trials, 7) [rad].
    """
    side = np.eye(SIDES)[pushes.face]
    did = np.stack([pushes.offset / OFFSET, pushes.length / LENGTH[1], pushes.tilt / TILT], axis=-1)
    parts = [lag / 0.05, change / [0.05, 0.05, 0.5], side, did, shift / SHIFT, joints]
    return np.clip(np.nan_to_num(np.concatenate(parts, axis=-1), nan=0.0), -5.0, 5.0)
