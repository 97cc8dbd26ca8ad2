"""Filtering a stretch of a log in overlapping windows, so that its length does not matter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from retorque.logs.clean import check_velocity
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter, resample, to_motion
from retorque.work.array import Array

WINDOW = 20_000
"""Even samples filtered together."""
SHORTEST = 50
"""Rows; a shorter stretch cannot be filtered."""


class OverlapFilter:
    """Takes in rows of one uninterrupted stretch and gives back even, filtered, thinned motion.

    Each window overlaps its neighbours by the filter's settling time, so that the pieces are those of one long filter.

    Args:
        n: number of joints.
        settings: the filter.
    """

    def __init__(self, n: int, settings: Filter):
        self.n, self.settings = n, settings
        self.rows = 0
        self._parts: list[tuple[Array, Array]] = []
        self._held = 0
        self._rate = 0.0
        self._state: Array | None = None  # presliding before the first held sample
        self._before = 0  # even samples of the stretch that lie before the first held one

    def push(self, time: Array, values: Array) -> Iterator[Motion]:
        """Take in rows: times (rows,) and positions, velocities if any, torques (rows, 2n or 3n)."""
        self._parts.append((time, values))
        self._held += len(time)
        self.rows += len(time)
        if self._held >= 2 * WINDOW:
            yield from self._filter(last=False)

    def flush(self) -> Iterator[Motion]:
        """What is left at the stretch's end."""
        if self.rows >= SHORTEST:
            yield from self._filter(last=True)

    def _filter(self, last: bool) -> Iterator[Motion]:
        time = np.concatenate([part[0] for part in self._parts])
        values = np.concatenate([part[1] for part in self._parts])
        first = not self._rate
        if first:
            self._rate = (len(time) - 1) / (time[-1] - time[0])
        n, rate, settings = self.n, self._rate, self.settings
        margin = int(np.ceil(settings.settling * rate))
        edge = int(np.ceil(0.05 * settings.settling * rate))
        even, smooth = resample(time, values, rate)
        velocity = smooth[:, n : 2 * n] if values.shape[1] == 3 * n else None
        motion, wound = to_motion(even, smooth[:, :n], velocity, smooth[:, -n:], rate, settings, self._state)
        if first and velocity is not None:
            check_velocity(motion.q, motion.qd, rate)
        begin, end = edge if first else margin, len(even) - (edge if last else margin)
        stride = settings.stride(rate)
        begin += (-(self._before + begin)) % stride
        if end > begin:
            yield motion[begin:end:stride].copy()
        cut = max(end - margin, 1)
        if last or cut >= len(even):
            return
        self._state, self._before = wound[cut - 1], self._before + cut
        rest = time > even[cut]
        self._parts = [
            (np.concatenate([even[cut : cut + 1], time[rest]]), np.concatenate([smooth[cut : cut + 1], values[rest]]))
        ]
        self._held = len(self._parts[0][0])
