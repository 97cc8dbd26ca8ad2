"""The compliance paper's public solve, for comparison: force and moment separately from the same torques."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

FORCE_DAMPING = 1e-3
"""lambda of equation 9 for forces."""
MOMENT_DAMPING = 1e-2
"""The same for moments."""


def separate_solves(jacobian: Array, torque: Array, used: Array) -> Array:
    """Wrenches (trials, sites, 6): argmin |Jᵀf - τ|² + λ|f|² for the force and the moment, each alone."""
    masked = jacobian * used[:, None, :]
    out = np.empty(jacobian.shape[:-1])
    for rows, damping in ((slice(0, 3), FORCE_DAMPING), (slice(3, 6), MOMENT_DAMPING)):
        part = masked[..., rows, :]
        gram = np.matmul(part, np.swapaxes(part, -1, -2)) + damping * np.eye(3)
        right = np.einsum("tsrn,tn->tsr", part, torque)
        out[..., rows] = np.linalg.solve(gram, right[..., None])[..., 0]
    return out
