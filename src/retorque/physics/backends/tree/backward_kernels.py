"""Compiled backward pass of iLQR within limits (numba).

A step's derivatives are those of v' alone, G (n, 2 n + inputs), since q' = q + h v'. The quadratic model of what is to
come, V of (q', v'), is therefore first written in (q, v'), and only n rows meet G. Rows of matrices are padded to
multiples of eight numbers: what lies in the padding is never read for a result.
"""

from __future__ import annotations

import math

import numpy as np

from retorque.physics.backends.tree.kernel import F1, F2, F3, I1, kernel
from retorque.physics.backends.tree.lanes import LANES, load, spread, store


@kernel(f"void({F1}, int64, {F1}, int64, int64, int64, {F1}, int64, int64, int64, int64)")
def _add_product(out, o, a, first, down, along, b, stride, rows, depth, columns):
    """out[r, :] += sum over k of a(r, k) b[k, :], where a(r, k) lies at first + r * down + k * along.

    Rows of `out` (from `o` on) and `b` are `stride` apart; columns are taken eight at a time.
    """
    for c in range(0, columns, LANES):
        r = 0
        while r + 4 <= rows:  # four sums at once, since each waits for itself
            e, i = o + r * stride + c, first + r * down
            x0, x1 = load(out, e), load(out, e + stride)
            x2, x3 = load(out, e + 2 * stride), load(out, e + 3 * stride)
            for k in range(depth):
                row, j = load(b, k * stride + c), i + k * along
                x0 += spread(a, j) * row
                x1 += spread(a, j + down) * row
                x2 += spread(a, j + 2 * down) * row
                x3 += spread(a, j + 3 * down) * row
            store(out, e, x0)
            store(out, e + stride, x1)
            store(out, e + 2 * stride, x2)
            store(out, e + 3 * stride, x3)
            r += 4
        while r < rows:
            e, i = o + r * stride + c, first + r * down
            x0 = load(out, e)
            for k in range(depth):
                x0 += spread(a, i + k * along) * load(b, k * stride + c)
            store(out, e, x0)
            r += 1


@kernel(f"int64({F2}, {F1}, {F1}, {F1}, {F1}, {F2}, {I1})")
def box(hessian, gradient, low, high, x, factor, where):
    """Minimise x' H x / 2 + g' x within limits by projected Newton steps; -1 where H is not positive definite.

    Leaves which inputs are free (`where`, in order) and the Cholesky factor over them, with the inverse of its diagonal
    in place; returns how many are free.
    """
    m = len(gradient)
    slope, way, tried = np.empty(m), np.empty(m), np.empty(m)
    for i in range(m):
        x[i] = min(max(x[i], low[i]), high[i])
    count = 0
    for _ in range(20):
        value, biggest, count = 0.0, 0.0, 0
        for i in range(m):
            total = gradient[i]
            for j in range(m):
                total += hessian[i, j] * x[j]
            slope[i] = total
            value += 0.5 * x[i] * (total + gradient[i])
            held = (x[i] <= low[i] and total > 0.0) or (x[i] >= high[i] and total < 0.0)
            if not held:
                where[count] = i
                count += 1
                biggest = max(biggest, abs(total))
        for a in range(count):  # Cholesky over the free ones
            for b in range(a + 1):
                total = hessian[where[a], where[b]]
                for k in range(b):
                    total -= factor[a, k] * factor[b, k]
                if a == b:
                    if not total > 1e-14:
                        return -1
                    factor[a, a] = 1.0 / math.sqrt(total)
                else:
                    factor[a, b] = total * factor[b, b]
        if count == 0 or biggest < 1e-9:
            return count
        for a in range(count):
            total = -slope[where[a]]
            for k in range(a):
                total -= factor[a, k] * way[k]
            way[a] = total * factor[a, a]
        for a in range(count - 1, -1, -1):
            total = way[a]
            for k in range(a + 1, count):
                total -= factor[k, a] * way[k]
            way[a] = total * factor[a, a]
        share, done = 1.0, False
        for _ in range(12):
            for i in range(m):
                tried[i] = x[i]
            for a in range(count):
                i = where[a]
                tried[i] = min(max(x[i] + share * way[a], low[i]), high[i])
            new, expected = 0.0, 0.0
            for i in range(m):
                total = gradient[i]
                for j in range(m):
                    total += 0.5 * hessian[i, j] * tried[j]
                new += tried[i] * total
                expected += slope[i] * (tried[i] - x[i])
            if new <= value + 0.1 * expected + 1e-15:
                done = True
                break
            share *= 0.5
        if not done:
            return count
        moved = 0.0
        for i in range(m):
            moved = max(moved, abs(tried[i] - x[i]))
            x[i] = tried[i]
        if moved < 1e-12:
            return count
    return count


