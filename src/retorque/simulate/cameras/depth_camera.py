"""Depth clouds by ray casts: what two depth cameras beside a robot would see, without a graphics driver."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class DepthView:
    """One depth camera that stands still."""

    eye: tuple[float, float, float]
    """[m]"""
    at: tuple[float, float, float] = (0.53, 0.0, 0.05)
    """What it looks at [m]."""
    opening: float = 45.0
    """Vertical opening angle [deg]."""
    width: int = 64
    """[pixels]"""
    height: int = 48
    """[pixels]"""
    farthest: float = 2.5
    """What is beyond is not seen [m]."""
    noise: float = 0.0
    """Standard deviation of a depth at one metre; it grows with the square of the distance [m]."""
    dropped: float = 0.0
    """Share of the pixels that see nothing."""

    def rays(self) -> Array:
        """(height x width, 3) unit directions in the world."""
        ahead = np.array(self.at) - np.array(self.eye)
        length = float(np.linalg.norm(ahead))
        if not length > 1e-6:
            raise RetorqueError("a depth camera stands where it looks; move its eye or what it looks at")
        ahead = ahead / length
        up = np.array([0.0, 0.0, 1.0]) if abs(ahead[2]) < 0.99 else np.array([1.0, 0.0, 0.0])
        right = np.cross(ahead, up)
        right /= np.linalg.norm(right)
        tall = np.tan(np.deg2rad(0.5 * self.opening))
        rows, columns = np.mgrid[: self.height, : self.width] + 0.5
        v = (1.0 - 2.0 * rows / self.height) * tall
        u = (2.0 * columns / self.width - 1.0) * tall * self.width / self.height
        rays = ahead + u[..., None] * right + v[..., None] * np.cross(right, ahead)
        return (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).reshape(-1, 3)


def depth_cloud(target: Target, view: DepthView, trial: int = 0, seed: int | np.random.Generator = 0) -> Array:
    """Points (k, 3) that the camera sees of one trial now, in the base's axes of a robot that stands at the origin [m].

    Args:
        target: what is looked at.
        view: from where, how well.
        trial: which robot.
        seed: of noise and dropped pixels.
    """
    rng = np.random.default_rng(seed)
    model, data = target.snapshot(trial)
    rays = view.rays()
    count = len(rays)
    shape, distance = np.full(count, -1, dtype=np.int32), np.zeros(count)
    eye = np.array(view.eye)
    every = np.ones(6, dtype=np.uint8)
    mujoco.mj_multiRay(model, data, eye, rays.ravel(), every, 1, -1, shape, distance, None, count, view.farthest)
    kept = (shape >= 0) & (rng.uniform(size=count) >= view.dropped)
    depth = distance[kept]
    depth = depth + view.noise * depth**2 * rng.standard_normal(len(depth))
    return eye + depth[:, None] * rays[kept]


def beside_the_table(
    rng: np.random.Generator, *, noise: float = 0.0, dropped: float = 0.0
) -> tuple[DepthView, DepthView]:
    """Two cameras left and right of a table, each moved a little at random, as the paper's are."""

    def one(side: float) -> DepthView:
        eye = (float(v) for v in np.array([0.95, side * 0.65, 0.65]) + rng.uniform(-0.08, 0.08, 3))
        at = (float(v) for v in np.array([0.53, 0.0, 0.05]) + rng.uniform(-0.03, 0.03, 3))
        return DepthView(
            eye=(next(eye), next(eye), next(eye)), at=(next(at), next(at), next(at)), noise=noise, dropped=dropped
        )

    return one(-1.0), one(1.0)
