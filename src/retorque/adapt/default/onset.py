"""How a mismatch came: at once, as what is picked up does, or slowly, as pushes do."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

RISING, ABRUPT = 10.0, 0.025
"""Squared distance above which a mismatch is on its way, and the longest time [s] that one which is there at once, as
something that is picked up, is on its way before it is disputed."""
WATCHED = 0.5
"""What came slowly is decided after so long at the earliest [s]: pushes grow, payloads and changed drives do not."""
CONVINCED, IDEAL = 0.15, 0.07
"""Evidence of a hidden robot that is younger than the first when a dispute begins is the push itself, where the robot
had looked like the ideal one for the second [s]."""
IDEAL_FOR, TURNS = 1.0, 0.1
"""A robot that has looked like the ideal one for the first, in motion, and for less than the second does so no more,
has been touched, or has changed [s]."""


class Onset:
    """Times that say of a dispute how it came, in a batch of trials.

    Args:
        trials: robots served at once.
        step: time between equations [s].
    """

    remembered = ("_rising_for", "_hidden_for", "_ideal_for", "_ideal_run", "watched")

    def __init__(self, trials: int, step: float):
        self._step = step
        self._rising_for = np.zeros(trials)
        self._hidden_for = np.zeros(trials)
        self._ideal_for = np.zeros(trials)
        self._ideal_run = np.zeros(trials)  # in motion, since it last looked hidden for longer than TURNS
        self.watched = np.zeros(trials)
        """(trials,) how long a dispute is left undecided [s]."""

    def turns(self, evidence: Array, moving: Array) -> Array:
        """Take in the evidence of a hidden robot (trials,); where one that was ideal is so no more.

        Args:
            evidence: log odds.
            moving: (trials,) whether the robot shows what it is.
        """
        hidden = evidence > 0.0
        self._hidden_for = np.where(hidden, self._hidden_for + self._step, 0.0)
        self._ideal_for += self._step * ~hidden
        shown = self._ideal_run + self._step * (moving & ~hidden)
        self._ideal_run = np.where(self._hidden_for > TURNS, 0.0, shown)
        turned: Array = hidden & (self._hidden_for <= TURNS) & (self._ideal_run > IDEAL_FOR)
        return turned

    def begin(self, which: Array, surprising: Array) -> None:
        """Disputes begin in these trials (trials,), about what is surprising, or small yet."""
        abrupt = surprising & (self._rising_for <= ABRUPT)
        self.watched = np.where(which, np.where(abrupt, 0.0, WATCHED), self.watched)

    @property
    def rash(self) -> Array:
        """(trials,) where the evidence of a hidden robot is so young that a push may be all of it."""
        young: Array = (self._hidden_for <= CONVINCED) & (self._ideal_for > IDEAL)
        return young

    def end_of_step(self, distance: Array) -> None:
        """So far was the equation of this step from the estimate, (trials,) squared."""
        self._rising_for = np.where(distance > RISING, self._rising_for + self._step, 0.0)