@kernel(f"int64({F2}, {F1}, {F1}, {F1}, {F1}, {F2}, {I1})")
def _minimum(hessian, gradient, low, high, x, factor, where):
    """`box`, at once where the minimum without limits lies within them."""
    m = len(gradient)
    for a in range(m):
        for b in range(a + 1):
            total = hessian[a, b]
            for k in range(b):
                total -= factor[a, k] * factor[b, k]
            if a == b:
                if not total > 1e-14:
                    return box(hessian, gradient, low, high, x, factor, where)
                factor[a, a] = 1.0 / math.sqrt(total)
            else:
                factor[a, b] = total * factor[b, b]
    way = np.empty(m)
    for a in range(m):
        total = -gradient[a]
        for k in range(a):
            total -= factor[a, k] * way[k]
        way[a] = total * factor[a, a]
    for a in range(m - 1, -1, -1):
        total = way[a]
        for k in range(a + 1, m):
            total -= factor[k, a] * way[k]
        way[a] = total * factor[a, a]
        if not (low[a] <= way[a] <= high[a]):
            return box(hessian, gradient, low, high, x, factor, where)
    for a in range(m):
        x[a], where[a] = way[a], a
    return m


@kernel(f"void({F1}, {F3}, {F3}, int64, int64, int64)")
def _own_costs(out, lxx, luu, t, n, width):
    """The cost's own Hessians of a knot as one matrix of states and inputs (2 n + inputs, width)."""
    rx, ru = (t if len(lxx) > 2 else 0), (t if len(luu) > 1 else 0)
    for i in range(2 * n):
        for j in range(2 * n):
            out[i * width + j] = lxx[rx, i, j]
    for i in range(luu.shape[1]):
        for j in range(luu.shape[1]):
            out[(2 * n + i) * width + 2 * n + j] = luu[ru, i, j]


@kernel(f"void({F2}, {I1}, {F1}, {F1}, int64, int64, int64, int64)")
def _feedback(factor, where, q, gain, n, width, stride, count):
    """Rows of the gain of the free inputs, -(L L')^-1 Qux, by forward and backward substitution."""
    for c in range(0, stride, LANES):
        for a in range(count):
            row = -load(q, (2 * n + where[a]) * width + c)
            for b in range(a):
                row -= factor[a, b] * load(gain, b * stride + c)
            store(gain, a * stride + c, factor[a, a] * row)
        for a in range(count - 1, -1, -1):
            row = load(gain, a * stride + c)
            for b in range(a + 1, count):
                row -= factor[b, a] * load(gain, b * stride + c)
            store(gain, a * stride + c, factor[a, a] * row)


@kernel(f"void({F1}, {F1}, int64, int64, float64, {F1}, {F1}, {F1}, {F1}, {F1}, {F1})")
def _carried(vxx, vx, n, stride, step, mask, w2, w2t, w3, upper, gw):
    """V of (q', v') in (q, v'): rows of its blocks, n of them, as far apart as `mask` is long."""
    block = len(mask)
    for i in range(n):
        gw[i] = step * vx[i] + vx[n + i]
        for c in range(0, block, LANES):
            a, b = load(vxx, i * stride + c), load(vxx, i * stride + n + c)
            d, e = load(vxx, (n + i) * stride + c), load(vxx, (n + i) * stride + n + c)
            keep, at = load(mask, c), i * block + c
            store(w2, at, step * a + b)
            store(w2t, at, keep * (step * a + d))
            store(w3, at, step * (step * a + b + d) + e)
            store(upper, at, keep * a)


