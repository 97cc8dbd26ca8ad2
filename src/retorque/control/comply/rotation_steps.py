"""Rotation vectors and matrices for kernels: exponential, and a logarithm that goes on past pi."""

from __future__ import annotations

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.work.array import Array


@kernel
def rotate_by(vector: Array, rotation: Array, out: Array) -> None:
    """out = exp(vector) rotation, for a rotation vector (3,) in world axes."""
    angle = (vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2) ** 0.5
    if angle < 1e-12:
        a, b = 1.0, 0.5
    else:
        a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
    x, y, z = vector[0], vector[1], vector[2]
    r00, r01, r02 = 1.0 - b * (y * y + z * z), b * x * y - a * z, b * x * z + a * y
    r10, r11, r12 = b * x * y + a * z, 1.0 - b * (x * x + z * z), b * y * z - a * x
    r20, r21, r22 = b * x * z - a * y, b * y * z + a * x, 1.0 - b * (x * x + y * y)
    for j in range(3):
        p, q, r = rotation[0, j], rotation[1, j], rotation[2, j]
        out[0, j] = r00 * p + r01 * q + r02 * r
        out[1, j] = r10 * p + r11 * q + r12 * r
        out[2, j] = r20 * p + r21 * q + r22 * r


@kernel
def rotation_between(rotation: Array, target: Array, near: Array, out: Array) -> None:
    """out = the rotation vector (3,), world axes, that turns `rotation` into `target`.

    Of all vectors that do, each a full turn apart, it is the one nearest to `near`: an error that was followed past pi
    goes on instead of jumping to the other side.
    """
    # Quaternion of target rotation^T.
    d = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            d[i, j] = target[i, 0] * rotation[j, 0] + target[i, 1] * rotation[j, 1] + target[i, 2] * rotation[j, 2]
    trace = d[0, 0] + d[1, 1] + d[2, 2]
    if trace > 0.0:
        s = 2.0 * (trace + 1.0) ** 0.5
        w = 0.25 * s
        x, y, z = (d[2, 1] - d[1, 2]) / s, (d[0, 2] - d[2, 0]) / s, (d[1, 0] - d[0, 1]) / s
    elif d[0, 0] > d[1, 1] and d[0, 0] > d[2, 2]:
        s = 2.0 * max(1.0 + d[0, 0] - d[1, 1] - d[2, 2], 1e-18) ** 0.5
        w, x = (d[2, 1] - d[1, 2]) / s, 0.25 * s
        y, z = (d[0, 1] + d[1, 0]) / s, (d[0, 2] + d[2, 0]) / s
    elif d[1, 1] > d[2, 2]:
        s = 2.0 * max(1.0 + d[1, 1] - d[0, 0] - d[2, 2], 1e-18) ** 0.5
        w, y = (d[0, 2] - d[2, 0]) / s, 0.25 * s
        x, z = (d[0, 1] + d[1, 0]) / s, (d[1, 2] + d[2, 1]) / s
    else:
        s = 2.0 * max(1.0 + d[2, 2] - d[0, 0] - d[1, 1], 1e-18) ** 0.5
        w, z = (d[1, 0] - d[0, 1]) / s, 0.25 * s
        x, y = (d[0, 2] + d[2, 0]) / s, (d[1, 2] + d[2, 1]) / s
    size = (x * x + y * y + z * z) ** 0.5
    if size < 1e-12:
        scale = 2.0 if w > 0.0 else -2.0
        out[0], out[1], out[2] = scale * x, scale * y, scale * z
        # No axis of its own: a whole turn that was followed keeps its axis.
        before = (near[0] ** 2 + near[1] ** 2 + near[2] ** 2) ** 0.5
        if before > np.pi:
            turns = 2.0 * np.pi * np.round(before / (2.0 * np.pi))
            for i in range(3):
                out[i] = near[i] / before * turns
        return
    angle = 2.0 * np.arctan2(size, w)  # 0 to 2 pi along this axis
    if angle > np.pi:
        angle -= 2.0 * np.pi
    along = (x * near[0] + y * near[1] + z * near[2]) / size
    angle += 2.0 * np.pi * np.round((along - angle) / (2.0 * np.pi))
    out[0], out[1], out[2] = angle * x / size, angle * y / size, angle * z / size
