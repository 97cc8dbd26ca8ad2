"""TAM beside the recursive Bayesian estimator: each joint follows whichever has lately predicted its torques better."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.adapt.adapter import Adapter
from retorque.adapt.recursive.contact import RecursiveContact
from retorque.adapt.tam.adapter import TamAdapter
from retorque.adapt.tam.trim import EVERY
from retorque.physics.state import State
from retorque.robots.robot import Robot

Array = np.ndarray

MEMORY = 0.5
"""Time over which squared errors are averaged [s]."""
SHARPNESS = 2.0
"""Weights go as the mean squared errors to minus this power."""


class TamRecursive(Adapter):
    """A mixture of two adapters, weighed joint by joint by how well each explains the torques just applied.

    Along a motion that was measured, an adapter that knew everything would answer the nominal torque of the ideal
    robot's inverse dynamics with exactly the torque that was applied. How far each is from that, averaged over half a
    second, says how much of each to send. Where they err independently, the mixture is better than both.

    Args:
        weights: a file of TAM weights; default: the ones on board.
    """

    learn_every = 1

    def __init__(
        self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0, *, weights: Path | None = None
    ):
        super().__init__(robot, trials, timestep, seed)
        self.tam = TamAdapter(robot, trials, timestep, seed, weights=weights)
        self.recursive = RecursiveContact(robot, trials, timestep, seed)
        self._floor = (0.02 * self.tam.context.unit) ** 2
        self.reset()

    def reset(self) -> None:
        self.tam.reset()
        self.recursive.reset()
        self._ticks = 0
        self._errors = np.ones((2, self.trials, self.robot.n)) * self.tam.context.unit**2
        self.share = np.full((self.trials, self.robot.n), 0.5)
        """(trials, n) how much of the recursive estimator's torque is sent."""

    def observe(self, state: State) -> None:
        self.tam.observe(state)
        self.recursive.observe(state)

    def learn(self) -> None:
        checked = self.tam.trim.motion.time
        self.tam.learn()
        if self._ticks % self.recursive.learn_every == 0:
            self.recursive.learn()
        if self.tam.trim.motion.time != checked:
            self._compare()
        self._ticks += 1

    def correct(self, state: State, nominal_torque: Array) -> Array:
        one, other = self.recursive.correct(state, nominal_torque), self.tam.correct(state, nominal_torque)
        return other + self.share * (one - other)

    def _compare(self) -> None:
        """Compare what each would have sent along the last ticks with what was sent."""
        trim = self.tam.trim
        one = self.recursive.correct(trim.motion, trim.nominal) - trim.motion.torque
        other = trim.torque - trim.error
        keep = np.exp(-EVERY * self.timestep / MEMORY)
        most = 25.0 * self.tam.context.unit**2
        for errors, found in zip(self._errors, (one, other), strict=True):
            fresh = keep * errors + (1.0 - keep) * np.minimum(found**2, most)
            errors[:] = np.where(np.isfinite(fresh), fresh, errors)
        ratio = ((self._errors[0] + self._floor) / (self._errors[1] + self._floor)) ** SHARPNESS
        self.share = 1.0 / (1.0 + ratio)
