"""Friction that depends on where a joint is: gears that are tight here and loose there."""

from __future__ import annotations

import numpy as np

from retorque.simulate.effects import Effect
from retorque.work.array import Array

WIDTH = 0.03
"""Velocity over which it switches sign [rad/s]."""
WAVES = 5.0
"""How often it usually rises and falls a turn of the joint."""


class PositionFriction(Effect):
    """height (1 + sin(waves q + phase)) / 2 tanh(v / width) against the motion.

    Args:
        height: (n,) or (trials, n) where the joint is tightest [N·m].
        waves: how often it rises and falls a turn of the joint, one for all or (trials, n).
        phase: where it does so, one for all or (trials, n) [rad].
    """

    def __init__(self, height: Array, waves: Array | float = WAVES, phase: Array | float = 0.0):
        self._height, self._waves, self._phase = height, waves, phase

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        tight = 0.5 * self._height * (1.0 + np.sin(self._waves * position + self._phase))
        share = np.tanh(velocity / WIDTH)
        return torque - tight * share, slope + tight * (1.0 - share**2) / WIDTH
