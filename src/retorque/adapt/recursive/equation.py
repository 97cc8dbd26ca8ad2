"""The averaged equation of motion that the last samples of a robot give."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.unknowns import PER_JOINT
from retorque.loop.history import History
from retorque.work.array import Array

GROUPS = 5
"""Pieces of a window over which the velocity-dependent features are averaged."""
SANE = 1e6
"""Torques and rows beyond this are no measurement [N·m]."""
SHARED = 0.7
"""Windows overlap and share samples: how much noisier that makes a window for each stride it holds."""


@dataclass(slots=True)
class Equation:
    """One averaged equation of motion a joint: torque = prior + rows z."""

    torque: Array
    """(trials, n) [N·m]"""
    prior: Array
    """(trials, n) torque of the prior's mean [N·m]."""
    rows: Array
    """(trials, n, size)"""
    ideal: Array
    """(trials, n) torque of the ideal robot [N·m]."""
    noise_factor: float
    """How much noisier than a full, independent window."""
    accepted: Array
    """(trials,) whether it may be learnt from."""
    position: Array
    """(trials, n) [rad]"""
    velocity: Array
    """(trials, n) [rad/s]"""
    acceleration: Array
    """(trials, n) [rad/s²]"""

    @property
    def mismatch(self) -> Array:
        """(trials, n) torque that the ideal robot would not need [N·m]."""
        return self.torque - self.ideal


def averaged_equation(history: History, model: LinearModel, samples: int, full: int, stride: int) -> Equation:
    """The equation of motion of the last `samples` rows.

    The least-squares slope of the velocity is a weighted mean of the accelerations between samples, with weights on a
    parabola. Torques and features are averaged with the same weights, so that one exact equation comes out.

    Args:
        history: of the robots.
        model: of their torques.
        samples: rows to use.
        full: rows of a full window; shorter ones are noisier.
        stride: ticks between equations; windows that share samples are not independent.
    """
    dt = history.timestep
    positions, velocities, torques = history.last(samples)
    slope, mean = slope_weights(samples, dt)
    acceleration = np.tensordot(slope, velocities, 1)
    position = np.tensordot(0.5 * (np.append(0.0, mean) + np.append(mean, 0.0)), positions, 1)
    middle = np.mean(velocities, axis=0)
    torques = torques[1:]
    torque = np.tensordot(mean, torques, 1)
    sign = np.tensordot(mean, model.sign(torques), 1)
    features = np.zeros((*middle.shape, PER_JOINT))
    edges = np.unique(np.linspace(0, samples - 1, GROUPS + 1).astype(int))
    for low, high in pairwise(edges):
        weight = float(mean[low:high].sum())
        offset = (0.5 * (low + high) - 0.5 * (samples - 1)) * dt
        features += weight * model.joint_features(middle + offset * acceleration, acceleration, sign, torque)
    regressor = model.body.regressor(position, middle, acceleration)
    rate = np.tensordot(slope_weights(samples - 1, dt)[0], torques, 1)
    prior, rows = model.rows(regressor, features, rate)
    ideal = regressor @ model.ideal_inertial + model.robot.armature * acceleration
    factor = SHARED * full / stride * (full / samples) ** 3
    sane = np.abs(rows).max(axis=(1, 2)) + np.abs(torque).max(axis=1) < SANE
    usable = history.valid(samples).all(axis=0) & sane
    return Equation(torque, prior, rows, ideal, factor, usable, position, middle, acceleration)


def slope_weights(count: int, timestep: float) -> tuple[Array, Array]:
    """Weights of the slope of `count` samples [1/s], and of the mean of the intervals between them (they sum to 1)."""
    at = (np.arange(count) - 0.5 * (count - 1)) * timestep
    slope = at / np.sum(at * at)
    return slope, -np.cumsum(slope)[:-1] * timestep
