"""The ring of recent ticks: it puts reports in order, masks gaps and cuts patches for the encoder."""

from __future__ import annotations

import math

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.features import fast_size, hidden_features, history_rows, slow_size
from retorque.adapt.tam.preset import Preset
from retorque.robots.state import State
from retorque.work.array import Array


class History:
    """What a batch of robots reported lately, tick by tick; missed ticks and numbers that are not finite are masked."""

    def __init__(self, context: Context, preset: Preset, trials: int, timestep: float):
        self.context, self.preset, self.trials, self.timestep = context, preset, trials, timestep
        self._length = (
            2 * (preset.stride + preset.half_window) + 2
        )  # a gap of a stride may come before a column is made
        n = context.robot.n
        self._raw = np.zeros((3, self._length, trials, n))
        self._valid = np.zeros((self._length, trials), dtype=bool)
        self._fast = np.zeros((trials, preset.patch_rows, n, fast_size(preset)), dtype=np.float32)
        slow_rows = preset.patch_rows // preset.slow if preset.slow else 0
        self._slow = np.zeros((trials, slow_rows, n, slow_size(preset)), dtype=np.float32)
        self._seen = hidden_features(preset)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.ticks = 0
        self.columns = 0
        self._valid[:] = False
        self._fast[:] = 0.0
        self._slow[:] = 0.0
        self._first = np.nan  # the clock's zero [s]
        self.rejected = 0

    @property
    def due(self) -> bool:
        """Whether the next column's ticks and their context are all here."""
        p = self.preset
        return self.columns == 0 or self.ticks > p.stride * self.columns + p.half_window

    def add(self, state: State) -> bool:
        """Take in a report; False when it is out of order or a repetition and was left out."""
        timed = math.isfinite(state.time)
        if timed and math.isnan(self._first):
            self._first = state.time
        tick = round((state.time - self._first) / self.timestep) if timed else -1
        if tick < self.ticks:
            self.rejected += 1
            return False
        missed = tick - self.ticks
        if missed > self.preset.stride:  # a longer gap tells no more than this one: the clock is moved instead
            self._first += (missed - self.preset.stride) * self.timestep
            missed = self.preset.stride
        for _ in range(missed):
            self._put(None)
        self._put(state)
        return True

    def patch(self) -> Array:
        """The patch of the column that is due, (trials, n, numbers)."""
        p, h = self.preset, self.preset.half_window
        if self.columns > 0:
            start = p.stride * (self.columns - 1) - h
            at = np.arange(start, start + p.stride + 2 * h)
            inside = (at >= 0)[:, None]
            slots = at % self._length
            q, qd, torque = self._raw[:, slots]
            fast, slow = history_rows(self.context, p, q, qd, torque, self._valid[slots] & inside, self.timestep)
            fast, slow = fast * self._seen[0], slow * self._seen[1]
            self._fast = np.concatenate([self._fast[:, p.stride_rows :], fast], axis=1)
            if p.slow:
                self._slow = np.concatenate([self._slow[:, p.stride_rows // p.slow :], slow], axis=1)
        self.columns += 1
        return np.concatenate([_flat(self._fast), _flat(self._slow)], axis=-1)

    def _put(self, state: State | None) -> None:
        slot = self.ticks % self._length
        if state is None:
            self._raw[:, slot] = 0.0
            self._valid[slot] = False
        else:
            rows = self._raw[:, slot]
            rows[0], rows[1], rows[2] = state.position, state.velocity, state.torque
            finite = np.isfinite(rows)
            self._valid[slot] = True
            if not finite.all():
                broken = ~finite.all(axis=-1)  # (3, trials)
                rows[broken] = 0.0
                self._valid[slot] = ~broken.any(axis=0)
        self.ticks += 1


def _flat(rows: Array) -> Array:
    """(trials, rows, n, F) -> (trials, n, rows * F)."""
    return rows.swapaxes(1, 2).reshape(rows.shape[0], rows.shape[2], -1)
