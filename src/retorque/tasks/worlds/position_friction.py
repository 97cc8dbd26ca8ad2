"""Friction that depends on where a joint is: gears that are tight here and loose there."""

from __future__ import annotations

import numpy as np

from retorque.simulate.effects import Effect
from retorque.work.array import Array

WIDTH = 0.03
"""Velocity over which it switches sign [rad/s]."""
WAVES = 5.0
"""How often it rises and falls a turn of the joint."""


class PositionFriction(Effect):
    """height (1 + sin(waves q)) / 2 tanh(v / width) against the motion.

    Args:
        height: (n,) where the joint is tightest [N·m].
    """

    def __init__(self, height: Array):
        self._height = height

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        tight = 0.5 * self._height * (1.0 + np.sin(WAVES * position))
        share = np.tanh(velocity / WIDTH)
        return torque - tight * share, slope + tight * (1.0 - share**2) / WIDTH
