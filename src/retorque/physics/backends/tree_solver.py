"""Compiled solution of equations with a tree's mass matrix, which has entries only between ancestors (numba)."""

from __future__ import annotations

from retorque.physics.backends.kernel import F1, I1, kernel
from retorque.physics.backends.tree_kernels import LANES, PAIR


@kernel(f"void({F1}, {I1}, {I1}, {F1}, {F1})")
def factor(pairs, first_pair, ancestors, diagonal, lower):
    """Mass matrix plus a diagonal (freedoms * LANES) as L' D L over pairs: L's entries, and 1 / D on the diagonal."""
    size = len(first_pair) - 1
    for d in range(size):
        for k in range(first_pair[d], first_pair[d + 1]):
            for i in range(LANES):
                lower[k * LANES + i] = pairs[k * PAIR * LANES + i]
        k = first_pair[d + 1] - 1
        for i in range(LANES):
            lower[k * LANES + i] += diagonal[d * LANES + i]
    for d in range(size - 1, -1, -1):
        begin, own = first_pair[d], first_pair[d + 1] - 1
        for i in range(LANES):
            lower[own * LANES + i] = 1.0 / lower[own * LANES + i]
        for k in range(own - 1, begin - 1, -1):
            row = first_pair[ancestors[k]]
            for m in range(k - begin + 1):  # an ancestor's own ancestors are the first of one's own
                e, f, g = (row + m) * LANES, (begin + m) * LANES, k * LANES
                for i in range(LANES):
                    lower[e + i] -= lower[g + i] * lower[own * LANES + i] * lower[f + i]
        for k in range(begin, own):
            for i in range(LANES):
                lower[k * LANES + i] *= lower[own * LANES + i]


@kernel(f"void({F1}, {I1}, {I1}, {F1}, int64, int64, int64, int64, int64)")
def solve(lower, first_pair, ancestors, right, columns, low, high, begin, end):
    """Solve in place for columns `begin` to `end` of `right` (freedoms, columns, LANES).

    Rows `low` to `high` are those of one branch from the ground: the others have zeros in these columns.
    """
    for d in range(high - 1, low - 1, -1):
        own = first_pair[d + 1] - 1
        for k in range(first_pair[d], own):
            e, f, g = ancestors[k] * columns * LANES, d * columns * LANES, k * LANES
            for c in range(begin, end):
                for i in range(LANES):
                    right[e + c * LANES + i] -= lower[g + i] * right[f + c * LANES + i]
    for d in range(low, high):
        own = first_pair[d + 1] - 1
        f = d * columns * LANES
        for c in range(begin, end):
            for i in range(LANES):
                right[f + c * LANES + i] *= lower[own * LANES + i]
        for k in range(first_pair[d], own):
            e, g = ancestors[k] * columns * LANES, k * LANES
            for c in range(begin, end):
                for i in range(LANES):
                    right[f + c * LANES + i] -= lower[g + i] * right[e + c * LANES + i]
