"""Random joint-space waypoints with pauses: the motions that training data are made of (TAM, B.1)."""

from __future__ import annotations

import numpy as np

from retorque.control.action import JointAction
from retorque.control.reference import Reference, minimum_jerk
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class JointWaypoints(Reference):
    """Minimum-jerk moves through waypoints (trials, count, n), each within its own segment (trials, count - 1)."""

    def __init__(self, points: Array, duration: Array):
        if not np.all(np.isfinite(points)) or not np.all(duration > 0.0):
            raise RetorqueError("waypoints must be finite and their segments longer than 0 s")
        self.points = points
        self.segment = duration
        self._start = np.concatenate([np.zeros((len(duration), 1)), np.cumsum(duration, axis=1)], axis=1)
        self.duration = float(np.max(self._start))
        self._rows = np.arange(len(points))

    @classmethod
    def sample(
        cls,
        home: Array,
        lower: Array,
        upper: Array,
        delta: Array,
        trials: int,
        duration: float,
        seed: int,
        *,
        waypoints: int = 12,
        pause_probability: float = 0.3,
    ) -> JointWaypoints:
        """Steps of up to `delta` (n,) within the limits; now and then the next waypoint is the last one: a pause."""
        rng = np.random.default_rng(seed)
        low = np.where(np.isfinite(lower), lower, home - np.pi)
        high = np.where(np.isfinite(upper), upper, home + np.pi)
        margin = 0.05 * (high - low)
        points = np.empty((trials, waypoints + 1, len(home)))
        points[:, 0] = home
        for k in range(1, waypoints + 1):
            step = rng.uniform(-1.0, 1.0, (trials, len(home))) * delta
            moved = np.clip(points[:, k - 1] + step, low + margin, high - margin)
            pause = rng.uniform(size=(trials, 1)) < pause_probability
            points[:, k] = np.where(pause, points[:, k - 1], moved)
        share = rng.uniform(0.5, 1.5, (trials, waypoints))
        return cls(points, duration * share / share.sum(axis=1, keepdims=True))

    def at(self, time: float) -> JointAction:
        last = self.segment.shape[1] - 1
        index = np.minimum(np.sum(self._start[:, 1:] <= time, axis=1), last)
        length = self.segment[self._rows, index]
        phase = (time - self._start[self._rows, index]) / length
        step, rate = minimum_jerk(phase)
        begin = self.points[self._rows, index]
        move = self.points[self._rows, index + 1] - begin
        return JointAction(begin + move * step[:, None], move * (rate / length)[:, None])
