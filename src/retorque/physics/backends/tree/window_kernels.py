"""Compiled normal equations of a window of samples (numba)."""

from __future__ import annotations

import numpy as np

from retorque.physics.backends.tree import (
    ilqr_kernels as ilqr_kernels,
)  # compiled together, so that one entry makes all
from retorque.physics.backends.tree.kernel import F1, F2, F3, I1, kernel


@kernel(f"void({F3}, {I1}, float64, {F2}, {F1}, {I1}, int64, int64, {F2}, {F2}, {F1}, {F2})")
def segment(g, columns, step, residuals, noise, valid, begin, end, now, hessian, gradient, cross):
    """Carry a segment's sensitivity through its samples, and add up what they say.

    Args:
        g: (T, n, 2 n + inputs + parameters) derivatives of accelerations.
        columns: (size,) columns of g of the free parameters.
        step: [s].
        residuals: (T+1, 2 n) in standard deviations.
        noise: (2 n,) those standard deviations.
        valid: (T+1,) 1 where a sample was measured.
        begin, end: first sample, and the one after the last that counts.
        now: (2 n, size + 2 n) derivative of the state by parameters and first state; holds that of sample `end - 1`
            afterwards, or of sample `end` where there is one.
        hessian, gradient: (size + 2 n, size + 2 n), (size + 2 n,), added to.
        cross: (2 n, size + 2 n), added to: the rows of the Hessian of what is added to each measured state.
    """
    n, size = g.shape[1], len(columns)
    width = size + 2 * n
    after = np.empty((n, width))
    row = np.empty(width)
    last = len(residuals) - 1
    for t in range(begin, end):
        if valid[t] == 1:
            for i in range(2 * n):
                share, left = 1.0 / noise[i], residuals[t, i]
                for j in range(width):
                    row[j] = now[i, j] * share
                for j in range(width):
                    value = row[j]
                    cross[i, j] += share * value
                    gradient[j] += value * left
                    if value != 0.0:
                        for k in range(width):
                            hessian[j, k] += value * row[k]
        if t == last:
            break
        for i in range(n):
            for j in range(width):
                after[i, j] = now[n + i, j]
            for k in range(2 * n):
                c = step * g[t, i, k]
                for j in range(width):
                    after[i, j] += c * now[k, j]
            for j in range(size):
                after[i, j] += step * g[t, i, columns[j]]
        for i in range(n):
            for j in range(width):
                now[n + i, j] = after[i, j]
                now[i, j] += step * after[i, j]
