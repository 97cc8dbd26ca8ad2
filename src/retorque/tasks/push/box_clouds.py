"""What the student sees before a push: points of what stands on the table, from two depth cameras (TAM, E.1)."""

from __future__ import annotations

from itertools import product

import numpy as np

from retorque.simulate.cameras.depth_camera import beside_the_table, depth_cloud
from retorque.simulate.target import Target
from retorque.tasks.push.box_task import HALF, wrapped
from retorque.tasks.push.pushes import to_world
from retorque.tasks.push.table_plane import above_table
from retorque.work.array import Array

POINTS = 96
"""Points that are kept of each view."""
VIEWS = 2
TALLEST = 0.15
"""Points higher than this are the arm's [m]."""
CENTRE, UNIT = np.array([0.53, 0.0, 0.05]), 0.1
"""Where a cloud is on average, and what counts as one [m]."""
KEYPOINTS = np.array(
    [(x, y, z) for z in (0.0, -0.03, -0.06, -0.09, -0.12) for x, y in product((-0.01, 0.01), (-0.04, 0.04))]
)
"""(20, 3) of the hand, in the end-effector's axes, of which z points out of the hand [m]."""
CORNERS = np.array(list(product((-1.0, 1.0), repeat=3)))
"""(8, 3) of a cube."""


class BoxClouds:
    """Two cameras beside each table, at places of their own.

    Args:
        target: robots and boxes.
        seed: of the cameras' places, their noise, and the points that are kept.
        noise: of a depth at one metre [m].
        dropped: share of the pixels that see nothing.
    """

    def __init__(self, target: Target, seed: int, *, noise: float = 0.002, dropped: float = 0.05):
        self._target = target
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, 29]))
        trials = len(target.position)
        self._views = [beside_the_table(self._rng, noise=noise, dropped=dropped) for _ in range(trials)]

    def look(self, which: Array) -> tuple[Array, Array]:
        """Points (k, VIEWS x POINTS, 3) [m] of some trials (k,), a view after the other, and which are there."""
        points, there = np.zeros((len(which), VIEWS, POINTS, 3)), np.zeros((len(which), VIEWS, POINTS), dtype=bool)
        for row, trial in enumerate(which):
            for number, view in enumerate(self._views[trial]):
                kept = kept_points(depth_cloud(self._target, view, int(trial), self._rng), self._rng)
                points[row, number, : len(kept)], there[row, number, : len(kept)] = kept, True
        return points.reshape(len(which), -1, 3), there.reshape(len(which), -1)


def kept_points(cloud: Array, rng: np.random.Generator) -> Array:
    """At most POINTS (k, 3) of what stands on the table; none of a cloud that is empty, not finite or has no table."""
    standing = above_table(cloud, rng)
    if standing is None:
        return np.zeros((0, 3))
    low = standing[standing[:, 2] < TALLEST]
    return low[rng.permutation(len(low))[:POINTS]]


def hand_points(position: Array, rotation: Array) -> Array:
    """(..., 20, 3) keypoints of hands at (..., 3) turned by (..., 3, 3) [m]."""
    return position[..., None, :] + np.matmul(KEYPOINTS, np.swapaxes(rotation, -1, -2))


def half_turned(yaw: Array) -> Array:
    """Whether boxes of this yaw are called by the name of their half turn: a cloud cannot tell one from the other."""
    return np.abs(wrapped(np.asarray(yaw, dtype=float))) > 0.5 * np.pi


def box_vertices(pose: Array) -> Array:
    """(..., 8, 3) corners of boxes (..., 3) on the table, in an order that half a turn of the box leaves [m]."""
    turned = np.where(half_turned(pose[..., 2]), np.pi, 0.0)
    named = np.concatenate([pose[..., :2], (pose[..., 2] + turned)[..., None]], axis=-1)
    corners = CORNERS * np.array(HALF)
    flat = to_world(named[..., None, :], np.broadcast_to(corners[:, :2], (*pose.shape[:-1], 8, 2)))
    height = np.broadcast_to(corners[:, 2:] + HALF[2], (*flat.shape[:-1], 1))
    return np.concatenate([flat, height], axis=-1)


def cloud_centre(points: Array, there: Array) -> Array:
    """Where coordinates count from, (..., 3): above the mean of the points (..., k, 3) that are there [m].

    What is seen and what is done then look alike wherever the box stands.
    """
    count = there.sum(axis=-1)[..., None]
    mean = np.sum(points * there[..., None], axis=-2) / np.maximum(count, 1)
    return np.concatenate([np.where(count > 0, mean, CENTRE)[..., :2], np.full((*mean.shape[:-1], 1), CENTRE[2])], -1)


def scaled(points: Array, centre: Array) -> Array:
    """Points (..., k, 3) [m] as the network sees them, flat (..., 3 k)."""
    return ((points - centre[..., None, :]) / UNIT).reshape(*points.shape[:-2], -1)
