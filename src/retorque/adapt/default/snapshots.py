"""Estimates of the last second, to compare the newest one with, and to go back to where it was led astray."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

AGE, EVERY = 0.8, 0.2
"""How old the oldest one is, and how often one is kept [s]."""

DELAYED = 2
"""Kept estimates through which evidence must have lasted to count: a push is over, or disputed, by then."""


class Snapshots:
    """What was believed at a few past times in a batch of trials, oldest first, while nothing was disputed.

    Args:
        trials: robots served at once.
        size: unknowns of an estimate.
        n: joints.
        step: time between equations [s].
        evidence: log odds that something is hidden, at the start.
    """

    remembered = ("means", "roots", "evidence", "sizes", "kept", "_since")

    def __init__(self, trials: int, size: int, n: int, step: float, evidence: float):
        count = round(AGE / EVERY)
        self._step, self._since = step, 0.0
        self.means = np.zeros((count, trials, size))
        self.roots = np.zeros((count, trials, size, size))
        """Of covariances."""
        self.evidence = np.full((count, trials), evidence)
        self.sizes = np.full((count, 2, trials, n), np.inf)
        """Variances of noise, and of what is never explained [N²m²]."""
        self.kept = np.zeros(trials, dtype=int)
        """(trials,) how many have been kept since the start."""

    @property
    def ripe(self) -> Array:
        """(trials,) whether the oldest one is more than the prior."""
        enough: Array = self.kept >= len(self.means)
        return enough

    @property
    def tell(self) -> Array:
        """(trials,) whether there are enough of them to tell what has lasted."""
        enough: Array = self.kept >= DELAYED
        return enough

    def lasting(self, evidence: Array) -> Array:
        """Of the evidence of now (trials,) as much as has lasted."""
        return np.where(self.tell, np.minimum(evidence, self.evidence[-DELAYED:].min(axis=0)), evidence)

    def overwrite(self, which: Array, mean: Array, root: Array, evidence: Array) -> None:
        """All estimates of some trials (trials,) are the one given, and have had so much evidence."""
        self.means[:, which], self.roots[:, which] = mean[which], root[which]
        self.evidence[:, which] = evidence[which]

    def keep(self, calm: Array, mean: Array, root: Array, evidence: Array, sizes: Array) -> None:
        """Take in what is believed now, where nothing is disputed (trials,), when it is time."""
        self._since += self._step
        if self._since < EVERY:
            return
        self._since = 0.0
        self.kept += calm
        for kept, now in ((self.means, mean), (self.roots, root), (self.evidence, evidence)):
            kept[:-1, calm] = kept[1:, calm]
            kept[-1, calm] = now[calm]
        self.sizes[:-1, :, calm] = self.sizes[1:, :, calm]
        self.sizes[-1, :, calm] = np.swapaxes(sizes, 0, 1)[calm]
