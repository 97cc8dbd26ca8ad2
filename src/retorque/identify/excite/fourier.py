"""Fourier trajectories that start and end at rest (equation 15)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

GRID = 32
"""Samples of the highest harmonic's period at which a motion's peaks are looked for."""


@dataclass(frozen=True, kw_only=True)
class Fourier:
    """q_i(t) = q0_i + sum over l of a_il / (w l) sin(w l t) - b_il / (w l) cos(w l t), shifted to begin at rest."""

    a: Array
    """(n, harmonics) [rad/s], each row summing to zero: no velocity at the start."""
    b: Array
    """(n, harmonics) [rad/s], each row orthogonal to the harmonic numbers: no acceleration at the start."""
    centre: Array
    """(n,) q0 [rad]"""
    period: float
    """[s]"""

    def __post_init__(self) -> None:
        if self.a.shape != self.b.shape or self.centre.shape != self.a.shape[:1]:
            raise RetorqueError("a and b must be (joints, harmonics) and the centre (joints,)")

    def towards(self, pose: Array, size: float) -> Fourier:
        """The same motion at a part of its size, drawn towards a pose; limits that both respect still hold."""
        centre = pose + size * (self.centre - pose)
        return Fourier(a=size * self.a, b=size * self.b, centre=centre, period=self.period)

    @property
    def harmonics(self) -> int:
        return self.a.shape[1]

    def at(self, time: Array) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations (samples, n) at times [s]."""
        order = np.arange(1, self.harmonics + 1)
        frequency = 2.0 * np.pi / self.period * order
        phase = np.asarray(time)[:, None] * frequency
        sine, cosine = np.sin(phase), np.cos(phase)
        q = self.centre + sine @ (self.a / frequency).T - cosine @ (self.b / frequency).T
        qd = cosine @ self.a.T + sine @ self.b.T
        qdd = cosine @ (self.b * frequency).T - sine @ (self.a * frequency).T
        return q, qd, qdd


def at_rest(a: Array, b: Array) -> tuple[Array, Array]:
    """The nearest coefficients whose trajectory starts without velocity and acceleration."""
    order = np.arange(1, a.shape[-1] + 1)
    still = a - a.mean(axis=-1, keepdims=True)
    return still, b - (b @ order)[..., None] * order / np.sum(order**2)


def within(
    a: Array,
    b: Array,
    place: Array,
    period: float,
    lower: Array,
    upper: Array,
    speed: Array,
    acceleration: Array,
    part: Array | float = 1.0,
) -> Fourier:
    """A trajectory of a given shape, as large as the limits allow, at rest at its start.

    Args:
        a: (n, harmonics) any numbers: only their ratios within a joint matter.
        b: (n, harmonics)
        place: (n,) where in the room that the limits leave the motion lies, 0 to 1.
        period: [s]
        lower: (n,) [rad]
        upper: (n,) [rad]
        speed: (n,) [rad/s]
        acceleration: (n,) [rad/s²]
        part: (n,) of the largest size, above 0 and at most 1.
    """
    a, b = at_rest(a, b)
    shape = Fourier(a=a, b=b, centre=np.zeros(len(a)), period=period)
    count = GRID * a.shape[1]
    q, qd, qdd = shape.at(np.arange(count) * period / count)
    high, low = q.max(axis=0), q.min(axis=0)
    # no trigonometric polynomial exceeds its largest sample on an even grid by more (Ehlich and Zeller, 1964)
    slack = np.cos(np.pi / GRID)
    scale = (
        part
        * slack
        * np.minimum.reduce(
            [
                (upper - lower) / np.maximum(high - low, 1e-9),
                speed / np.maximum(np.abs(qd).max(axis=0), 1e-9),
                acceleration / np.maximum(np.abs(qdd).max(axis=0), 1e-9),
            ]
        )
    )
    missed = 0.5 * (1.0 / slack - 1.0) * scale * (high - low)
    first, last = lower - scale * low + missed, upper - scale * high - missed
    centre = first + np.clip(place, 0.0, 1.0) * (last - first)
    return Fourier(a=scale[:, None] * a, b=scale[:, None] * b, centre=centre, period=period)
