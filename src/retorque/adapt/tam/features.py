"""What the network is fed: rows of history for the encoder, and the adaptor's short window."""

from __future__ import annotations

from typing import Any

import numpy as np

from retorque.adapt.tam.context import PROBES, Context
from retorque.adapt.tam.derivative import accelerations
from retorque.adapt.tam.paper.paper_scales import RESIDUAL, TORQUE
from retorque.adapt.tam.preset import Preset
from retorque.work.array import Array

IDLE_TORQUE = 1e-5
"""A tick whose reported torques are all below this is idle and masked [N·m]."""
RESIDUAL_ROW = 3
"""Where the physics residual stands among a row's fast features."""
BOUND = 20.0
"""Features are clipped to this."""
POSITION, BASIS = 9, 10 + PROBES
"""Sizes of the adaptor's feature groups (for a window of 8 ticks)."""
COEFFICIENTS = np.array(
    [
        [0.0, 4.0],  # constant
        [0.7, 0.9],  # viscous, mean of both directions
        [0.0, 0.9],  # viscous, difference
        [0.0, 3.0],  # friction, narrow
        [0.0, 3.0],  # friction
        [0.0, 3.0],  # friction, wide
        [0.0, 3.0],  # friction, difference
        [0.0, 1.05],  # armature within its range
        [0.0, 0.02],  # the armature's middle: known
        [0.0, 0.15],  # the arm's own mass
        [0.5, 0.6],  # payload mass
        [0.0, 1.05],  # payload centre
        [0.0, 1.05],
        [0.0, 1.05],
    ],
    dtype=np.float32,
)
"""Middle and half range of the basis' coefficients: what the hidden parameters of a profile can ask for [units]."""
SHIFT = 8
"""Which number of the basis is the torque of the armature in the middle of its range beyond the ideal one."""


def fast_size(preset: Preset) -> int:
    """Features of a row and joint."""
    return 6 if preset.slow else 4


def slow_size(preset: Preset) -> int:
    """Slow features of a row and joint."""
    return 3 + PROBES if preset.slow else 0


def patch_size(preset: Preset) -> int:
    """Numbers in one patch of one joint."""
    slow = preset.patch_rows // preset.slow * slow_size(preset) if preset.slow else 0
    return preset.patch_rows * fast_size(preset) + slow


def hidden_features(preset: Preset) -> tuple[Array, Array]:
    """What a variant may not see: masks of 0 and 1 over the fast and the slow features of a row."""
    fast, slow = np.ones(fast_size(preset), dtype=np.float32), np.ones(slow_size(preset), dtype=np.float32)
    if preset.variant in ("tam-no-residual", "tam-no-etau"):
        fast[RESIDUAL_ROW] = 0.0
    if preset.variant == "tam-no-residual" and preset.slow:  # whatever else the ideal model says
        fast[RESIDUAL_ROW + 1] = 0.0  # the acceleration
        slow[2:] = 0.0  # loads
    return fast, slow


def history_rows(
    context: Context, preset: Preset, q: Array, qd: Array, torque: Array, valid: Array, timestep: float
) -> tuple[Array, Array]:
    """Rows of history out of raw ticks.

    Args:
        context: the robot's.
        preset: sizes.
        q: positions (ticks, trials, n) [rad], with `half_window` ticks of context before and after the rows wanted.
        qd: velocities, the same [rad/s].
        torque: reported torques, the same [N·m].
        valid: which ticks can be used (ticks, trials).
        timestep: control period [s].

    Returns:
        Fast rows (trials, rows, n, F) and slow rows (trials, rows / slow, n, G), float32; masked rows are zero.
    """
    h, average = preset.half_window, preset.average
    valid = valid & ~np.all(np.abs(torque) < IDLE_TORQUE, axis=-1)
    qdd = accelerations(q, qd, valid, h, average, timestep)
    inner = slice(h, len(q) - h)
    weight = valid[inner].astype(float)
    position, velocity, applied, share = _means(weight, average, q[inner], qd[inner], torque[inner])
    usable = share >= 0.5  # (rows, trials)
    for array in (position, velocity, applied, qdd):
        array[~usable] = 0.0
    ideal = context.body.inverse_dynamics(position, velocity, qdd)
    if preset.as_published:
        fast = [position, velocity, applied / TORQUE, (applied - ideal) / RESIDUAL]  # B.10
    else:
        # What is known of the armature (the middle of its range) need not be learnt from noisy accelerations.
        residual = (applied - ideal - context.armature_shift * qdd) / context.unit
        rate, flag = qdd * context.armature_range / context.unit, np.ones_like(position)
        fast = [velocity, np.tanh(velocity / 0.03), applied / context.load, residual, rate, flag]
    mask = usable[..., None, None]
    rows = np.where(mask, np.clip(np.stack(fast, axis=-1), -BOUND, BOUND), 0.0).swapaxes(0, 1).astype(np.float32)
    if not preset.slow:
        return rows, np.zeros((rows.shape[0], 0, rows.shape[2], 0), dtype=np.float32)
    return rows, _slow_rows(context, preset, position, velocity, qdd, usable)


