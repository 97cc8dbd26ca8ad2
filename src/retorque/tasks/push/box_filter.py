"""The box's pose from clouds of points by a particle filter (TAM, E.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.tasks.push.box_task import HALF, wrapped
from retorque.tasks.push.table_plane import above_table
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class BoxFilterSettings:
    """The first four are the paper's."""

    particles: int = 256
    """Poses that are kept."""
    resample_below: int = 128
    """Effective number of particles at which they are drawn anew."""
    scale: float = 0.005
    """Distance of a point from the box's surface that counts as one [m]."""
    keep: float = 0.25
    """A pose is passed on for this long after the box was last seen [s]."""
    clip: float = 0.02
    """A point farther away counts as this far: the hand's, say [m]."""
    walk: tuple[float, float] = (0.003, 0.02)
    """Random walk between two clouds [m, rad]."""
    points: int = 300
    """Points of a cloud that are looked at."""
    worth: float = 40.0
    """Independent points that a cloud counts as: neighbours err together."""
    least: int = 40
    """Points without which a box is not seen."""
    nearest: float = 0.008
    """Mean clipped distance of the likelier half of the points beyond which this is no box [m]."""


class BoxFilter:
    """Follows one box whose size is known; a box looks the same from behind, so its yaw is within ±90 deg.

    Args:
        settings: of the filter.
        seed: of its random walk.
    """

    def __init__(self, settings: BoxFilterSettings | None = None, seed: int = 0):
        self.settings = settings or BoxFilterSettings()
        self._rng = np.random.default_rng(seed)
        self.reset()

    def reset(self) -> None:
        """Nothing has been seen."""
        self._poses: Array | None = None
        self._weights = np.zeros(0)
        self._pose = np.full(3, np.nan)
        self._seen_at = -np.inf

    def see(self, time: float, cloud: Array) -> Array:
        """The pose (3,) x, y [m] and yaw [rad] after a cloud (n, 3); not a number where none is known.

        A cloud that is empty, not finite, without a table or without a box leaves the last pose, as long as that is not
        stale.
        """
        points = above_table(cloud, self._rng)
        if points is not None and len(points) >= self.settings.least:
            chosen = self._rng.choice(len(points), min(self.settings.points, len(points)), replace=False)
            self._update(points[chosen], time)
        fresh = 0.0 <= time - self._seen_at <= self.settings.keep
        if not fresh:
            self._poses = None  # look for it anew
            return np.full(3, np.nan)
        return self._pose.copy()

    def _update(self, points: Array, time: float) -> None:
        s = self.settings
        if self._poses is None:
            self._search(points)
        assert self._poses is not None
        self._poses += self._rng.standard_normal(self._poses.shape) * [s.walk[0], s.walk[0], s.walk[1]]
        self._weigh(points, s.scale)
        pose = self._mean()
        distance = np.sort(self._distance(pose[None], points)[0])[: max(1, len(points) // 2)]
        if distance.mean() > s.nearest:
            self._poses = None
            return
        self._pose, self._seen_at = pose, time
        if 1.0 / np.sum(self._weights**2) < s.resample_below:
            self._draw_anew()

    def _search(self, points: Array) -> None:
        """From anywhere near the points to poses that fit, over a likelihood that sharpens."""
        s = self.settings
        middle = np.median(points[:, :2], axis=0)
        spread = self._rng.standard_normal((4 * s.particles, 2)) * 0.04
        yaw = self._rng.uniform(-np.pi / 2.0, np.pi / 2.0, 4 * s.particles)
        self._poses = np.column_stack([middle + spread, yaw])
        for scale in np.geomspace(4.0, 1.0, 8) * s.scale:
            self._weights = np.full(len(self._poses), 1.0 / len(self._poses))
            self._weigh(points, scale)
            self._draw_anew()
            wide = scale / s.scale
            self._poses += self._rng.standard_normal(self._poses.shape) * wide * [s.walk[0], s.walk[0], s.walk[1]]
        self._weights = np.full(s.particles, 1.0 / s.particles)

    def _weigh(self, points: Array, scale: float) -> None:
        assert self._poses is not None
        worth = min(self.settings.worth / len(points), 1.0)
        fit = -0.5 * worth * np.sum((self._distance(self._poses, points) / scale) ** 2, axis=-1)
        weights = self._weights * np.exp(fit - fit.max())
        total = weights.sum()
        self._weights = weights / total if total > 0.0 else np.full(len(weights), 1.0 / len(weights))

    def _distance(self, poses: Array, points: Array) -> Array:
        """(poses, points) from the box's surface, clipped [m]."""
        cos, sin = np.cos(poses[:, 2:3]), np.sin(poses[:, 2:3])
        x, y = points[None, :, 0] - poses[:, :1], points[None, :, 1] - poses[:, 1:2]
        along = np.abs(cos * x + sin * y) - HALF[0]
        across = np.abs(cos * y - sin * x) - HALF[1]
        above = np.broadcast_to(np.abs(points[:, 2] - HALF[2]) - HALF[2], along.shape)
        sides = np.stack([along, across, above])
        outside = np.linalg.norm(np.maximum(sides, 0.0), axis=0)
        inside = -np.minimum(sides.max(axis=0), 0.0)
        return np.minimum(outside + inside, self.settings.clip)

    def _mean(self) -> Array:
        assert self._poses is not None
        best = self._poses[int(np.argmax(self._weights)), 2]
        turn = wrapped(2.0 * (self._poses[:, 2] - best)) / 2.0  # half a turn is no turn
        yaw = wrapped(2.0 * (best + self._weights @ turn)) / 2.0
        return np.array([*(self._weights @ self._poses[:, :2]), float(yaw)])

    def _draw_anew(self) -> None:
        """Systematic resampling."""
        assert self._poses is not None
        count = self.settings.particles
        at = (self._rng.uniform() + np.arange(count)) / count
        chosen = np.minimum(np.searchsorted(np.cumsum(self._weights), at), len(self._weights) - 1)
        self._poses, self._weights = self._poses[chosen].copy(), np.full(count, 1.0 / count)
