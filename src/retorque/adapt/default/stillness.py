"""Whether a robot moves, stands still, or only trembles, which shows nothing of what it is."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

STILL, REST = 0.02, 0.3
"""A robot slower than this [rad/s] for longer than this [s] teaches nothing more: it may be pressing on something."""
QUICK = 0.1
"""A robot whose fastest joint is faster than this does not press on something solid [rad/s]."""
SHOWS = 0.05
"""A robot whose fastest joint is faster than this shows its friction [rad/s]."""
DRIFT = 0.3
"""Time over which velocities are smoothed [s]: a robot whose smoothed ones are slow only trembles, which is standing
still, too."""


class Stillness:
    """How fast robots are, and for how long they have been still, in a batch of trials.

    Args:
        trials: robots served at once.
        n: joints.
        step: time between looks [s].
    """

    remembered = ("fastest", "still_for", "_drift")

    def __init__(self, trials: int, n: int, step: float):
        self._step, self.drift_share = step, float(1.0 - np.exp(-step / DRIFT))
        self.fastest = np.zeros(trials)
        """(trials,) mean speed of the fastest joint [rad/s]."""
        self.still_for = np.zeros(trials)
        """(trials,) [s]"""
        self._drift = np.zeros((trials, n))

    def look(self, velocity: Array, settled: Array) -> None:
        """Look at the last velocities (samples, trials, n); who has not settled yet (trials,) may just stick."""
        self.fastest = np.abs(velocity).mean(axis=0).max(axis=-1)
        self._drift += self.drift_share * (velocity.mean(axis=0) - self._drift)
        trembles = settled & (np.abs(self._drift).max(axis=-1) < STILL)
        self.still_for = np.where((self.fastest < STILL) | trembles, self.still_for + self._step, 0.0)

    @property
    def rests(self) -> Array:
        """(trials,) who has been still for so long that nothing is learnt."""
        resting: Array = self.still_for >= REST
        return resting

    @property
    def shows(self) -> Array:
        """(trials,) who moves fast enough to show what it is."""
        slips: Array = (self.fastest > SHOWS) & (self.still_for == 0.0)
        return slips

    @property
    def quick(self) -> Array:
        """(trials,) who moves too fast to press on something solid."""
        fast: Array = self.fastest > QUICK
        return fast
