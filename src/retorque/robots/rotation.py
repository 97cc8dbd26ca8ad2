"""Rotations as 3x3 matrices and unit quaternions (w, x, y, z)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from retorque.work.array import Array

Quaternion = tuple[float, float, float, float]


def from_quaternion(quaternion: Sequence[float] | Array) -> Array:
    """The (3, 3) rotation matrix of a quaternion of any length but zero."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def to_quaternion(matrix: Array) -> Quaternion:
    """The unit quaternion of a rotation matrix (3, 3), with w >= 0."""
    # The largest of the four squared components is divided by, so that no digits are lost near half a turn.
    squares = 1 + np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) @ np.diag(matrix)  # 4 w², 4 x², ...
    r = matrix
    k = int(np.argmax(squares))
    rows = (
        (squares[0], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]),
        (r[2, 1] - r[1, 2], squares[1], r[1, 0] + r[0, 1], r[0, 2] + r[2, 0]),
        (r[0, 2] - r[2, 0], r[1, 0] + r[0, 1], squares[2], r[2, 1] + r[1, 2]),
        (r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[2, 1] + r[1, 2], squares[3]),
    )
    quaternion = np.array(rows[k])
    quaternion /= np.linalg.norm(quaternion) * (-1.0 if quaternion[0] < 0 else 1.0)
    w, x, y, z = (float(value) + 0.0 for value in quaternion)  # + 0.0 turns -0.0 into 0.0
    return w, x, y, z


def from_axis_angle(axis: Sequence[float] | Array, angle: float) -> Array:
    """The (3, 3) rotation by `angle` [rad] about a unit axis."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross


def from_roll_pitch_yaw(angles: Sequence[float] | Array) -> Array:
    """The (3, 3) rotation of URDF's fixed-axis roll, pitch, yaw [rad]."""
    roll, pitch, yaw = angles
    about_x = from_axis_angle((1.0, 0.0, 0.0), roll)
    about_y = from_axis_angle((0.0, 1.0, 0.0), pitch)
    about_z = from_axis_angle((0.0, 0.0, 1.0), yaw)
    return about_z @ about_y @ about_x


def to_roll_pitch_yaw(matrix: Array) -> tuple[float, float, float]:
    """URDF's fixed-axis roll, pitch, yaw [rad] of a rotation matrix (3, 3)."""
    horizontal = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    pitch = float(np.arctan2(-matrix[2, 0], horizontal))
    if horizontal > 1e-6:
        roll = float(np.arctan2(matrix[2, 1], matrix[2, 2]))
        yaw = float(np.arctan2(matrix[1, 0], matrix[0, 0]))
        return roll, pitch, yaw
    # At pitch = ±90° only roll and yaw together matter: yaw takes whatever makes the matrix exact with roll = 0.
    return 0.0, pitch, float(np.arctan2(-matrix[0, 1], matrix[1, 1]))
