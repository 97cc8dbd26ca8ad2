"""Goals on the plate, one after the other, counted with hysteresis (TAM, E.3)."""

from __future__ import annotations

import numpy as np

from retorque.tasks.ball.plate import PLATE
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NEAREST, FARTHEST = 0.02, 0.05
"""Radii between which goals lie, uniform in area [m]."""
REACH, LEAVE = 0.005, 0.010
"""A goal is reached within the first distance; the next one counts once the ball was beyond the second of it [m]."""
APART = 0.015
"""Two goals in a row are at least so far apart, or the ball could wait for both at once; not published [m]."""
MOST = 400
"""Goals drawn a trial: more than anyone reaches."""


class Goals:
    """The current goal of each trial.

    Args:
        points: (trials, MOST, 2) in the plate's frame [m].
    """

    def __init__(self, points: Array):
        if not (np.abs(points) <= PLATE[0]).all():
            raise RetorqueError(f"a goal lies off the plate; keep every goal within {PLATE[0]} m of its middle")
        self.points = points
        self.reset()

    @classmethod
    def sample(cls, trials: int, seed: int) -> Goals:
        """Goals drawn uniformly in area."""
        rng = np.random.default_rng(seed)
        points = _uniform(rng, (trials, MOST))
        for k in range(1, MOST):
            while np.any(near := np.linalg.norm(points[:, k] - points[:, k - 1], axis=-1) < APART):
                points[near, k] = _uniform(rng, (int(near.sum()),))
        return cls(points)

    def reset(self) -> None:
        """Begin anew: none is reached."""
        self.count = np.zeros(len(self.points), dtype=np.int64)
        """(trials,) goals reached."""
        self._away = np.ones(len(self.points), dtype=bool)
        self._reached = np.full((len(self.points), 2), np.inf)

    def part(self, rows: slice) -> Goals:
        """Those of some of the trials, none reached yet."""
        return Goals(self.points[rows])

    @property
    def current(self) -> Array:
        """(trials, 2) [m]"""
        return self.points[np.arange(len(self.points)), np.minimum(self.count, MOST - 1)]

    def see(self, ball: Array) -> None:
        """The ball is at (trials, 2) in the plate's frame [m]; one that is not finite is not seen."""
        with np.errstate(invalid="ignore"):
            self._away |= np.linalg.norm(ball - self._reached, axis=-1) > LEAVE
            reached = self._away & (np.linalg.norm(ball - self.current, axis=-1) < REACH)
        self._reached = np.where(reached[:, None], self.current, self._reached)
        self.count += reached
        self._away &= ~reached


def _uniform(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Points (..., 2) between the two radii, uniform in area [m]."""
    radius = np.sqrt(rng.uniform(NEAREST**2, FARTHEST**2, shape))
    angle = rng.uniform(-np.pi, np.pi, shape)
    return radius[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
