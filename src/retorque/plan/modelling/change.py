"""Whether the robot has changed since an older estimate: what newer samples say for and against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr

from retorque.plan.modelling.window_fit import Prediction
from retorque.work.array import Array

CERTAIN = 30.0
"""Logarithm of odds beyond which nothing is told apart any more."""
WITHIN = 0.95
"""Chance of the band that a deviation stands for, which is 1.96 deviations to both sides."""
FEW = 3
"""Up to so many parameters, every choice of them that may have changed is looked at."""


def surprise(seen: Prediction, level: float = 1.0) -> float:
    """Squared prediction errors in units of their covariance times `level`: chi-square while nothing changes."""
    return float(seen.errors @ np.linalg.solve(level * seen.covariance, seen.errors))


@dataclass(frozen=True, slots=True)
class Doubt:
    """The parameters if some of them changed at an older estimate."""

    odds: float
    """Of that against no change, before the samples since."""
    evidence: float
    """What these samples say for it: logarithm of the ratio of their likelihoods."""
    mean: Array
    """(size,)"""
    deviation: Array
    """(size,)"""


def doubts(seen: Prediction, spread: Array, odds: float, level: float = 1.0) -> list[Doubt]:
    """Parameters of which some jump at the anchor by as much as `spread` says, after the samples since.

    With V the covariance of the errors e as long as nothing changes, R their derivatives by the parameters and S the
    covariance of a jump, the jump is N(M R' V⁻¹ e, M) with M = (S⁻¹ + R' V⁻¹ R)⁻¹. Each choice of parameters that jump
    is as likely as another beforehand: one of them may change while the others are seen to stay.

    Args:
        seen: the samples since.
        spread: (size,) standard deviation of a jump.
        odds: of a jump in the time that this anchor stands for.
        level: by which covariances are multiplied.
    """
    size = len(seen.p)
    by_p, cross = seen.rows[:, -size:], level * seen.joint[-size:] @ seen.rows.T
    columns = np.concatenate([seen.errors[:, None], by_p, cross.T], axis=1)
    solved = cho_solve(cho_factor(level * seen.covariance, lower=True), columns)
    slope, information = by_p.T @ solved[:, 0], by_p.T @ solved[:, 1 : 1 + size]
    kept = np.eye(size) - cross @ solved[:, 1 : 1 + size]
    centre = seen.p + cross @ solved[:, 0]
    still = level * seen.joint[-size:, -size:] - cross @ solved[:, 1 + size :]
    choices = _choices(size)
    out = []
    for choice in choices:
        root = np.where(choice, spread, 0.0)
        inner = np.eye(size) + root[:, None] * information * root
        jump = root[:, None] * np.linalg.inv(inner) * root
        evidence = 0.5 * float(slope @ jump @ slope) - 0.5 * float(np.linalg.slogdet(inner)[1])
        variance = np.diag(still + kept @ jump @ kept.T)
        mean = centre + kept @ jump @ slope
        out.append(Doubt(odds / len(choices), evidence, mean, np.sqrt(np.maximum(variance, 0.0))))
    return out


def _choices(size: int) -> list[Array]:
    """Which parameters may change together: any of a few; of many, each alone, or all."""
    if size <= FEW:
        return [np.array(choice) for choice in product((False, True), repeat=size) if any(choice)]
    return [*np.eye(size, dtype=bool), np.ones(size, dtype=bool)]


def honest_deviation(p: Array, deviation: Array, others: Sequence[Doubt], span: Array) -> Array:
    """(size,) a 1.96th of the half width around p that holds 95 % of what is possible, changes included.

    Args:
        p: (size,) what is believed.
        deviation: (size,) of it if nothing changed.
        others: what else may be.
        span: (size,) between the bounds, beyond which nothing can be.
    """
    if not others:
        return deviation
    weights = np.array([1.0, *(each.odds * np.exp(np.clip(each.evidence, -CERTAIN, CERTAIN)) for each in others)])
    weights /= np.sum(weights)
    tiny = 1e-12 * span
    means = np.array([np.zeros_like(p), *(each.mean - p for each in others)])
    deviations = np.maximum([deviation, *(each.deviation for each in others)], tiny)
    low, high = np.zeros_like(span), np.array(span)
    for _ in range(30):  # halving: to a billionth of the span
        half = 0.5 * (low + high)
        held = weights @ (ndtr((half - means) / deviations) - ndtr((-half - means) / deviations))
        low, high = np.where(held < WITHIN, half, low), np.where(held < WITHIN, high, half)
    return np.asarray(np.maximum(0.5 * (low + high) / 1.96, deviation))
