"""Ten numbers without bounds for a body that can exist: the log-Cholesky chart of its pseudo-inertia.

    P = m [[S Sᵀ + c cᵀ, c], [cᵀ, 1]],    S = [[e^a, p, r], [0, e^b, q], [0, 0, e^d]]

with the chart (log m, c, a, b, d, p, q, r): mass, centre of mass, and how the mass is spread about it. Whatever the ten
numbers are, some density of mass has them; mass, centre and spread change independently of each other.
"""

from __future__ import annotations

import numpy as np

from retorque.physics.inertia import from_pseudo_inertia, pseudo_inertia
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NAMES = ("log mass", "centre x", "centre y", "centre z", *(f"log spread {axis}" for axis in "xyz"),
         "shear xy", "shear yz", "shear xz")  # fmt: skip
UNITS = ("log kg", *["m"] * 3, *["log m"] * 3, *["m"] * 3)
_ROW, _COLUMN = np.array([0, 1, 2, 0, 1, 0]), np.array([0, 1, 2, 1, 2, 2])
_SPREAD = slice(4, 10)


def log_cholesky(vector: Array) -> Array:
    """The chart (..., 10) of ten inertial parameters (..., 10); bodies without mass or thickness are refused."""
    matrix = pseudo_inertia(vector)
    mass = vector[..., 0]
    if not np.all(mass > 0.0):
        raise RetorqueError("a body without mass has no log-Cholesky chart; give it a mass in kg")
    centre = vector[..., 1:4] / mass[..., None]
    spread = matrix[..., :3, :3] / mass[..., None, None] - centre[..., :, None] * centre[..., None, :]
    try:
        # The factor is upper triangular: flip both axes, factor, flip back.
        root = np.linalg.cholesky(spread[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError:
        raise RetorqueError("a rod, plate or point has no log-Cholesky chart; give it some thickness") from None
    shape = root[..., _ROW, _COLUMN]
    shape[..., :3] = np.log(shape[..., :3])
    return np.concatenate([np.log(mass)[..., None], centre, shape], axis=-1)


def from_log_cholesky(chart: Array) -> Array:
    """The ten inertial parameters (..., 10) of a chart (..., 10)."""
    root, centre = _root(chart), chart[..., 1:4]
    spread = np.matmul(root, np.swapaxes(root, -1, -2)) + centre[..., :, None] * centre[..., None, :]
    matrix = np.ones((*chart.shape[:-1], 4, 4))
    matrix[..., :3, :3] = spread
    matrix[..., :3, 3] = matrix[..., 3, :3] = centre
    return from_pseudo_inertia(np.exp(chart[..., 0])[..., None, None] * matrix)


def log_cholesky_jacobian(chart: Array) -> Array:
    """d ten / d chart, (..., 10, 10): row by inertial parameter, column by coordinate of the chart."""
    root, centre, mass = _root(chart), chart[..., 1:4], np.exp(chart[..., 0])
    change = np.zeros((*chart.shape[:-1], 10, 4, 4))  # of the pseudo-inertia, by each coordinate
    change[..., 0, :, :] = pseudo_inertia(from_log_cholesky(chart))
    for axis in range(3):
        change[..., 1 + axis, axis, :3] += mass[..., None] * centre
        change[..., 1 + axis, :3, axis] += mass[..., None] * centre
        change[..., 1 + axis, axis, 3] = change[..., 1 + axis, 3, axis] = mass
    for k, (row, column) in enumerate(zip(_ROW, _COLUMN, strict=True)):
        size = np.exp(chart[..., 4 + k]) if row == column else np.ones(chart.shape[:-1])
        outer = (mass * size)[..., None] * root[..., :, column]
        change[..., 4 + k, row, :3] += outer
        change[..., 4 + k, :3, row] += outer
    return np.swapaxes(from_pseudo_inertia(change), -1, -2)


def _root(chart: Array) -> Array:
    root = np.zeros((*chart.shape[:-1], 3, 3))
    entries = chart[..., _SPREAD].copy()
    entries[..., :3] = np.exp(entries[..., :3])
    root[..., _ROW, _COLUMN] = entries
    return root