@kernel(f"int64({F3}, {F2}, {F3}, {F2}, {F3}, {F2}, {F1}, {F1}, float64, float64, {F2}, {F3}, {F1})")
def backward(g, lx, lxx, lu, luu, inputs, low, high, step, damping, change, gains, expected):
    """Inputs' changes and gains that minimise the quadratic model within limits; -1, or the knot where it failed.

    Free inputs have (Quu + damping) K = -Qux, so that what is to come is Qxx + (Qux - damping K)' K.

    Args:
        g: (H, n, 2 n + inputs) derivatives of accelerations.
        lx, lxx, lu, luu: expansion of the cost; constant Hessians are (2, ...), running and final, and (1, ...).
        inputs, low, high: (H, inputs), (inputs,), (inputs,).
        step: [s].
        damping: added to the inputs' Hessian.
        change, gains: (H, inputs), (H, inputs, 2 n), filled; what is in `change` is where each box starts.
        expected: (2,) linear and quadratic part of what the whole change gains.
    """
    horizon, n, m = len(inputs), g.shape[1], g.shape[2] - 2 * g.shape[1]
    size = 2 * n + m
    width, stride, block = LANES * -(-size // LANES), LANES * -(-2 * n // LANES), LANES * -(-n // LANES)
    flat = g.reshape(-1)
    vx, vxx = np.zeros(stride), np.zeros(2 * n * stride + 2 * block)
    w2, w2t, w3 = np.empty(n * block), np.empty(n * block), np.empty(n * block)
    upper, gw, mask = np.empty(n * block), np.empty(n), np.zeros(block)
    f, y, q, own = np.empty(n * width), np.empty(n * width), np.empty(size * width), np.zeros(size * width)
    qz, gain, lead = np.zeros(width), np.empty(m * stride), np.empty(m * stride)
    quu, factor, where = np.empty((m, m)), np.empty((m, m)), np.empty(m, np.int64)
    lo, hi, x, pull = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    mask[:n] = 1.0
    expected[0] = expected[1] = 0.0
    for i in range(2 * n):
        vx[i] = lx[horizon, i]
        for j in range(2 * n):
            vxx[i * stride + j] = lxx[len(lxx) - 1, i, j]
    for t in range(horizon - 1, -1, -1):
        if t == horizon - 1 or len(lxx) > 2 or len(luu) > 1:
            _own_costs(own, lxx, luu, t, n, width)
        _carried(vxx, vx, n, stride, step, mask, w2, w2t, w3, upper, gw)
        for i in range(n):
            at, row = (t * n + i) * size, i * width
            if at + width <= len(flat):
                for c in range(0, width, LANES):
                    store(f, row + c, step * load(flat, at + c))
            else:
                for j in range(size):
                    f[row + j] = step * flat[at + j]
                for j in range(size, width):
                    f[row + j] = 0.0
            f[row + n + i] += 1.0
            for c in range(0, width, LANES):
                if c < block:
                    store(y, row + c, load(w2t, i * block + c))
                    store(q, row + c, load(own, row + c) + load(upper, i * block + c))
                else:
                    store(y, row + c, 0.0)
                    store(q, row + c, load(own, row + c))
        for e in range(n * width, size * width, LANES):
            store(q, e, load(own, e))
        _add_product(y, 0, w3, 0, block, 1, f, width, n, n, width)
        _add_product(q, 0, w2, 0, block, 1, f, width, n, n, 2 * n)
        _add_product(q, 0, f, 0, 1, width, y, width, 2 * n, n, 2 * n)
        _add_product(q, 2 * n * width, f, 2 * n, 1, width, y, width, m, n, size)
        for i in range(n):
            qz[i], qz[n + i] = vx[i] + lx[t, i], lx[t, n + i]
        for i in range(m):
            qz[2 * n + i] = lu[t, i]
        _add_product(qz, 0, gw, 0, 0, 1, f, width, 1, n, size)
        for i in range(m):
            lo[i], hi[i], x[i] = low[i] - inputs[t, i], high[i] - inputs[t, i], change[t, i]
            for j in range(m):
                e, k = (2 * n + i) * width + 2 * n + j, (2 * n + j) * width + 2 * n + i
                quu[i, j] = 0.5 * (q[e] + q[k])
            quu[i, i] += damping
        count = _minimum(quu, qz[2 * n : size], lo, hi, x, factor, where)
        if count < 0:
            return t
        _feedback(factor, where, q, gain, n, width, stride, count)
        k = 0
        for i in range(m):
            change[t, i] = x[i]
            free = k < count and where[k] == i
            for j in range(2 * n):
                gains[t, i, j] = gain[k * stride + j] if free else 0.0
            k += 1 if free else 0
            total = -damping * x[i]
            for j in range(m):
                total += quu[i, j] * x[j]
            pull[i] = qz[2 * n + i] + total
            expected[0] += x[i] * qz[2 * n + i]
            expected[1] += 0.5 * x[i] * total
        for c in range(0, stride, LANES):
            total = load(qz, c)
            for i in range(m):
                total += x[i] * load(q, (2 * n + i) * width + c)
            for a in range(count):
                row = load(gain, a * stride + c)
                total += pull[where[a]] * row
                store(lead, a * stride + c, load(q, (2 * n + where[a]) * width + c) - damping * row)
            store(vx, c, total)
            for i in range(2 * n):
                store(vxx, i * stride + c, load(q, i * width + c))
        _add_product(vxx, 0, lead, 0, 1, stride, gain, stride, 2 * n, count, 2 * n)
        for i in range(2 * n):
            for j in range(i):
                vxx[j * stride + i] = vxx[i * stride + j]
    return -1
