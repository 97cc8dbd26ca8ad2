"""The one name for an array of numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

Array = np.ndarray
"""An array of numbers; its shape and unit stand where it is born.

`(..., n)` means: leading axes are trials, and there may be none; `n` is a number of joints. `(trials, n)` is a batch,
`(samples, n)` a log, `(n, 10)` ten inertial numbers a link. The element type is float64 unless said otherwise.
"""


def read_only(values: ArrayLike) -> Array:
    """A copy of some numbers that nobody can write to; what is read-only already comes back as it is."""
    if isinstance(values, np.ndarray) and not values.flags.writeable and values.base is None:
        return values
    array = np.array(values, dtype=float)
    array.flags.writeable = False
    return array
