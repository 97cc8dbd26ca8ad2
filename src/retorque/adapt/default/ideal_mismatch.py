"""How far equations of motion are from the ideal robot's while a robot looks like it."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

MEMORY = 1.0
"""Time over which it is learnt [s]."""
FLOOR = 0.01
"""Least that is ever believed, on the scale of the estimate's noise."""


class IdealMismatch:
    """Variance of the torques that the ideal robot's equation of motion leaves unexplained, in a batch of trials.

    An estimate that allows for friction, payloads and drives is never as sure of a robot that hides nothing as the
    ideal robot itself is: a touch that it takes a second to tell from a payload stands out a hundredfold there.

    Args:
        scale: torque that counts as one for the estimate's noise (n,) [N·m].
        trials: robots served at once.
        step: time between equations [s].
        full: noise factor of a full window's equation.
    """

    remembered = ("_variance", "_count")

    def __init__(self, scale: Array, trials: int, step: float, full: float):
        self._rate, self.full = step / MEMORY, full
        self._floor = (FLOOR * scale) ** 2
        self._variance = np.zeros((trials, len(scale)))
        self._count = np.zeros(trials)

    def learn(self, mismatch: Array, factor: float, use: Array) -> None:
        """Take in the torques left (trials, n) by equations of a noise factor, where used (trials,)."""
        self._count += use
        rate = np.maximum(self._rate, 1.0 / np.maximum(self._count, 1.0)) * use
        square = np.where(use[:, None], mismatch, 0.0) ** 2
        self._variance += rate[:, None] * (square / self._noisier(factor) - self._variance)

    def variance(self, factor: float) -> Array:
        """What to expect of an equation of a noise factor, (trials, n) [N²m²]."""
        return self._noisier(factor) * np.maximum(self._variance, self._floor)

    def _noisier(self, factor: float) -> float:
        """... than an equation of a full window."""
        return max(1.0, factor / self.full)
