"""Compilation of small numeric kernels: numba where it is installed, the same Python functions where it is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeVar, cast

import numpy as np

from retorque.work.array import Array

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = find_spec("numba") is not None
"""Whether kernels are compiled; without it: pip install 'retorque[compile]'."""


def kernel(function: F) -> F:
    """Compile a function over arrays and numbers; kept on disk between runs, and free of the GIL."""
    if not COMPILED:
        return function
    import numba

    return cast(F, numba.njit(cache=True, nogil=True, fastmath=False, error_model="numpy")(function))


@kernel
def all_finite(a: Array, b: Array) -> bool:
    """Whether two flat arrays hold numbers only; a fraction of NumPy's time on a few of them."""
    sound = True
    for x in a:
        sound = sound and np.isfinite(x)
    for x in b:
        sound = sound and np.isfinite(x)
    return sound


@kernel
def all_true(a: Array) -> bool:
    """Whether a flat array of truths holds no false one."""
    true = True
    for x in a:
        true = true and x
    return true


@kernel
def cholesky_solve(a: Array, b: Array) -> bool:
    """Solve a x = b in place for a symmetric positive a (m, m) and b (m, k); False where a is not positive."""
    m, k = b.shape
    for j in range(m):
        d = a[j, j]
        for i in range(j):
            d -= a[j, i] * a[j, i]
        if not d > 1e-300:
            return False
        d = d**0.5
        a[j, j] = d
        for r in range(j + 1, m):
            s = a[r, j]
            for i in range(j):
                s -= a[r, i] * a[j, i]
            a[r, j] = s / d
    for c in range(k):
        for r in range(m):
            s = b[r, c]
            for i in range(r):
                s -= a[r, i] * b[i, c]
            b[r, c] = s / a[r, r]
        for r in range(m - 1, -1, -1):
            s = b[r, c]
            for i in range(r + 1, m):
                s -= a[i, r] * b[i, c]
            b[r, c] = s / a[r, r]
    return True
