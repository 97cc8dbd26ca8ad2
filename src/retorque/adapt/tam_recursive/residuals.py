"""What an estimate leaves unexplained, block by block: the learned module's history."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retorque.loop.history import History
from retorque.work.array import Array

BLOCK = 5
"""Ticks of 1 ms averaged into a block, and between two answers of the learned module; at other rates as many as come
nearest to that time, one at least."""
FINE = 12
"""Newest residuals kept one by one (60 ms)."""
COARSE = (12, 24, 48)
"""Blocks in each of the older averages (60, 120 and 240 ms)."""
TAPS = FINE + len(COARSE) + 1
"""Torques that the module weighs: residuals, and what the estimator itself takes for persistent."""
DEPTH = FINE + sum(COARSE)
DOUBTS = 3
"""Of the estimate's torques, of what persists beyond them, and of all that they leave."""
FEATURES = TAPS + 11 + DOUBTS
"""Numbers the module sees of each joint."""
NOISE_MEMORY = 0.5
"""Time over which the residuals' noise is learnt [s]."""

Inverse = Callable[[Array, Array, Array, Array], Array]
"""Positions, velocities, accelerations and commands given (trials, n) to those that the estimate would need."""


class Residuals:
    """The torques that an estimate cannot explain along the motion measured, every block of 5 ms.

    The difference of two blocks' mean velocities is an acceleration; the mean torque of the two blocks, less what the
    estimate needs for that motion, is the residual: the robot's own error less the external torque, and noise.

    Args:
        unit: torque that counts as one, (n,) [N·m].
        history: the ring of reports.
    """

    remembered = ("_before", "_ring", "_velocities", "_roughness", "_unsound", "_closed", "_blocks")

    def __init__(self, unit: Array, history: History):
        self.unit, self.history, self.timestep = unit, history, history.timestep
        self.block = max(1, round(BLOCK * 1e-3 / self.timestep))
        n, trials = len(unit), history.trials
        self._before = np.zeros((3, trials, n))
        self._ring = np.zeros((DEPTH, trials, n))
        self._velocities = np.zeros((4, trials, n))
        self._roughness = np.zeros((trials, n))
        self._unsound = np.zeros(trials, dtype=int)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._closed = self._blocks = 0
        self._ring[:] = 0.0
        self._roughness[:] = self.unit**2
        self._unsound[:] = 0

    @property
    def sound(self) -> Array:
        """(trials,) whether the newest residuals come from whole reports."""
        return self._unsound == 0

    @property
    def lost(self) -> Array:
        """(trials,) whether reports of the newest block itself are missing."""
        return self._unsound == FINE

    @property
    def due(self) -> bool:
        """Whether a block is complete."""
        return self.history.total - self._closed >= self.block

    @property
    def newest(self) -> Array:
        """(trials, n) the last block's residual [N·m]."""
        return self._ring[0]

    def close(self, inverse: Inverse) -> bool:
        """End the newest block; whether there is a new residual."""
        total = self.history.total
        self._closed = total - (total - self._closed) % self.block
        back = total - self._closed
        now = self.history.last(self.block, back).mean(axis=1)
        broken = ~self.history.valid(self.block, back).all(axis=0)
        self._unsound = np.where(broken, FINE, np.maximum(self._unsound - 1, 0))
        before, self._before = self._before, now
        self._blocks += 1
        if self._blocks < 2:
            return False
        middle = 0.5 * (now + before)
        acceleration = (now[1] - before[1]) / (self.block * self.timestep)
        residual = middle[2] - inverse(middle[0], middle[1], acceleration, middle[2])
        self._velocities = np.concatenate([now[1][None], self._velocities[:-1]])
        rough = 0.5 * (residual - self._ring[0]) ** 2
        keep = np.exp(-self.block * self.timestep / NOISE_MEMORY)
        self._roughness = keep * self._roughness + (1.0 - keep) * np.minimum(rough, (10.0 * self.unit) ** 2)
        self._ring = np.concatenate([residual[None], self._ring[:-1]])
        return True

    def taps(self, disturbance: Array) -> Array:
        """The newest residuals one by one, averages of older ones, and the disturbance (trials, n, TAPS) [units].

        Args:
            disturbance: what the estimator itself takes for persistent (trials, n) [N·m].
        """
        parts = [self._ring[:FINE]]
        start = FINE
        for length in COARSE:
            parts.append(self._ring[start : start + length].mean(axis=0, keepdims=True))
            start += length
        return np.moveaxis(np.concatenate([*parts, disturbance[None]]), 0, -1) / self.unit[:, None]

    def features(self, taps: Array, doubts: Array) -> Array:
        """What the module sees, (trials, n, FEATURES) float32.

        Args:
            taps: of `taps`.
            doubts: standard deviations that the estimator has learnt (DOUBTS, trials, n) [N·m].
        """
        v = self._velocities
        moving = np.concatenate([np.tanh(v / 0.03), np.tanh(v[:1] / 0.2), v[:1], v[:1] - v[3:]])
        noise = np.sqrt(self._roughness) / self.unit
        recent = taps[..., :FINE].mean(axis=-1) / (noise / np.sqrt(FINE) + 0.02)
        energy = np.broadcast_to(np.mean(recent**2, axis=-1, keepdims=True), recent.shape)  # of all joints together
        added = [np.log(noise + 0.01), np.arcsinh(recent), np.tanh((v[0] - v[3]) / 0.03), np.arcsinh(energy)]
        rest = np.concatenate([moving, np.stack(added), np.log(doubts / self.unit + 0.01)])
        return np.concatenate([np.arcsinh(taps), np.moveaxis(rest, 0, -1)], axis=-1).astype(np.float32)
