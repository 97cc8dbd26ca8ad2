"""What may be behind a mismatch, each as a small linear-Gaussian model whose likelihood is kept over time."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

RECENT = 0.1
"""Time over which the last measurements count [s]."""


class Hypothesis:
    """y = H x + noise, with x ~ N(0, prior) at the start and a random walk back to it, in a batch of trials.

    Args:
        prior: standard deviations of x (k,).
        trials: robots served at once.
        memory: how long x keeps its value [s]; infinite: it is a constant of the robot.
        odds: log of how likely this explanation is before anything is seen.
        step: time between measurements [s].
    """

    remembered = ("mean", "covariance", "evidence", "recent")

    def __init__(self, prior: Array, trials: int, memory: float, odds: float, step: float):
        self._prior = np.diag(np.asarray(prior, dtype=float) ** 2)
        self._keep = float(np.exp(-step / memory))
        self._odds = odds
        self.mean = np.zeros((trials, len(prior)))
        """(trials, k)"""
        self.covariance = np.zeros((trials, len(prior), len(prior)))
        self.evidence = np.zeros(trials)
        """(trials,) log of prior odds times likelihood so far."""
        self.recent = np.zeros(trials)
        """(trials,) log likelihood of the last measurements."""
        self._fade = float(np.exp(-step / RECENT))
        self.restart(np.ones(trials, dtype=bool))

    def restart(self, which: Array) -> None:
        """Begin anew in some trials (trials,)."""
        self.renew(which)
        self.recent[which] = 0.0

    def renew(self, which: Array) -> None:
        """Begin anew, but remember how well the last measurements were explained."""
        self.mean[which] = 0.0
        self.covariance[which] = self._prior
        self.evidence[which] = self._odds

    def take(self, which: Array, y: Array, rows: Array, noise: Array, weight: float) -> Array:
        """Take in a measurement of some trials; the evidence (m,) that it gave.

        Args:
            which: their indices (m,).
            y: measured (m, n).
            rows: H (m, n, k).
            noise: covariance of the measurement (m, n, n).
            weight: share of an independent measurement that it is worth.
        """
        keep = self._keep
        mean = keep * self.mean[which]
        covariance = keep**2 * self.covariance[which] + (1.0 - keep**2) * self._prior
        reach = np.matmul(covariance, np.swapaxes(rows, -1, -2))  # (m, k, n)
        total = np.matmul(rows, reach) + noise
        root = np.linalg.cholesky(total)
        left = y - np.matmul(rows, mean[..., None])[..., 0]
        white = np.linalg.solve(root, left[..., None])[..., 0]
        diagonal = np.diagonal(root, axis1=-2, axis2=-1)
        gained = -weight * (0.5 * np.sum(white**2, axis=-1) + np.sum(np.log(diagonal), axis=-1))
        self.evidence[which] += gained
        self.recent[which] = self._fade * self.recent[which] + gained
        # What is learnt of x counts as much as the measurement is worth: its noise is that much larger.
        wide = np.matmul(rows, reach) + noise / weight
        gain = np.swapaxes(np.linalg.solve(wide, np.swapaxes(reach, -1, -2)), -1, -2)
        self.mean[which] = mean + np.matmul(gain, left[..., None])[..., 0]
        self.covariance[which] = covariance - np.matmul(gain, np.swapaxes(reach, -1, -2))
        return gained
