"""Whether a joint rings: the part of a velocity at 15 to 60 Hz beside its noise, as springs and play shake it."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

FAST, SLOW = 2.5e-3, 10e-3
"""Time constants of two low passes, between which joints ring [s]."""
MEMORY = 0.3
"""Time over which energies are remembered [s]."""
LOUD = 0.6
"""Energy in between at which a joint rings [variance of the velocity's white noise, which alone has 0.1 there]."""
LONGEST = 2e-3
"""Longest control period at which ringing can be seen [s]."""


class Vibration:
    """Tells joints that shake from those that do not, from the velocity that a robot lacks.

    Noise is what second differences show: hardly anything of a joint that shakes is among them.

    Args:
        shape: (trials, n).
        timestep: control period [s].
        floor: (n,) velocity that is no ringing whatever the noise [rad/s].
    """

    remembered = ("_passed", "_before", "_energy", "_noise", "_seen")

    def __init__(self, shape: tuple[int, int], timestep: float, floor: Array):
        self.shares = 1.0 - np.exp(-timestep / np.array([FAST, SLOW]))
        """Of the newest velocity in the two low passes."""
        self.share = float(1.0 - np.exp(-timestep / MEMORY))
        """Of the newest one in the energies."""
        self.floor = floor**2
        """(n,) [(rad/s)²]"""
        self._passed, self._before = np.zeros((2, *shape)), np.zeros((2, *shape))
        self._energy, self._noise, self._seen = np.zeros((3, *shape))
        self.reset()

    def reset(self) -> None:
        """Begin anew; until something has been seen, every joint may ring."""
        self._passed[:] = self._before[:] = 0.0
        self._energy[:] = self.floor
        self._noise[:] = self._seen[:] = 0.0

    def take(self, velocity: Array, use: Array) -> Array:
        """How little joints ring, (trials, n): 0, they do, to 1, not at all.

        Args:
            velocity: that is lacking (trials, n) [rad/s].
            use: (trials, n) where it is counted; elsewhere nothing is seen.
        """
        self._passed += self.shares[:, None, None] * (velocity - self._passed)
        band = self._passed[0] - self._passed[1]
        turn = velocity - 2.0 * self._before[0] + self._before[1]
        self._before[1], self._before[0] = self._before[0], velocity
        share = self.share * use
        self._energy += share * (band**2 - self._energy)
        self._noise += share * (turn**2 / 6.0 - self._noise)
        quiet: Array = 1.0 - self._energy / (LOUD * self._noise + self.floor)
        return np.clip(quiet, 0.0, 1.0)
