"""Motions to follow: an action at every time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from retorque.work.array import Array


class Reference(ABC):
    """A policy that only knows the time."""

    duration: float
    """[s]"""

    @abstractmethod
    def at(self, time: float) -> Any:
        """The action at a time [s]; after the end, the last one."""


def minimum_jerk(phase: Array) -> tuple[Array, Array]:
    """Smooth step 10 s³ - 15 s⁴ + 6 s⁵ and its derivative by the phase s in [0, 1]."""
    s = np.clip(phase, 0.0, 1.0)
    return s**3 * (10.0 - 15.0 * s + 6.0 * s * s), 30.0 * s * s * (1.0 - s) ** 2
