"""Unbounded virtual parameters whose every value is a link that could exist: those of DiffBary and of DiffNEA."""

from __future__ import annotations

import numpy as np
import torch

from retorque.physics.inertia import from_vector, nearest_feasible, pseudo_inertia
from retorque.work.array import Array

Tensor = torch.Tensor

FLOOR = 1e-8
"""The paper's r: added to every diagonal, so that no link is on the edge (equation 12)."""

_LOWER = torch.tril_indices(4, 4)
_LOWER3 = torch.tril_indices(3, 3)


def _triangular(values: Tensor, size: int, indices: Tensor) -> Tensor:
    out = values.new_zeros((*values.shape[:-1], size, size))
    out[..., indices[0], indices[1]] = values
    return out


def _ten(mass: Tensor, moment: Tensor, second: Tensor) -> Tensor:
    """The ten parameters of mass, first moment and second moment matrix about the origin: I = tr(S) 1 - S."""
    x, y, z = second.diagonal(dim1=-2, dim2=-1).unbind(-1)
    six = [y + z, -second[..., 0, 1], x + z, -second[..., 0, 2], -second[..., 1, 2], x + y]
    return torch.cat([mass[..., None], moment, torch.stack(six, dim=-1)], dim=-1)


def barycentric(virtual: Tensor) -> Tensor:
    """DiffBary: (..., 10) entries of the lower triangle A row by row to the ten parameters of A Aᵀ + r 1 (18-21)."""
    root = _triangular(virtual, 4, _LOWER)
    matrix = root @ root.transpose(-1, -2) + FLOOR * torch.eye(4, dtype=virtual.dtype)
    return _ten(matrix[..., 3, 3], matrix[..., :3, 3], matrix[..., :3, :3])


def barycentric_virtual(inertial: Array) -> Array:
    """The virtual parameters (..., 10) of links (..., 10), made feasible first where they are not."""
    matrix = pseudo_inertia(nearest_feasible(np.asarray(inertial, dtype=float), 1e-7)) - FLOOR * np.eye(4)
    root = np.linalg.cholesky(matrix)
    return root[..., _LOWER[0].numpy(), _LOWER[1].numpy()]


def newton_euler(virtual: Tensor) -> Tensor:
    """DiffNEA: root of the mass, centre (3) and Cholesky factor (6) of the density's covariance, to the ten."""
    mass = torch.square(virtual[..., 0]) + FLOOR
    centre = virtual[..., 1:4]
    root = _triangular(virtual[..., 4:], 3, _LOWER3)
    spread = root @ root.transpose(-1, -2) + FLOOR * torch.eye(3, dtype=virtual.dtype)
    second = spread + mass[..., None, None] * centre[..., :, None] * centre[..., None, :]
    return _ten(mass, mass[..., None] * centre, second)


def newton_euler_virtual(inertial: Array) -> Array:
    """The virtual parameters (..., 10) of links (..., 10), made feasible first where they are not."""
    feasible = nearest_feasible(np.asarray(inertial, dtype=float), 1e-7)
    mass, centre, inertia = from_vector(feasible)
    spread = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - inertia
    values, vectors = np.linalg.eigh(spread)
    lifted = np.einsum("...ij,...j,...kj->...ik", vectors, np.maximum(values - FLOOR, 1e-9), vectors)
    root = np.linalg.cholesky(lifted)[..., _LOWER3[0].numpy(), _LOWER3[1].numpy()]
    return np.concatenate([np.sqrt(np.maximum(mass - FLOOR, 0.0))[..., None], centre, root], axis=-1)
