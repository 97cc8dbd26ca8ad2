"""Motions to follow: policies that only know the time."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from retorque.control.action import Action
from retorque.robots.state import State
from retorque.work.array import Array


class Reference(ABC):
    """A policy that only knows the time; its clock starts at zero where it is reset."""

    duration: float
    """[s]"""
    period = 0.0
    """A new action every tick [s]."""
    _begun = 0.0

    @abstractmethod
    def at(self, time: float) -> Action:
        """The action at a time [s]; before the start the first one, after the end the last one."""

    def reset(self, state: State) -> None:
        """The motion begins at this state."""
        self._begun = state.time

    def act(self, state: State) -> Action:
        """The action at the state's time."""
        return self.at(state.time - self._begun)


def minimum_jerk(phase: Array) -> tuple[Array, Array]:
    """Smooth step 10 s³ - 15 s⁴ + 6 s⁵ and its derivative by the phase s in [0, 1]."""
    s = np.clip(phase, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * s * s * (1.0 - s) ** 2
