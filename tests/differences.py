"""Central differences, for tests of derivatives."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def slope(function: Callable[[np.ndarray], np.ndarray], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """d function / d each number of `at` (size,): (..., size), with the function's own axes first."""
    moves = step * np.eye(len(at))
    return np.stack([(function(at + move) - function(at - move)) / (2.0 * step) for move in moves], axis=-1)
