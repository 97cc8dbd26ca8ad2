"""Accelerations out of noisy positions and velocities with gaps: the masked local fit of TAM, B.3."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

POSITION_WEIGHT, VELOCITY_WEIGHT, RIDGE = 2.0, 1.0, 1e-6
"""Weights of the two kinds of equations, and the ridge as a share of each unknown's information (Table B.2)."""
FEWEST = 5
"""Valid ticks that a fit needs; with fewer, velocities are differenced, and with fewer than two nothing is known."""


def accelerations(q: Array, qd: Array, valid: Array, half: int, average: int, timestep: float) -> Array:
    """Curvature of a parabola through the positions and velocities around the middle of every block of ticks.

    Args:
        q: positions (ticks, trials, n) [rad], with `half` ticks before and after the blocks.
        qd: velocities, the same [rad/s].
        valid: which ticks can be used (ticks, trials).
        half: ticks on each side of the fit.
        average: ticks in a block.
        timestep: control period [s].

    Returns:
        (blocks, trials, n) [rad/s²].
    """
    blocks = (len(q) - 2 * half) // average
    first = average // 2  # the window of block i starts here, `half` before the block's middle
    offsets = np.arange(-half, half + 1) * timestep
    taper = 1.0 / (1.0 + np.abs(np.arange(-half, half + 1)))
    windows = np.lib.stride_tricks.sliding_window_view
    stop = first + average * blocks
    whole = windows(valid, 2 * half + 1, axis=0)[first:stop:average]  # (blocks, trials, ticks)
    complete = np.all(whole, axis=(1, 2))
    kq, kv = _kernel(offsets, taper)
    found = np.zeros((blocks, *q.shape[1:]))
    at_q = windows(q, 2 * half + 1, axis=0)[first:stop:average]  # (blocks, trials, n, ticks)
    at_v = windows(qd, 2 * half + 1, axis=0)[first:stop:average]
    for block in range(blocks):
        if complete[block]:
            centred = at_q[block] - at_q[block][..., half : half + 1]
            found[block] = centred @ kq + at_v[block] @ kv
        else:
            found[block] = _masked(at_q[block], at_v[block], whole[block], offsets, taper)
    return found


def _kernel(offsets: Array, taper: Array) -> tuple[Array, Array]:
    """Weights (ticks,) of positions and of velocities in the curvature when every tick counts."""
    position, velocity = _rows(offsets)
    information = _information(position, velocity, taper)
    solved = np.linalg.solve(information, np.array([0.0, 0.0, 1.0]))
    return POSITION_WEIGHT * taper * (position @ solved), VELOCITY_WEIGHT * taper * (velocity @ solved)


def _rows(offsets: Array) -> tuple[Array, Array]:
    """What value, slope and curvature do to a position and to a velocity, (ticks, 3) each."""
    one, nought = np.ones_like(offsets), np.zeros_like(offsets)
    return np.stack([one, offsets, 0.5 * offsets**2], -1), np.stack([nought, one, offsets], -1)


def _information(position: Array, velocity: Array, weight: Array) -> Array:
    matrix = POSITION_WEIGHT * np.einsum("...t,ti,tj->...ij", weight, position, position)
    matrix = matrix + VELOCITY_WEIGHT * np.einsum("...t,ti,tj->...ij", weight, velocity, velocity)
    diagonal = np.einsum("...ii->...i", matrix)
    return matrix + RIDGE * diagonal[..., None] * np.eye(3) + 1e-12 * np.eye(3)


def _masked(q: Array, qd: Array, valid: Array, offsets: Array, taper: Array) -> Array:
    """The fit of one block where ticks are missing: q, qd (trials, n, ticks), valid (trials, ticks) -> (trials, n)."""
    weight = taper * valid
    position, velocity = _rows(offsets)
    kept_q = np.where(valid[:, None], q, 0.0)
    kept_v = np.where(valid[:, None], qd, 0.0)
    level = kept_q.sum(-1) / np.maximum(valid.sum(-1), 1)[:, None]
    kept_q = np.where(valid[:, None], kept_q - level[..., None], 0.0)
    right = POSITION_WEIGHT * np.einsum("bt,ti,bnt->bni", weight, position, kept_q)
    right = right + VELOCITY_WEIGHT * np.einsum("bt,ti,bnt->bni", weight, velocity, kept_v)
    count = valid.sum(-1)
    information = _information(position, velocity, weight) + (count < FEWEST)[:, None, None] * np.eye(3)
    fitted = np.linalg.solve(information[:, None], right[..., None])[..., 2, 0]
    first, last = np.argmax(valid, axis=-1), valid.shape[-1] - 1 - np.argmax(valid[:, ::-1], axis=-1)
    rows = np.arange(len(valid))
    gap = np.where(last > first, offsets[last] - offsets[first], 1.0)
    difference = (kept_v[rows, :, last] - kept_v[rows, :, first]) / gap[:, None]
    rough = np.where((count >= 2)[:, None], difference, 0.0)
    return np.where((count >= FEWEST)[:, None], fitted, rough)
