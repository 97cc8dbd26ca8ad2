"""Straight smooth moves of the hand, one after the other, each trial at its own pace."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.control.reference import minimum_jerk
from retorque.work.array import Array


class Legs:
    """The moves under way in a batch of trials.

    Args:
        trials: how many.
        rotation: of the hand throughout (3, 3).
    """

    def __init__(self, trials: int, rotation: Array):
        self.rotation = np.broadcast_to(rotation, (trials, 3, 3))
        self._points = np.zeros((trials, 1, 3))
        self._ends = np.zeros((trials, 1))
        self._begun = np.zeros(trials)

    def begin(self, which: Array, time: float, points: Array, durations: Array) -> None:
        """Start new moves in some trials.

        Args:
            which: (trials,) of bool.
            time: now [s].
            points: (trials, legs + 1, 3), where the hand is first [m].
            durations: (trials, legs) [s].
        """
        if points.shape != self._points.shape:
            self._points, self._ends = np.array(points), np.zeros(durations.shape)
        self._points[which] = points[which]
        self._ends[which] = np.cumsum(durations, axis=-1)[which]
        self._begun[which] = time

    def over(self, time: float) -> Array:
        """(trials,) whether all moves are done."""
        return time - self._begun >= self._ends[:, -1] - 1e-9

    @property
    def last(self) -> Array:
        """(trials, 3) where the moves end [m]."""
        return self._points[:, -1]

    def at(self, time: float) -> PoseAction:
        """Where the hands should be now."""
        elapsed = time - self._begun
        rows = np.arange(len(elapsed))
        leg = np.minimum((elapsed[:, None] >= self._ends).sum(axis=-1), self._ends.shape[1] - 1)
        end = self._ends[rows, leg]
        start = np.where(leg > 0, self._ends[rows, np.maximum(leg - 1, 0)], 0.0)
        length = np.maximum(end - start, 1e-6)
        share, rate = minimum_jerk(np.clip((elapsed - start) / length, 0.0, 1.0))
        a, b = self._points[rows, leg], self._points[rows, leg + 1]
        velocity = (b - a) * (rate / length)[:, None]
        return PoseAction(a + share[:, None] * (b - a), self.rotation, velocity, np.zeros_like(velocity))
