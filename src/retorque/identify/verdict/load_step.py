"""A load that appears or goes in the middle of a log: one more body at the hand, for a part of the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from retorque.identify.verdict.reading import Fit, Reading
from retorque.logs.motion import Motion
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array

MOMENTS = 15
"""Moments that are tried, evenly over the log."""
LIGHT = 0.02
"""Part of the arm's mass below which a load is none."""
PRICE = 15.0
"""What five more numbers gain on a log without a load: mass, first moment and the moment it comes [nat]."""


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
    factor = cho_factor(gram)
    torque = motion.torque / noise
    wanted = flat.T @ torque.reshape(-1) + prior.root.T @ (prior.root @ prior.mean)
    load = _columns(reading.body, motion) / noise[:, None]

    def tried(moment: int) -> tuple[float, Array]:
        """What a load from that sample on explains beyond the links, and its mass and moment."""
        with_load = load[moment:].reshape(-1, 4)
        shared = cho_solve(factor, rows[moment:].reshape(-1, size).T @ with_load)
        own = with_load.T @ with_load - shared.T @ gram @ shared + 1e-9 * np.eye(4)
        pull = with_load.T @ torque[moment:].reshape(-1) - shared.T @ wanted
        found = np.linalg.solve(own, pull)
        return float(pull @ found), found

    step = len(motion) // (MOMENTS + 1)
    if step < 2:
        return None
    coarse = max(range(2 * step, len(motion) - 2 * step + 1, step), key=lambda moment: tried(moment)[0])
    near = range(max(coarse - step, 1), min(coarse + step, len(motion) - 1))
    moment = max(near, key=lambda moment: tried(moment)[0])
    found = tried(moment)[1]
    light = LIGHT * float(np.sum(layout.unpack(layout.card)[0][:, 0]))
    return LoadStep(time=float(motion.time[moment]), moment=found) if abs(found[0]) > light else None
