"""Patches of history for the encoder, cut out of the ring of reports as their ticks become complete."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.features import fast_size, hidden_features, history_rows, slow_size
from retorque.adapt.tam.preset import Preset
from retorque.loop.history import History
from retorque.work.array import Array


def ticks_needed(preset: Preset) -> int:
    """Rows that the ring must keep: a gap of a stride may come before a column is made."""
    return 2 * (preset.stride + preset.half_window) + 2


class Patches:
    """One patch a column of tokens: `patch` rows of features, of which `stride` ticks are new each time.

    Args:
        context: the robot's.
        preset: sizes.
        history: the ring of reports, of at least `ticks_needed` rows.
    """

    remembered = ("columns", "_fast", "_slow")

    def __init__(self, context: Context, preset: Preset, history: History):
        self.context, self.preset, self.history = context, preset, history
        n, trials = context.robot.n, history.trials
        self._fast = np.zeros((trials, preset.patch_rows, n, fast_size(preset)), dtype=np.float32)
        slow_rows = preset.patch_rows // preset.slow if preset.slow else 0
        self._slow = np.zeros((trials, slow_rows, n, slow_size(preset)), dtype=np.float32)
        self._seen = hidden_features(preset)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.columns = 0
        self._fast[:] = 0.0
        self._slow[:] = 0.0

    @property
    def due(self) -> bool:
        """Whether the next column's ticks and their context are all here."""
        p = self.preset
        return self.columns == 0 or self.history.total > p.stride * self.columns + p.half_window

    def next(self) -> Array:
        """The patch of the column that is due, (trials, n, numbers)."""
        p = self.preset
        if self.columns > 0:
            q, qd, torque, valid = self._raw(
                p.stride * (self.columns - 1) - p.half_window, p.stride + 2 * p.half_window
            )
            fast, slow = history_rows(self.context, p, q, qd, torque, valid, self.history.timestep)
            fast, slow = fast * self._seen[0], slow * self._seen[1]
            self._fast = np.concatenate([self._fast[:, p.stride_rows :], fast], axis=1)
            if p.slow:
                self._slow = np.concatenate([self._slow[:, p.stride_rows // p.slow :], slow], axis=1)
        self.columns += 1
        return np.concatenate([_flat(self._fast), _flat(self._slow)], axis=-1)

    def _raw(self, start: int, count: int) -> tuple[Array, Array, Array, Array]:
        """`count` ticks from number `start`; those before the first report, invalid ones and those that the ring no
        longer keeps (after a long gap) are zero and not valid."""
        history = self.history
        back = history.total - (start + count)
        kept = max(min(count, history.ticks - back), 0)
        rows, valid = np.zeros((3, count, *history.last(1).shape[2:])), np.zeros((count, history.trials), dtype=bool)
        if kept:
            rows[:, count - kept :] = history.last(kept, back)
            valid[count - kept :] = history.valid(kept, back)
        valid &= (np.arange(start, start + count) >= 0)[:, None]
        q, qd, torque = np.where(valid[..., None], rows, 0.0)
        return q, qd, torque, valid


def _flat(rows: Array) -> Array:
    """(trials, rows, n, F) -> (trials, n, rows * F)."""
    return rows.swapaxes(1, 2).reshape(rows.shape[0], rows.shape[2], -1)
