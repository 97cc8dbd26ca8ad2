"""Where the ball is and how fast it rolls, from places that arrive late, jump or are missing."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array


class BallFilter:
    """Keeps the last place of a ball that is not seen, and filters its rate (E.3).

    Args:
        period: between two looks [s].
        memory: time constant of the rate's filter [s].
        patience: a ball hidden for longer is taken to be at rest where it was last seen [s].
    """

    def __init__(self, period: float, memory: float = 0.04, patience: float = 0.3):
        self.period, self.memory, self.patience = period, memory, patience
        self.reset()

    def reset(self) -> None:
        """Nothing has been seen."""
        self._place: Array | None = None
        self._rate: Array | None = None
        self._hidden: Array | None = None

    def see(self, place: Array) -> tuple[Array, Array]:
        """Place and rate (..., 2) [m, m/s], from a look (..., 2) that is not finite where the ball is hidden."""
        place = np.asarray(place, dtype=float)
        seen = np.isfinite(place).all(axis=-1, keepdims=True)
        if self._place is None or self._rate is None or self._hidden is None or self._place.shape != place.shape:
            self._place = np.where(seen, place, 0.0)  # before the first look, the middle of the plate
            self._rate, self._hidden = np.zeros_like(place), np.where(seen, 0.0, np.inf)
            return self._place, self._rate
        keep = np.exp(-self.period / self.memory)
        first = self._hidden > self.patience  # where it was then says nothing about its rate
        apart = self._hidden + self.period
        moved = np.where(seen & ~first, place - self._place, 0.0) / np.where(first, self.period, apart)
        rate = np.where(seen & ~first, keep * self._rate + (1.0 - keep) * moved, self._rate)
        self._hidden = np.where(seen, 0.0, apart)
        self._rate = np.where(self._hidden > self.patience, 0.0, np.where(seen & first, 0.0, rate))
        self._place = np.where(seen, place, self._place)
        return self._place, self._rate

    @property
    def stale(self) -> Array:
        """(...) whether the ball was hidden for longer than `patience`."""
        return np.zeros(()) if self._hidden is None else self._hidden[..., 0] > self.patience
