"""What a model of the robot cannot say, as far as it lasts for a moment: filtered joint by joint."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array


class Disturbance:
    """A torque a joint that decays, whose size is learnt from the correlation of residuals that share no sample.

    Args:
        scale: torque that counts as one, (n,) [N·m].
        trials: robots served at once.
        step: time between residuals [s].
        apart: residuals between two that share no sample.
        first: first guess of its size [scale].
        lasting: how long it is taken to last [s].
        memory: time over which its size is learnt [s].
        floor: least noise of a residual that is believed [scale].
    """

    remembered = ("torque", "_doubt", "_persistent", "_neighbours", "total", "_residuals", "_used", "_count")

    def __init__(
        self,
        scale: Array,
        trials: int,
        step: float,
        apart: int,
        first: float,
        lasting: float,
        memory: float,
        floor: float,
    ):
        self._scale, self._first, self._floor = scale, first, (floor * scale) ** 2
        self._keep = np.exp(-step / lasting)
        self._rate = step / memory
        self._shape = (trials, len(scale))
        self._residuals = np.zeros((apart, *self._shape))
        self._used = np.zeros((apart, trials), dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.torque = np.zeros(self._shape)
        """(trials, n) [N·m]"""
        self._doubt = np.zeros(self._shape)
        self._persistent = np.broadcast_to((self._first * self._scale) ** 2, self._shape).copy()
        self._neighbours = self._persistent.copy()
        self.total = self._persistent + (0.1 * self._scale) ** 2
        """Variance of all that the unknowns leave, (trials, n) [(N·m)²]."""
        self._residuals[:] = 0.0
        self._used[:] = False
        self._count = 0

    @property
    def lasting(self) -> Array:
        """Its variance, as far as residuals that share no sample agree on it, (trials, n) [(N·m)²].

        Residuals that turn round from one to the next do not last, however well every other one agrees: it is the
        correction itself that shakes a flexible joint once a step, and must let go of it.
        """
        return np.where(self._neighbours > 0.0, np.clip(self._persistent, 0.0, self.total), 0.0)

    def learn(self, residual: Array, use: Array) -> None:
        """Take in what the unknowns do not explain (trials, n); a trial that is not used keeps a fading torque."""
        keep, apart = self._keep, len(self._residuals)
        rate = self._rate * use[:, None]
        slot = self._count % apart
        if self._count >= apart:
            both = rate * self._used[slot][:, None]
            self._persistent += both * (residual * self._residuals[slot] / keep**apart - self._persistent)
            before = (self._count - 1) % apart
            both = rate * self._used[before][:, None]
            self._neighbours += both * (residual * self._residuals[before] - self._neighbours)
        self._residuals[slot], self._used[slot] = residual, use
        self._count += 1
        self.total = self.total + rate * (residual * residual - self.total)
        variance = self.lasting
        white = np.maximum(self.total - variance, self._floor)
        predicted = keep * keep * self._doubt + (1.0 - keep * keep) * variance
        gain = predicted / (predicted + white) * use[:, None]
        self.torque = keep * self.torque
        self.torque += gain * (residual - self.torque)
        self._doubt = (1.0 - gain) * predicted
