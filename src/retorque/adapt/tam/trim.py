"""What the adaptor has just got wrong: a small, slow torque that takes out errors too recent for the next latent."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.physics.state import State

Array = np.ndarray

SPAN = 25
"""Ticks over which a prediction is checked."""
EVERY = 5
"""Ticks between checks."""
TIME = 0.05
"""Time over which errors are averaged [s]."""
MOST = 0.6
"""The largest trim [units]."""
SURPRISE = 2.0
"""An error larger than this is contact, not the adaptor's: it is not taken out [units]."""


class Trim:
    """Compares the torque that the adaptor would have sent along the measured motion with the one that was sent.

    Along a measured motion, an adaptor that knew everything would answer the ideal robot's inverse dynamics with
    exactly the torque that was applied. The difference, averaged over 50 ms and bounded, is added to what comes next.
    """

    def __init__(self, context: Context, adaptor: FastAdaptor, trials: int, timestep: float):
        self.context, self.adaptor, self.timestep = context, adaptor, timestep
        self._ring = np.zeros((3, SPAN, trials, context.robot.n))
        offsets = np.arange(SPAN) - 0.5 * (SPAN - 1)
        self._slope = offsets / (np.sum(offsets**2) * timestep)
        self._keep = np.exp(-EVERY * timestep / TIME)
        self.torque = np.zeros((trials, context.robot.n))
        """(trials, n) [N·m]"""
        self.error = np.zeros_like(self.torque)
        """(trials, n) the last prediction's error, contact included [N·m]."""
        self.motion = State(-np.inf, self.torque, self.torque, self.torque)
        """The motion it was checked on: positions, velocities and applied torques, averaged."""
        self.nominal = np.zeros_like(self.torque)
        """(trials, n) the ideal robot's torque for that motion [N·m]."""
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.torque[:] = 0.0
        self.error[:] = 0.0
        self._count = 0
        self._last = -np.inf

    def add(self, state: State) -> None:
        """Take in a report."""
        broken = state.time - self._last > 1.5 * self.timestep
        self._last = state.time
        self._ring[:, :-1] = self._ring[:, 1:]
        for row, value in zip(self._ring, (state.position, state.velocity, state.torque), strict=True):
            row[-1] = value
        self._count = 1 if broken else self._count + 1

    def update(self) -> bool:
        """Check the last prediction when it is time to; whether it was."""
        if self._count < SPAN or self._count % EVERY:
            return False
        q, qd, applied = self._ring[0, SPAN // 2], self._ring[1].mean(axis=0), self._ring[2].mean(axis=0)
        qdd = np.tensordot(self._slope, self._ring[1], 1)
        if not np.all(np.isfinite(qdd + applied)) or not np.all(np.isfinite(self._ring[0])):
            self._count = 0
            return False
        nominal = self.context.body.inverse_dynamics(q, qd, qdd)
        half = self.adaptor.preset.window // 2
        recent = slice(SPAN // 2 - half + 1, SPAN // 2 + half + 1)
        back, moved, sent = np.moveaxis(self._ring[:, recent][:, ::-1], 1, -1)
        ideal, probes = self.context.ideal_response(q, qd, nominal)
        predicted = nominal + self.adaptor.correction(back, moved, sent, nominal, ideal, probes)
        self.motion = State(self._last, q, qd, applied)
        self.nominal = nominal
        self.error = applied - predicted
        unit = self.context.unit
        own = np.where(np.abs(self.error) < SURPRISE * unit, self.error, 0.0)
        averaged = self._keep * self.torque + (1.0 - self._keep) * own
        self.torque = np.clip(averaged, -MOST * unit, MOST * unit)
        return True
