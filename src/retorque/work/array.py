"""The one name for an array of numbers."""

from __future__ import annotations

import numpy as np

Array = np.ndarray
"""An array of numbers; its shape and unit stand where it is born.

`(..., n)` means: leading axes are trials, and there may be none; `n` is a number of joints. `(trials, n)` is a batch,
`(samples, n)` a log, `(n, 10)` ten inertial numbers a link. The element type is float64 unless said otherwise.
"""
