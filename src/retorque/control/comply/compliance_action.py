"""What every planner of contact tells the robot: pose, velocity, stiffness, damping and wrench of each site."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from retorque.control.action import Action
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(slots=True)
class ComplianceAction(Action):
    """The terms of equation 1 for `sites` frames of one robot or a batch, in world axes."""

    position: Array
    """(..., sites, 3) desired [m]."""
    rotation: Array
    """(..., sites, 3, 3) desired."""
    stiffness: Array
    """(..., sites, 6, 6) symmetric and positive definite [N/m, N·m/rad]."""
    velocity: Array | None = None
    """(..., sites, 6) desired, linear then angular [m/s, rad/s]; default: none."""
    damping: Array | None = None
    """(..., sites, 6, 6) [N·s/m, N·m·s/rad]; default: critical."""
    wrench: Array | None = None
    """(..., sites, 6) commanded on the robot, force then moment [N, N·m]; default: none."""
    time: float = field(default=float("nan"))
    """When it was made [s]; with it, a command that is not renewed grows old."""


def isotropic(linear: float, angular: float) -> Array:
    """A stiffness (6, 6) that is the same in every direction."""
    return np.diag([linear] * 3 + [angular] * 3)


def along(normal: Array, along_normal: float, across: float, angular: float) -> Array:
    """A stiffness (..., 6, 6): one value along a normal (..., 3), another across it, one for rotations."""
    normal = np.asarray(normal, dtype=float)
    n = normal / np.linalg.norm(normal, axis=-1, keepdims=True)
    out = np.zeros((*n.shape[:-1], 6, 6))
    out[..., :3, :3] = across * np.eye(3) + (along_normal - across) * n[..., :, None] * n[..., None, :]
    out[..., 3:, 3:] = angular * np.eye(3)
    return out


def critical_damping(stiffness: Array, mass: float = 1.0) -> Array:
    """2 (m K)^(1/2), the matrix square root (..., 6, 6)."""
    value, vector = np.linalg.eigh(stiffness)
    if np.any(value <= 0.0):
        raise RetorqueError(
            "a stiffness must be symmetric and positive definite; raise its smallest eigenvalue above 0"
        )
    root = np.sqrt(mass * value)
    return 2.0 * np.matmul(vector * root[..., None, :], np.swapaxes(vector, -1, -2))
