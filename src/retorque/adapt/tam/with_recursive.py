"""TAM beside the recursive Bayesian estimator: each joint follows whichever has lately predicted its torques better."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from retorque.adapt.adapter import Adapter
from retorque.adapt.recursive.contact import RecursiveContact
from retorque.adapt.tam.adapter import TamAdapter
from retorque.physics.state import State
from retorque.robots.robot import Robot

Array = np.ndarray

SPAN = 25
"""Ticks over which a prediction is checked."""
EVERY = 10
"""Ticks between checks."""
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
        self._ring = np.zeros((3, SPAN, trials, robot.n))
        offsets = np.arange(SPAN) - 0.5 * (SPAN - 1)
        self._slope = offsets / (np.sum(offsets**2) * timestep)
        self._floor = (0.02 * self.tam.context.unit) ** 2
        self.reset()

    def reset(self) -> None:
        self.tam.reset()
        self.recursive.reset()
        self._ticks = 0
        self._last = -np.inf
        self._filled = 0
        self._errors = np.ones((2, self.trials, self.robot.n)) * self.tam.context.unit**2
        self.share = np.full((self.trials, self.robot.n), 0.5)
        """(trials, n) how much of the recursive estimator's torque is sent."""

    def observe(self, state: State) -> None:
        self.tam.observe(state)
        self.recursive.observe(state)
        step = state.time - self._last
        if not step > 0.5 * self.timestep:
            return
        broken = step > 1.5 * self.timestep and np.isfinite(self._last)
        self._last = state.time
        self._ring[:, :-1] = self._ring[:, 1:]
        for row, value in zip(self._ring, (state.position, state.velocity, state.torque), strict=True):
            row[-1] = value
        self._filled = 1 if broken else min(self._filled + 1, SPAN)

    def learn(self) -> None:
        self.tam.learn()
        if self._ticks % self.recursive.learn_every == 0:
            self.recursive.learn()
        if self._ticks % EVERY == 0 and self._filled == SPAN:
            self._check()
        self._ticks += 1

    def correct(self, state: State, nominal_torque: Array) -> Array:
        one, other = self.recursive.correct(state, nominal_torque), self.tam.correct(state, nominal_torque)
        return other + self.share * (one - other)

    def _check(self) -> None:
        """Compare what each would have sent along the last ticks with what was sent."""
        positions, velocities, torques = self._ring
        qdd = np.tensordot(self._slope, velocities, 1)
        q, qd, applied = positions[SPAN // 2], velocities.mean(axis=0), torques.mean(axis=0)
        context = self.tam.context
        nominal = context.body.inverse_dynamics(q, qd, qdd)
        usable = np.all(np.isfinite(nominal) & np.isfinite(applied), axis=-1, keepdims=True)
        if not np.any(usable):
            return
        one = self.recursive.correct(State(self._last, q, qd, applied), nominal)
        half = self.tam.preset.window // 2
        recent = slice(SPAN // 2 - half + 1, SPAN // 2 + half + 1)
        back, moved, sent = np.moveaxis(self._ring[:, recent][:, ::-1], 1, -1)
        ideal, probes = context.ideal_response(q, qd, nominal)
        other = nominal + self.tam.adaptor.correction(back, moved, sent, nominal, ideal, probes)
        keep = np.exp(-EVERY * self.timestep / MEMORY)
        for errors, found in zip(self._errors, (one, other), strict=True):
            squared = np.minimum((found - applied) ** 2, 25.0 * context.unit**2)
            fresh = keep * errors + (1.0 - keep) * np.where(usable, squared, errors)
            errors[:] = np.where(np.isfinite(fresh), fresh, errors)
        ratio = ((self._errors[0] + self._floor) / (self._errors[1] + self._floor)) ** SHARPNESS
        self.share = 1.0 / (1.0 + ratio)
