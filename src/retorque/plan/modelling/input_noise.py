"""What noise of the inputs does to a fitted window: it moves the true trajectory, and so what seems most likely."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array


def input_spread(
    changes: Array,
    columns: Array,
    timestep: float,
    weights: Array,
    ties: Array,
    valid: Array,
    starts: list[int],
    variance: Array,
    *,
    constant: Array,
    offsets: bool = False,
) -> Array:
    """Covariance of a window's gradient that noise of the inputs makes, for unknowns (p, first states, offsets).

    A push at one step moves every later state of its segment. Adjoints carry what all these samples, and the tie to the
    next segment, say of each unknown back to that step: Λ_t = J_tᵀ W + Λ_{t+1} A_t, and the gradient moves by
    Λ_{t+1} B_t w.

    Args:
        changes: (T, n, 2 n + inputs + selection) derivatives of accelerations along the fitted trajectory.
        columns: (size,) columns of the free parameters in it.
        timestep: [s].
        weights: (2 n,) inverse variances of measured states.
        ties: (2 n,) inverse variances of the ties between segments.
        valid: (T+1,) which samples were measured.
        starts: first sample of each segment.
        variance: (inputs,) of the inputs' noise [N² or (N·m)²].
        constant: (inputs,) variance of what is added to the inputs at all steps alike.
        offsets: whether constant errors of the sensors are unknown too.
    """
    steps, n = changes.shape[:2]
    size, width, inputs = len(columns), 2 * n, len(variance)
    moved = timestep * changes[..., : width + inputs]  # of the next velocities, by state and input
    a, b = np.tile(np.eye(width), (steps, 1, 1)), np.zeros((steps, width, inputs))
    a[:, n:] += moved[..., :width]
    b[:, n:] = moved[..., width:]
    by_p = timestep * changes[..., columns]
    a[:, :n] += timestep * a[:, n:]
    b[:, :n] = timestep * b[:, n:]
    first_off = size + width * len(starts)
    unknowns = first_off + (width if offsets else 0)
    out, always = np.zeros((unknowns, unknowns)), np.zeros((unknowns, inputs))
    ends = [*starts[1:], steps]
    for k, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        now = np.concatenate([np.zeros((width, size)), np.eye(width)], axis=1)
        rows = [now]
        for t in range(begin, end):
            now = a[t] @ now
            now[:n, :size] += timestep * by_p[t]
            now[n:, :size] += by_p[t]
            rows.append(now)
        last = k + 1 == len(starts)
        states = size + k * width + np.arange(width * (1 if last else 2))
        mine = np.concatenate([np.arange(size), states, np.arange(first_off, unknowns)])
        off = size + len(states)
        adjoint = np.zeros((len(mine), width))
        if last:
            adjoint[: size + width] = rows[-1].T * weights * valid[end]
            adjoint[off:] = np.diag(weights)[: unknowns - first_off] * valid[end]
        else:
            adjoint[: size + width] = rows[-1].T * ties
            adjoint[size + width : off] = -np.diag(ties)
        pushes = np.empty((end - begin, len(mine), inputs))
        for t in range(end - 1, begin - 1, -1):
            pushes[t - begin] = adjoint @ b[t]
            adjoint = adjoint @ a[t]
            if valid[t]:
                adjoint[: size + width] += rows[t - begin].T * weights
                adjoint[off:] += np.diag(weights)[: unknowns - first_off]
        out[np.ix_(mine, mine)] += np.einsum("tiu,tju,u->ij", pushes, pushes, variance)
        always[mine] += np.sum(pushes, axis=0)
    return out + always * constant @ always.T
