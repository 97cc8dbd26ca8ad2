"""The steps that all linear estimators share: compress a log, weigh its joints by their noise, solve with a prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from retorque.identify.regression.base import BaseParameters
from retorque.identify.regression.factors import Factors, triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.noise import autocorrelation_time
from retorque.identify.regression.prior import Prior, card_prior
from retorque.logs.motion import MotionSource
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

NOISE_SAMPLES = 40_000
"""Residuals looked at for their correlation; a longer log is sampled piece by piece."""

UNHEARD = 1e6
"""Noise of a channel that is dead, over the largest torque: its equations have no say."""


def compress(data: MotionSource, layout: Layout) -> Factors:
    """Read a log once, in pieces, into its triangular factors."""
    body = RigidBody(layout.robot)
    factors = Factors(layout)
    for piece in data.chunks():
        factors.add(body, piece)
    if factors.count <= 10:
        raise RetorqueError(f"only {factors.count} usable samples; identification needs a longer motion")
    return factors


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """The Gaussian that data and prior make together: |root (x - mean)|² plus a constant."""

    mean: Array
    """(size,)"""
    root: Array
    """(size, size) upper triangular."""

    @property
    def covariance(self) -> Array:
        inverse = solve_triangular(self.root, np.eye(len(self.root)))
        return inverse @ inverse.T


def posterior(factors: Factors, weight: Array, prior: Prior) -> Posterior:
    """Weighted least squares with a prior, by QR."""
    return gaussian(factors.stacked(weight), prior)


def gaussian(stacked: Array, prior: Prior) -> Posterior:
    """What equations [rows, right-hand side] (., size + 1) of unit noise make of a prior."""
    rows = np.concatenate([prior.root, (prior.root @ prior.mean)[:, None]], axis=1)
    both = triangle(np.concatenate([stacked, rows]))
    size = len(prior.mean)
    root = both[:size, :size]
    return Posterior(mean=solve_triangular(root, both[:size, size]), root=root)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The torque residual of each joint: its size and how long it remembers."""

    deviation: Array
    """(n,) [N·m]"""
    correlation: Array
    """(n,) [samples]"""

    @property
    def weight(self) -> Array:
        """(n,) weight of each joint's equations: one over the variance an independent sample would have."""
        return 1.0 / (np.square(self.deviation) * self.correlation)


def learn_noise(factors: Factors, data: MotionSource, prior: Prior, rounds: int = 4) -> Noise:
    """Residual size (by reweighting until it settles) and correlation (from the residuals themselves)."""
    torque = np.array([np.linalg.norm(factor[:, -1]) for factor in factors.of_joint]) / np.sqrt(factors.count)
    floor = np.maximum(1e-9 * torque, 1e-9)
    floor = np.where(factors.dead, UNHEARD * max(float(np.max(torque)), 1.0), floor)
    deviation = np.maximum(0.1 * torque, floor)
    freedom = max(1.0, factors.count - factors.layout.size / factors.layout.robot.n)
    mean = prior.mean
    for _ in range(rounds):
        mean = posterior(factors, 1.0 / np.square(deviation), prior).mean
        deviation = np.maximum(np.sqrt(factors.squared_residual(mean) / freedom), floor)
    return Noise(deviation=deviation, correlation=residual_correlation(data, factors.layout, mean))


def residual_correlation(data: MotionSource, layout: Layout, vector: Array) -> Array:
    """(n,) autocorrelation time of the torque residual of a parameter vector [samples]."""
    body = RigidBody(layout.robot)
    pieces, count = [], 0
    for piece in data.chunks():
        pieces.append(piece.torque - layout.torque(body, vector, piece.q, piece.qd, piece.qdd, piece.slip))
        count += len(piece)
        if count >= NOISE_SAMPLES:
            break
    return autocorrelation_time(np.concatenate(pieces))


def base_deviation(factors: Factors, weight: Array, base: BaseParameters) -> Array:
    """(rank,) standard errors of the base parameters from the data alone; infinite where the data says nothing."""
    return column_deviation(factors.stacked(weight)[:, base.independent])


def column_deviation(stacked: Array) -> Array:
    """Standard errors of the parameters of columns whose equations have unit noise; infinite where they say nothing."""
    scale = np.linalg.norm(stacked, axis=0)
    safe = np.where(scale > 0.0, scale, 1.0)
    _, values, rows = np.linalg.svd(stacked / safe, full_matrices=False)
    good = values > 1e-10 * values[0]
    deviation = np.sqrt(np.sum(np.square(rows[good].T / values[good]), axis=1)) / safe
    blind = np.sum(np.square(rows[~good]), axis=0) > 1e-6
    return np.where(blind | (scale == 0.0), np.inf, deviation)


def card_belief(factors: Factors) -> Prior:
    """The card's prior, with friction coefficients free to be as large as the torques that were measured."""
    torque = max(float(np.max(np.abs(factor[:, -1]))) for factor in factors.of_joint) / np.sqrt(factors.count)
    return card_prior(factors.layout, torque=max(10.0 * torque, 1e-3))
