"""Compiled solution of equations with a tree's mass matrix, which has entries only between ancestors (numba)."""

from __future__ import annotations

from retorque.physics.backends.tree.kernel import F1, I1, kernel
from retorque.physics.backends.tree.lanes import LANES, load, store
from retorque.physics.backends.tree.tree_kernels import PAIR


@kernel(f"void({F1}, {I1}, {I1}, {F1}, {F1})")
def factor(pairs, first_pair, ancestors, diagonal, lower):
    """Mass matrix plus a diagonal (freedoms * LANES) as L' D L over pairs: L's entries, and 1 / D on the diagonal."""
    size = len(first_pair) - 1
    for d in range(size):
        for k in range(first_pair[d], first_pair[d + 1]):
            store(lower, k * LANES, load(pairs, k * PAIR * LANES))
        k = (first_pair[d + 1] - 1) * LANES
        store(lower, k, load(lower, k) + load(diagonal, d * LANES))
    for d in range(size - 1, -1, -1):
        begin, own = first_pair[d], first_pair[d + 1] - 1
        inverse = 1.0 / load(lower, own * LANES)
        store(lower, own * LANES, inverse)
        for k in range(own - 1, begin - 1, -1):
            row, share = first_pair[ancestors[k]], load(lower, k * LANES) * inverse
            for m in range(k - begin + 1):  # an ancestor's own ancestors are the first of one's own
                e = (row + m) * LANES
                store(lower, e, load(lower, e) - share * load(lower, (begin + m) * LANES))
        for k in range(begin, own):
            store(lower, k * LANES, load(lower, k * LANES) * inverse)


@kernel(f"void({F1}, {I1}, {I1}, {F1}, int64, int64, int64, int64, int64)")
def solve(lower, first_pair, ancestors, right, columns, low, high, begin, end):
    """Solve in place for columns `begin` to `end` of `right` (freedoms, columns, LANES).

    Rows `low` to `high` are those of one branch from the ground: the others have zeros in these columns.
    """
    for d in range(high - 1, low - 1, -1):
        own, f = first_pair[d + 1] - 1, d * columns * LANES
        for k in range(first_pair[d], own):
            e, share = ancestors[k] * columns * LANES, load(lower, k * LANES)
            for c in range(begin * LANES, end * LANES, LANES):
                store(right, e + c, load(right, e + c) - share * load(right, f + c))
    for d in range(low, high):
        own, f = first_pair[d + 1] - 1, d * columns * LANES
        inverse = load(lower, own * LANES)
        for c in range(begin * LANES, end * LANES, LANES):
            total = load(right, f + c) * inverse
            for k in range(first_pair[d], own):
                total -= load(lower, k * LANES) * load(right, ancestors[k] * columns * LANES + c)
            store(right, f + c, total)
