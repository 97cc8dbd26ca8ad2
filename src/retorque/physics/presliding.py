"""Friction that remembers: where in its presliding hysteresis each joint stands, from the path it has come.

A joint that stops keeps the friction it had; one that reverses first winds the contact back. Dahl's model says so with
one distance d and no velocity at all: dz = (1 - z sign(dq)) dq / d, with z between -1 and 1. Several distances side by
side are linear in what is unknown and take the shape of most measured loops.
"""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

DISTANCES = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3)
"""The presliding distances every motion carries [rad]."""


def slip(q: Array, start: Array | None = None, distances: tuple[float, ...] = DISTANCES) -> Array:
    """The state z of each joint and distance along a path.

    Args:
        q: (samples, n) positions [rad].
        start: (n, distances) state before the first sample; default: unwound.
        distances: [rad]

    Returns:
        (samples, n, distances) within -1 and 1.
    """
    d = np.asarray(distances)
    step = np.diff(q, axis=0, prepend=q[:1])[..., None]  # (samples, n, 1)
    keep = np.exp(-np.abs(step) / d)
    push = np.sign(step) * (1.0 - keep)
    state = np.zeros((q.shape[1], len(d))) if start is None else np.array(start, dtype=float)
    out = np.empty((*q.shape, len(d)))
    for index in range(len(q)):
        state = keep[index] * state + push[index]
        out[index] = state
    return out


class SlipState:
    """The same, step by step: where every joint of some robots stands, and where a velocity would take it.

    Args:
        position: (..., n) where the joints are now, unwound [rad].
    """

    def __init__(self, position: Array):
        self._position = np.array(position, dtype=float)
        self.value = np.zeros((*self._position.shape, len(DISTANCES)))
        """(..., n, distances) within -1 and 1."""

    def advance(self, position: Array) -> None:
        """The joints have moved on, to (..., n) [rad]."""
        step = (position - self._position)[..., None]
        self._position[...] = position
        keep = np.exp(-np.abs(step) / DISTANCES)
        self.value = keep * self.value + np.sign(step) * (1.0 - keep)

    def after(self, velocity: Array, timestep: float) -> tuple[Array, Array]:
        """The state after a step at a velocity (..., n), and its derivative by it, (..., n, distances) [s/rad]."""
        step = timestep * np.asarray(velocity)[..., None] / DISTANCES
        keep = np.exp(-np.abs(step))
        sign = np.sign(step)
        slope = (1.0 - sign * self.value) * keep * (timestep / np.asarray(DISTANCES))
        return keep * self.value + sign * (1.0 - keep), slope