def _slow_rows(context: Context, preset: Preset, position: Array, velocity: Array, qdd: Array, usable: Array) -> Array:
    position, velocity, qdd, share = _means(usable.astype(float), preset.slow, position, velocity, qdd)
    usable = share > 0.0
    ideal = context.body.inverse_dynamics(position, velocity, qdd) - context.robot.armature * qdd
    probes = np.moveaxis(context.probe_torques(position, velocity, qdd), -2, 0)
    slow = np.stack([np.sin(position), np.cos(position), ideal / context.load, *probes], axis=-1)
    slow = np.where(usable[..., None, None], np.clip(slow, -BOUND, BOUND), 0.0)
    return slow.swapaxes(0, 1).astype(np.float32)


def _means(weight: Array, count: int, *arrays: Array) -> tuple[Array, ...]:
    """Weighted means of every `count` rows of arrays (rows, trials, n), and the share of rows that counted."""
    rows = len(weight) // count
    blocks = weight[: rows * count].reshape(rows, count, -1, 1)
    total = blocks.sum(axis=1)
    safe = np.maximum(total, 1e-9)
    means = []
    for array in arrays:
        kept = np.where(blocks > 0.0, array[: rows * count].reshape(rows, count, *array.shape[1:]), 0.0)
        means.append((blocks * kept).sum(axis=1) / safe)
    return (*means, total[..., 0] / count)


def adaptor_features(
    xp: Any, context: Any, q: Any, qd: Any, torque: Any, nominal: Any, ideal: Any, probes: Any
) -> tuple[Any, Any, Any, Any]:
    """The adaptor's inputs, in NumPy or PyTorch.

    Nominal torque and ideal acceleration are in the basis only, whose coefficients are bounded by what is physical: so
    the gain from nominal torque to command cannot come out wrong, which light joints would not survive.

    Args:
        xp: `numpy` or `torch`.
        context: anything with `unit`, `load`, `armature`, `armature_range` and `armature_shift`, each (..., n).
        q: positions (..., n, L), newest first [rad].
        qd: velocities, the same [rad/s].
        torque: reported torques, the same [N·m].
        nominal: nominal torque (..., n) [N·m].
        ideal: the ideal robot's acceleration under it (..., n) [rad/s²].
        probes: torques of the test payloads at that acceleration (..., 4, n) [units].

    Returns:
        Groups for position (..., n, 9), velocity (..., n, 13) and torque (..., n, 8), and the basis (..., n, 14) of the
        part of the correction that is linear in the latent.
    """
    unit, load = context.unit, context.load
    newest, mean = qd[..., 0], qd.mean(-1)
    now = q[..., 0]
    position = xp.concatenate(
        [xp.stack([xp.sin(now), xp.cos(now)], -1), (q[..., 1:] - now[..., None]) * 50.0],
        -1,
    )
    steep, middle, wide = xp.tanh(mean / 0.01), xp.tanh(mean / 0.03), xp.tanh(mean / 0.1)
    bends = [steep, middle, wide, xp.tanh(newest / 0.02), xp.tanh(newest / 0.1)]
    velocity = xp.concatenate([qd, xp.stack(bends, -1)], -1)
    window = 2.0 * xp.tanh(torque / (2.0 * load[..., None]))
    spread, shift = ideal * context.armature_range / unit, ideal * context.armature_shift / unit
    carried = nominal - context.armature * ideal
    probe = [probes[..., k, :] for k in range(PROBES)]
    basis = xp.stack(
        [
            mean * 0.0 + 1.0,
            mean,
            abs(mean),
            steep,
            middle,
            wide,
            abs(middle),
            spread,
            shift,
            carried / unit,
            *probe,
        ],
        -1,
    )
    return position, velocity, window, basis
