"""The motion an estimator learns from: positions, velocities, accelerations and torques of one robot over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np

from retorque.physics.presliding import DISTANCES
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

CHUNK = 2048
"""Samples handled at a time: bounds the memory of a regressor to some tens of megabytes."""


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Samples at even times, cleaned and filtered."""

    q: Array
    """(samples, n) positions [rad]"""
    qd: Array
    """(samples, n) velocities [rad/s]"""
    qdd: Array
    """(samples, n) accelerations [rad/s²]"""
    torque: Array
    """(samples, n) joint torques, gravity included [N·m]"""
    time: Array
    """(samples,) [s]"""
    slip: Array | None = None
    """(samples, n, distances) where each joint stands in its presliding hysteresis, -1 to 1; see `presliding`."""

    def __post_init__(self) -> None:
        shape = self.q.shape
        if self.q.ndim != 2 or any(x.shape != shape for x in (self.qd, self.qdd, self.torque)):
            raise RetorqueError(
                f"q, qd, qdd and torque must all be (samples, joints); got {shape}, {self.qd.shape}, "
                f"{self.qdd.shape}, {self.torque.shape}"
            )
        if self.time.shape != shape[:1]:
            raise RetorqueError(f"time must have one value a sample ({shape[0]}); got {self.time.shape}")
        if self.slip is not None and self.slip.shape != (*shape, len(DISTANCES)):
            raise RetorqueError(f"slip must be (samples, joints, {len(DISTANCES)}); got {self.slip.shape}")

    @classmethod
    def of(cls, q: Array, qd: Array, qdd: Array, torque: Array, period: float = 1e-3) -> Motion:
        """Samples `period` seconds apart."""
        return cls(q=q, qd=qd, qdd=qdd, torque=torque, time=period * np.arange(len(q)))

    def __len__(self) -> int:
        return len(self.time)

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.q.shape[1]

    def __getitem__(self, rows: slice | Array) -> Motion:
        fields = {name: getattr(self, name)[rows] for name in ("q", "qd", "qdd", "torque", "time")}
        return replace(self, slip=None if self.slip is None else self.slip[rows], **fields)

    def copy(self) -> Motion:
        """The same samples in memory of their own: a thinned view would keep the whole window alive."""
        fields = {name: getattr(self, name).copy() for name in ("q", "qd", "qdd", "torque", "time")}
        return replace(self, slip=None if self.slip is None else self.slip.copy(), **fields)

    def chunks(self, size: int = CHUNK) -> Iterator[Motion]:
        """The motion in pieces of at most `size` samples."""
        for start in range(0, len(self), size):
            yield self[start : start + size]


@runtime_checkable
class MotionSource(Protocol):
    """Anything that can be read in pieces, as often as one likes: a `Motion`, or a log that does not fit in memory."""

    def chunks(self) -> Iterator[Motion]:
        """Consecutive pieces, each with even sampling."""
        ...


def join(pieces: Iterable[Motion]) -> Motion:
    """One motion of several."""
    found = list(pieces)
    if not found:
        raise RetorqueError("no usable sample is left; record a longer motion or choose other rows")
    names = ["q", "qd", "qdd", "torque", "time"]
    if all(piece.slip is not None for piece in found):
        names.append("slip")
    return Motion(**{name: np.concatenate([getattr(piece, name) for piece in found]) for name in names})
