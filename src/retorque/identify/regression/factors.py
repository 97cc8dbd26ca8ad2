"""A log of any length as one small triangular factor a joint: R with RᵀR = [Y τ]ᵀ[Y τ], kept up to date by QR."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import qr

from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def triangle(rows: Array) -> Array:
    """The upper triangle of a QR factorisation, never taller than it is wide."""
    factor = qr(rows, mode="r", overwrite_a=True, check_finite=False)[0]
    return factor[: min(rows.shape)]


@dataclass
class Factors:
    """The compressed data of every joint: all that least squares, its weights and its bounds ever need."""

    layout: Layout
    count: int = 0
    """Samples seen."""
    of_joint: list[Array] = field(default_factory=list)
    """For each joint the triangle of [rows, torque], with len(columns[j]) + 1 columns."""
    lowest: Array | None = None
    """(n,) smallest torque seen [N·m]."""
    highest: Array | None = None
    """(n,) largest torque seen [N·m]."""

    def add(self, body: RigidBody, motion: Motion) -> None:
        """Take in more samples."""
        if motion.n != self.layout.robot.n:
            raise RetorqueError(
                f"the log has {motion.n} joints and robot '{self.layout.robot.name}' has {self.layout.robot.n}"
            )
        tall = [
            np.concatenate([rows, motion.torque[:, j, None]], axis=1)
            for j, rows in enumerate(self.layout.rows(body, motion))
        ]
        if self.of_joint:
            tall = [np.concatenate([old, new]) for old, new in zip(self.of_joint, tall, strict=True)]
        self.of_joint = [triangle(rows) for rows in tall]
        self.count += len(motion)
        low, high = motion.torque.min(axis=0), motion.torque.max(axis=0)
        self.lowest = low if self.lowest is None else np.minimum(self.lowest, low)
        self.highest = high if self.highest is None else np.maximum(self.highest, high)

    @property
    def dead(self) -> Array:
        """(n,) which torques never changed: a dead channel, whose equations say nothing and must weigh nothing."""
        if self.lowest is None or self.highest is None:
            return np.zeros(len(self.of_joint), dtype=bool)
        span = self.highest - self.lowest
        return span <= 1e-9 * max(float(np.max(span)), 1e-300)

    def squared_residual(self, vector: Array) -> Array:
        """Sum over samples of the squared torque residual of each joint, (n,) [N²·m²]."""
        out = []
        for columns, factor in zip(self.layout.columns, self.of_joint, strict=True):
            out.append(np.sum(np.square(factor @ np.concatenate([vector[columns], [-1.0]]))))
        return np.array(out)

    def stacked(self, weight: Array) -> Array:
        """Triangle of all joints together, each scaled by the square root of its weight, (., size + 1)."""
        size = self.layout.size
        blocks = []
        for columns, factor, w in zip(self.layout.columns, self.of_joint, weight, strict=True):
            block = np.zeros((len(factor), size + 1))
            block[:, columns] = factor[:, :-1]
            block[:, -1] = factor[:, -1]
            blocks.append(np.sqrt(w) * block)
        return triangle(np.concatenate(blocks))


def merge(parts: Iterable[Factors]) -> Factors:
    """The factors of all the parts' samples together."""
    found = [part for part in parts if part.count]
    if not found:
        raise RetorqueError("there is no usable sample to learn from")
    joints = range(len(found[0].of_joint))
    merged = [triangle(np.concatenate([part.of_joint[j] for part in found])) for j in joints]
    low = [part.lowest for part in found if part.lowest is not None]
    high = [part.highest for part in found if part.highest is not None]
    return Factors(
        found[0].layout,
        sum(part.count for part in found),
        merged,
        np.min(low, axis=0) if low else None,
        np.max(high, axis=0) if high else None,
    )
