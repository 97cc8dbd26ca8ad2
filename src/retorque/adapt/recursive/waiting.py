"""Equations that wait a few updates before they are learnt from."""

from __future__ import annotations

import numpy as np

from retorque.adapt.recursive.equation import Equation
from retorque.work.array import Array


class Waiting:
    """A queue of fixed length; what comes in pushes the oldest out, which others may have spoken against meanwhile.

    Args:
        length: equations that wait.
        trials: robots served at once.
        n: joints.
        size: unknowns.
    """

    remembered = ("_torques", "_rows", "_factor", "_accepted", "_count")

    def __init__(self, length: int, trials: int, n: int, size: int):
        self._torques = np.zeros((length, 3, trials, n))  # measured, prior, ideal
        self._rows = np.zeros((length, trials, n, size))
        self._factor = np.zeros(length)
        self._accepted = np.zeros((length, trials), dtype=bool)
        self._count = 0

    def refuse(self, trials: Array) -> None:
        """Nothing is to be learnt from what waits, in these trials (trials,)."""
        self._accepted &= ~trials

    def exchange(self, equation: Equation) -> Equation | None:
        """Put one in; the oldest where the queue was full."""
        slot = self._count % len(self._factor)
        oldest = None
        if self._count >= len(self._factor):
            torque, prior, ideal = self._torques[slot].copy()
            oldest = Equation(
                torque, prior, self._rows[slot].copy(), ideal, float(self._factor[slot]), self._accepted[slot].copy()
            )
        self._torques[slot] = equation.torque, equation.prior, equation.ideal
        self._rows[slot], self._factor[slot] = equation.rows, equation.noise_factor
        self._accepted[slot] = equation.accepted
        self._count += 1
        return oldest
