"""A load that appears or goes in the middle of a log: one more body at the hand, for a part of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.identify.verdict.reading import Fit, Reading
from retorque.logs.motion import Motion
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array

MOMENTS = 15
"""Moments that are tried, evenly over the log."""
LIGHT = 0.1
"""Mass below which a load is none [kg]."""


@dataclass(frozen=True, kw_only=True)
class LoadStep:
    """A load at the last link from some moment on."""

    time: float
    """[s]"""
    moment: Array
    """(4,) its mass [kg] and first moment about the last joint [kg·m]; negative where a load was put down."""

    @property
    def mass(self) -> float:
        """[kg]"""
        return float(self.moment[0])

    def torque(self, body: RigidBody, motion: Motion) -> Array:
        """(samples, n) what it adds to the torques [N·m]."""
        return _columns(body, motion) @ self.moment * (motion.time >= self.time)[:, None]


def _columns(body: RigidBody, motion: Motion) -> Array:
    """(samples, n, 4) torque of a mass and its first moment at the last link."""
    return body.regressor(motion.q, motion.qd, motion.qdd)[..., -10:-6]


def appeared(reading: Reading, fit: Fit) -> LoadStep | None:
    """The load and the moment that explain most of what a log as it is leaves over; None where there is none.

    The links are learnt again beside it, all joints together, each in units of what it leaves unexplained.
    """
    motion, layout = reading.motion, reading.layout
    noise = fit.share * reading.spread
    size = layout.size
    rows = np.zeros((len(motion), motion.n, size))
    for j, (columns, block) in enumerate(zip(layout.columns, reading.rows, strict=True)):
        rows[:, j, columns] = block / noise[j]
    flat = rows.reshape(-1, size)
    prior = reading.prior(reading.spread)
    gram = flat.T @ flat + prior.root.T @ prior.root
    left = ((motion.torque / noise).reshape(-1) - flat @ fit.vector).reshape(len(motion), motion.n)
    load = _columns(reading.body, motion) / noise[:, None]
    best, explained = None, 0.0
    for moment in np.linspace(0, len(motion), MOMENTS + 2)[1:-1].astype(int):
        with_load = load[moment:].reshape(-1, 4)
        shared = np.linalg.solve(gram, rows[moment:].reshape(-1, size).T @ with_load)
        own = with_load.T @ with_load - shared.T @ gram @ shared + 1e-9 * np.eye(4)
        pull = with_load.T @ left[moment:].reshape(-1)
        found = np.linalg.solve(own, pull)
        if float(pull @ found) > explained and abs(found[0]) > LIGHT:
            explained = float(pull @ found)
            best = LoadStep(time=float(motion.time[moment]), moment=found)
    return best
