"""Where each joint stood in its presliding hysteresis before a log began, which no log says: learnt from its torques.

Dahl's state after a path of length L from a start z₀ is that of an unwound start plus exp(-L / d) z₀. A joint that
stands still keeps the friction it stopped with all through the log; one that moves forgets it within a milliradian.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from retorque.identify.methods.estimate import Estimate
from retorque.logs.motion import Motion
from retorque.physics.presliding import DISTANCES
from retorque.work.array import Array

REMEMBERED = 20.0
"""Samples that share one residual's noise, about: ten a period of the cut-off, and friction's own memory."""
WORTH = 10.0
"""How many times the noise a start must explain, as a sum of squares, before it is believed."""
SHARE = 0.1
"""Part of a stretch's squared residual that a start must explain as well: the first milliradian of a lively motion is
not worth learning the model anew."""
ROUNDS = 6
"""Times that starts and model are learnt in turn: an offset takes a part of the start at first."""
NEAR = 0.02
"""Change of a state, of which 1 is the largest, that is no change."""
LASTING = 1e-6
"""Part of a start that is worth following."""


def stretches(motion: Motion) -> list[slice]:
    """The parts of a motion that were recorded in one go: each log, and each side of a gap."""
    steps = np.diff(motion.time)
    if not len(steps):
        return [slice(0, len(motion))]
    cuts = np.flatnonzero((steps <= 0.0) | (steps > 1.5 * float(np.median(steps)))) + 1
    edges = [0, *cuts.tolist(), len(motion)]
    return [slice(first, last) for first, last in itertools.pairwise(edges)]


def with_starts(motion: Motion, estimate: Estimate) -> Motion:
    """The motion with its presliding states moved by their likeliest starts; itself where none is worth it.

    Args:
        motion: with presliding states that begin unwound.
        estimate: whose friction coefficients and residuals say what the starts were.
    """
    distances = estimate.friction.presliding
    if motion.slip is None or not distances:
        return motion
    names = estimate.friction.names
    own = np.stack([estimate.coefficients[:, names.index(f"presliding {d:g}")] for d in distances], axis=1)  # (n, d)
    residual = estimate.residual(motion)
    noise = np.median(np.abs(residual - np.median(residual, axis=0)), axis=0) / 0.6745
    moved: Array | None = None
    columns = [DISTANCES.index(d) for d in distances]
    for part in stretches(motion):
        q = motion.q[part]
        length = np.concatenate([np.zeros((1, motion.n)), np.cumsum(np.abs(np.diff(q, axis=0)), axis=0)])
        left = np.exp(-length[..., None] / np.asarray(distances))  # (samples, n, d)
        for j in range(motion.n):
            start = _start(left[:, j] * own[j], residual[part, j], max(float(noise[j]), 1e-9))
            if start is not None:
                moved = motion.slip.copy() if moved is None else moved
                rows = np.arange(part.start, part.stop)[:, None]
                moved[rows, j, columns] += left[:, j] * start
    return motion if moved is None else replace(motion, slip=np.clip(moved, -1.0, 1.0))


def learn_starts(motion: Motion, estimate: Estimate, refit: Callable[[Motion], Estimate]) -> tuple[Motion, Estimate]:
    """Starts and model in turn, until they agree; both as they were where no start is worth it.

    Args:
        motion: with presliding states that begin unwound.
        estimate: the model that was learnt from it.
        refit: learns a model from a motion.
    """
    started = motion
    for _ in range(ROUNDS):
        found = with_starts(motion, estimate)
        if found is motion or (started.slip is not None and found.slip is not None and _near(started.slip, found.slip)):
            break
        started, estimate = found, refit(found)
    return started, estimate


def _near(one: Array, other: Array) -> bool:
    return bool(np.max(np.abs(one - other)) < NEAR)


def _start(felt: Array, residual: Array, noise: float) -> Array | None:
    """(d,) the likeliest start of one joint, within -1 and 1; None where it explains too little.

    Args:
        felt: (samples, d) torque of each distance's state for a start of one [N·m].
        residual: (samples,) [N·m].
        noise: of the residual [N·m].
    """
    rows = np.max(np.abs(felt), axis=1) > LASTING * noise
    if not np.any(rows):
        return None
    all_left = float(np.sum(np.square(residual)))
    felt, residual = felt[rows], residual[rows]
    gram = felt.T @ felt + REMEMBERED * noise**2 * np.eye(felt.shape[1])
    start = np.clip(np.linalg.solve(gram, felt.T @ residual), -1.0, 1.0)
    better = float(np.sum(np.square(residual)) - np.sum(np.square(residual - felt @ start)))
    return start if better > max(WORTH * REMEMBERED * noise**2, SHARE * all_left) else None
