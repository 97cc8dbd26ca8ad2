"""A part of a log that a verdict looks at: whole pieces from all over it, however long it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from retorque.logs.motion import Motion, MotionSource, join
from retorque.work.array import Array

KEPT = 40_000
"""Samples that are kept."""
THINNED = 300
"""Samples that one reading is tried on."""
PIECE = 500
"""Samples in a row that are kept together, so that torques can be shifted in time."""


class Sampled:
    """A source of motion that keeps a bounded part of what passes through it.

    Args:
        source: read as often as one likes; what is kept is that of the first whole reading.
    """

    def __init__(self, source: MotionSource):
        self.source = source
        self._kept: list[Motion] = []
        self._stride, self._seen, self._whole = 1, 0, False

    def chunks(self) -> Iterator[Motion]:
        """The source's pieces."""
        for piece in self.source.chunks():
            if not self._whole:
                self._keep(piece)
            yield piece
        self._whole = True

    def _keep(self, piece: Motion) -> None:
        for start in range(0, len(piece), PIECE):
            if self._seen % self._stride == 0:
                self._kept.append(piece[start : start + PIECE].copy())
            self._seen += 1
            if sum(map(len, self._kept)) > KEPT:
                self._kept, self._stride = self._kept[::2], 2 * self._stride

    def motion(self) -> Motion:
        """What was kept."""
        if not self._whole:
            for _ in self.chunks():
                pass
        return join(self._kept)


def thinned(motion: Motion, samples: int = THINNED) -> Array:
    """Indices of evenly spread samples, those of joints in motion preferred to those at rest."""
    speed = np.max(np.abs(motion.qd), axis=1)
    moving = np.flatnonzero(speed > 0.01)
    found = moving if len(moving) >= min(samples, len(motion) // 10) else np.arange(len(motion))
    return found[np.linspace(0, len(found) - 1, min(samples, len(found))).astype(int)]


def shifted(motion: Motion, at: Array, seconds: float) -> tuple[Array, Array]:
    """Torque (samples, n) at some indices, read `seconds` later, and which indices have one."""
    period = float(np.median(np.diff(motion.time)))
    whole = int(np.floor(seconds / period + 1e-6))  # whole rows stay whole, whatever their quotient rounds to
    part = max(0.0, seconds / period - whole)
    there = (at + whole >= 0) & (at + whole + 1 < len(motion))
    first = np.clip(at + whole, 0, len(motion) - 2)
    there &= np.abs(motion.time[first] - motion.time[at] - whole * period) < 1.5 * period
    return (1.0 - part) * motion.torque[first] + part * motion.torque[first + 1], there
