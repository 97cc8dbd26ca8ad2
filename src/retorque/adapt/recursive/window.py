"""The last few samples of a robot, and the averaged equation of motion they give."""

from __future__ import annotations

import numpy as np

from retorque.robots.state import State
from retorque.work.array import Array


class Window:
    """A ring of `length` samples of position, velocity and torque, (length, trials, n).

    The least-squares slope of the velocity is a weighted mean of the accelerations between samples, with weights on a
    parabola. Torques and features are averaged with the same weights, so that one exact equation comes out.
    """

    def __init__(self, length: int, trials: int, n: int, timestep: float):
        self.length, self.timestep = length, timestep
        self.position = np.zeros((length, trials, n))
        self.velocity = np.zeros((length, trials, n))
        self.torque = np.zeros((length, trials, n))
        self.valid = np.zeros((length, trials), dtype=bool)
        self.clear()

    def clear(self) -> None:
        """Forget every sample."""
        self.count = 0
        self._next = 0

    def push(self, state: State) -> None:
        """Add a sample; a trial whose report is not finite repeats its last one and is not valid."""
        k = self._next
        valid = np.isfinite(state.position + state.velocity + state.torque).all(axis=-1)
        if valid.all():
            self.position[k] = state.position
            self.velocity[k] = state.velocity
            self.torque[k] = state.torque
        else:
            good = valid[:, None]
            before = k - 1
            self.position[k] = np.where(good, state.position, self.position[before])
            self.velocity[k] = np.where(good, state.velocity, self.velocity[before])
            self.torque[k] = np.where(good, state.torque, self.torque[before])
        self.valid[k] = valid
        self._next = (k + 1) % self.length
        self.count = min(self.count + 1, self.length)

    def last(self, count: int) -> Array:
        """Ring indices of the last `count` samples, oldest first."""
        return (self._next - count + np.arange(count)) % self.length


def slope_weights(count: int, timestep: float) -> tuple[Array, Array]:
    """Weights of the slope of `count` samples [1/s], and of the mean of the intervals between them (they sum to 1)."""
    at = (np.arange(count) - 0.5 * (count - 1)) * timestep
    slope = at / np.sum(at * at)
    return slope, -np.cumsum(slope)[:-1] * timestep
