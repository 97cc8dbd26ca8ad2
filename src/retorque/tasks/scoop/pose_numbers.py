"""Poses as numbers for networks and data sets: a position and the first two columns of a rotation."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array

POSE = ("x", "y", "z", "xx", "xy", "xz", "yx", "yy", "yz")
"""Names of the numbers: position [m], then the tool's x and y axes."""


def pose_numbers(position: Array, rotation: Array) -> Array:
    """(..., 9) of a position (..., 3) and a rotation (..., 3, 3)."""
    return np.concatenate([position, rotation[..., :, 0], rotation[..., :, 1]], axis=-1)


def numbers_pose(numbers: Array) -> tuple[Array, Array]:
    """Position (..., 3) and rotation (..., 3, 3) of nine numbers (..., 9), made orthonormal by Gram-Schmidt."""
    x, y = numbers[..., 3:6], numbers[..., 6:9]
    x = x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-9)
    y = y - x * np.sum(x * y, axis=-1, keepdims=True)
    y = y / np.maximum(np.linalg.norm(y, axis=-1, keepdims=True), 1e-9)
    return numbers[..., :3], np.stack([x, y, np.cross(x, y)], axis=-1)
