"""The torque that something outside presses with, as the residuals of an estimate say it."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

FADE = 0.84
"""How much of its past the torque keeps from one residual to the next: it follows within 30 ms."""
FORGETS = 0.9
"""How much of it is kept with each residual for which there are no reports: what nobody feels is not yielded to."""
LEAD = 0.01
"""Time by which residuals are late [s]."""


class FeltTorque:
    """A critically damped filter of a torque that has a rate: what grows steadily is followed without a lag.

    Args:
        shape: (trials, n).
        period: time between residuals [s].
    """

    remembered = ("_torque", "_rate")

    def __init__(self, shape: tuple[int, int], period: float):
        self._period = period
        self._torque, self._rate = np.zeros(shape), np.zeros(shape)

    def take(self, residual: Array, sound: Array, lost: Array) -> Array:
        """The torque from outside now (trials, n) [N·m].

        Args:
            residual: torque that the estimate leaves unexplained (trials, n) [N·m].
            sound: (trials,) whether it comes from whole reports; else the torque stays as it is.
            lost: (trials,) whether there are no reports at all of its time; the torque is forgotten.
        """
        use = sound[:, None]
        ahead = self._torque + np.where(use, self._period * self._rate, 0.0)
        error = np.where(use, -residual - ahead, 0.0)
        ahead *= np.where(lost[:, None], FORGETS, 1.0)
        self._torque = ahead + (1.0 - FADE**2) * error
        self._rate = np.where(use, self._rate + (1.0 - FADE) ** 2 / self._period * error, 0.0)
        return self._torque + LEAD * self._rate
