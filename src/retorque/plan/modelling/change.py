"""Whether the robot has changed since an older estimate: what newer samples say for and against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

from retorque.plan.modelling.window_fit import Prediction
from retorque.work.array import Array

CERTAIN = 30.0
"""Logarithm of odds beyond which nothing is told apart any more."""
WITHIN = 0.95
"""Chance of the band that a deviation stands for, which is 1.96 deviations to both sides."""


def surprise(seen: Prediction, level: float = 1.0) -> float:
    """Squared prediction errors in units of their covariance times `level`: chi-square while nothing changes."""
    return float(seen.errors @ np.linalg.solve(level * seen.covariance, seen.errors))


@dataclass(frozen=True, slots=True)
class Doubt:
    """The parameters if the robot changed at an older estimate."""

    odds: float
    """Of that against no change, before the samples since."""
    evidence: float
    """What these samples say for it: logarithm of the ratio of their likelihoods."""
    mean: Array
    """(size,)"""
    deviation: Array
    """(size,)"""


def doubt(seen: Prediction, spread: Array, odds: float, level: float = 1.0) -> Doubt:
    """Parameters that jump at the anchor by as much as `spread` says, after the samples since.

    With V the covariance of the errors as long as nothing changes, W = V + R S R' with the jump, and K the covariance
    of the parameters with the errors, the evidence is log N(e; 0, W) / N(e; 0, V), the mean p + K W⁻¹ e, and the
    covariance C + S - K W⁻¹ K'.

    Args:
        seen: the samples since.
        spread: (size,) standard deviation of a jump.
        odds: of a jump in the time that this anchor stands for.
        level: by which covariances are multiplied.
    """
    size, jump = len(seen.p), np.diag(np.square(spread))
    by_p = seen.rows[:, -size:]
    still = level * seen.covariance
    moved = still + by_p @ jump @ by_p.T
    factors = [cho_factor(matrix, lower=True) for matrix in (still, moved)]
    exponents = [
        -0.5 * float(seen.errors @ cho_solve(factor, seen.errors)) - float(np.sum(np.log(np.diag(factor[0]))))
        for factor in factors
    ]
    cross = level * seen.joint[-size:] @ seen.rows.T + jump @ by_p.T
    gain = cho_solve(factors[1], cross.T).T
    covariance = level * seen.joint[-size:, -size:] + jump - gain @ cross.T
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return Doubt(odds, exponents[1] - exponents[0], seen.p + gain @ seen.errors, deviation)


def honest_deviation(p: Array, deviation: Array, doubts: Sequence[Doubt], span: Array) -> Array:
    """(size,) a 1.96th of the half width around p that holds 95 % of what is possible, changes included.

    Args:
        p: (size,) what is believed.
        deviation: (size,) of it if nothing changed.
        doubts: what else may be.
        span: (size,) between the bounds, beyond which nothing can be.
    """
    if not doubts:
        return deviation
    weights = np.array([1.0, *(each.odds * np.exp(np.clip(each.evidence, -CERTAIN, CERTAIN)) for each in doubts)])
    weights /= np.sum(weights)
    tiny = 1e-12 * span
    means = np.array([np.zeros_like(p), *(each.mean - p for each in doubts)])
    deviations = np.maximum([deviation, *(each.deviation for each in doubts)], tiny)
    low, high = np.zeros_like(span), np.array(span)
    for _ in range(30):  # halving: to a billionth of the span
        half = 0.5 * (low + high)
        held = weights @ (ndtr((half - means) / deviations) - ndtr((-half - means) / deviations))
        low, high = np.where(held < WITHIN, half, low), np.where(held < WITHIN, high, half)
    return np.asarray(np.maximum(0.5 * (low + high) / 1.96, deviation))
