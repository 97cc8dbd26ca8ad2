"""What the adaptor has just got wrong: a small, slow torque that takes out errors too recent for the next latent."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.paper.paper_adaptor import PaperAdaptor
from retorque.loop.history import History

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

    Args:
        context: the robot's.
        adaptor: the one that is checked.
        history: at least the last `SPAN` ticks.
    """

    remembered = ("torque", "_checked")

    def __init__(self, context: Context, adaptor: FastAdaptor | PaperAdaptor, history: History):
        self.context, self.adaptor, self.history = context, adaptor, history
        timestep, trials = history.timestep, history.trials
        offsets = 0.5 * (SPAN - 1) - np.arange(SPAN)  # newest first
        self._fit = np.array([np.full(SPAN, 1.0 / SPAN), offsets / (np.sum(offsets**2) * timestep)])
        self._keep = np.exp(-EVERY * timestep / TIME)
        self._most, self._surprise = MOST * context.unit, SURPRISE * context.unit
        self.torque = np.zeros((trials, context.robot.n))
        """(trials, n) [N·m]"""
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.torque = np.zeros_like(self.torque)
        self._checked = 0

    def update(self) -> bool:
        """Check the last prediction when it is time to; whether it was."""
        total = self.history.total
        if total < SPAN or total % EVERY or total == self._checked:
            return False
        self._checked = total
        sound = np.logical_and.reduce(self.history.valid(SPAN))[:, None]
        span = self.history.last(SPAN)[:, ::-1]  # newest first
        shape = self.torque.shape
        flat = span.reshape(3, SPAN, -1)
        q = span[0, SPAN // 2]
        qd, qdd = np.dot(self._fit, flat[1]).reshape(2, *shape)
        applied = np.dot(self._fit[0], flat[2]).reshape(shape)
        nominal = self.context.body.inverse_dynamics(q, qd, qdd)
        half = self.adaptor.preset.window // 2
        back, moved, sent = span[:, SPAN // 2 - half : SPAN // 2 + half].transpose(0, 2, 3, 1)
        ideal, probes = self.context.ideal_response(q, qd, nominal)
        predicted = nominal + self.adaptor.correction(back, moved, sent, nominal, ideal, probes)
        error = applied - predicted
        own = np.where(np.abs(error) < self._surprise, error, 0.0)
        averaged = self._keep * self.torque + (1.0 - self._keep) * own
        bounded = np.minimum(np.maximum(averaged, -self._most), self._most)
        self.torque = np.where(sound, bounded, self.torque)
        return True
