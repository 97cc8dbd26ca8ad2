"""An explanation's likelihood is the exact one of its linear-Gaussian model, trial by trial."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from retorque.adapt.default.hypotheses import Hypothesis

N, K, STEP = 4, 2, 0.01
PRIOR = np.array([2.0, 0.5])


def made(trials: int = 1, memory: float = np.inf, odds: float = 0.0) -> Hypothesis:
    return Hypothesis(PRIOR, trials, memory, odds, STEP)


def equations(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (count, N, K), noise (N, N), and what a true x would give (count, N)."""
    rng = np.random.default_rng(seed)
    rows, root = rng.normal(size=(count, N, K)), rng.normal(size=(N, N))
    noise = 0.05 * (root @ root.T + np.eye(N))
    x = PRIOR * rng.normal(size=K)
    return rows, noise, rows @ x + rng.multivariate_normal(np.zeros(N), noise, size=count)


def test_evidence_is_the_likelihood_of_all_equations_at_once() -> None:
    rows, noise, y = equations(6, seed=1)
    hypothesis = made(odds=-1.5)
    for row, value in zip(rows, y, strict=True):
        hypothesis.take(np.array([0]), value[None], row[None], noise[None], 1.0)
    stacked = rows.reshape(-1, K)
    covariance = stacked @ np.diag(PRIOR**2) @ stacked.T + np.kron(np.eye(6), noise)
    exact = multivariate_normal(np.zeros(6 * N), covariance).logpdf(y.ravel())
    constant = -0.5 * 6 * N * np.log(2.0 * np.pi)  # the same for all explanations, so it is left out
    assert hypothesis.evidence[0] == pytest.approx(-1.5 + exact - constant)


def test_what_is_learnt_is_the_regression() -> None:
    rows, noise, y = equations(20, seed=2)
    hypothesis = made()
    for row, value in zip(rows, y, strict=True):
        hypothesis.take(np.array([0]), value[None], row[None], noise[None], 1.0)
    inverse = np.linalg.inv(noise)
    information = np.diag(PRIOR**-2) + np.einsum("tnk,nm,tml->kl", rows, inverse, rows)
    mean = np.linalg.solve(information, np.einsum("tnk,nm,tm->k", rows, inverse, y))
    np.testing.assert_allclose(hypothesis.mean[0], mean, rtol=1e-8)
    np.testing.assert_allclose(hypothesis.covariance[0], np.linalg.inv(information), rtol=1e-6, atol=1e-12)


def test_half_an_equation_twice_teaches_as_much_as_one() -> None:
    rows, noise, y = equations(1, seed=3)
    whole, halves = made(), made()
    whole.take(np.array([0]), y, rows, noise[None], 1.0)
    for _ in range(2):
        halves.take(np.array([0]), y, rows, noise[None], 0.5)
    np.testing.assert_allclose(halves.mean, whole.mean, rtol=1e-8)
    np.testing.assert_allclose(halves.covariance, whole.covariance, rtol=1e-6, atol=1e-12)


def test_what_is_not_a_constant_fades_back_to_its_prior() -> None:
    hypothesis = made(memory=0.1)
    rows, noise, y = equations(1, seed=4)
    hypothesis.take(np.array([0]), 5.0 * y, rows, noise[None], 1.0)
    blind = np.zeros((1, N, K))
    for _ in range(200):
        hypothesis.take(np.array([0]), np.zeros((1, N)), blind, noise[None], 1.0)
    np.testing.assert_allclose(hypothesis.mean, 0.0, atol=1e-6)
    np.testing.assert_allclose(hypothesis.covariance[0], np.diag(PRIOR**2), atol=1e-6)


def test_the_true_explanation_gains_on_a_wrong_one() -> None:
    rows, noise, y = equations(30, seed=5)
    others, _, _ = equations(30, seed=6)
    right, wrong, nothing = made(), made(), made()
    for row, other, value in zip(rows, others, y, strict=True):
        right.take(np.array([0]), value[None], row[None], noise[None], 1.0)
        wrong.take(np.array([0]), value[None], other[None], noise[None], 1.0)
        nothing.take(np.array([0]), value[None], np.zeros((1, N, K)), noise[None], 1.0)
    assert right.evidence[0] > wrong.evidence[0] + 20.0
    assert right.evidence[0] > nothing.evidence[0] + 20.0
    assert right.recent[0] > max(wrong.recent[0], nothing.recent[0])


def test_one_trial_never_touches_another_and_can_begin_anew() -> None:
    rows, noise, y = equations(1, seed=7)
    hypothesis = made(trials=3, odds=2.0)
    hypothesis.take(np.array([0, 2]), np.repeat(y, 2, axis=0), np.repeat(rows, 2, axis=0), np.stack([noise] * 2), 1.0)
    assert hypothesis.evidence[1] == 2.0 and not hypothesis.mean[1].any()
    np.testing.assert_array_equal(hypothesis.mean[0], hypothesis.mean[2])
    hypothesis.restart(np.array([True, False, False]))
    assert hypothesis.evidence[0] == 2.0 and not hypothesis.mean[0].any() and hypothesis.recent[0] == 0.0
    assert hypothesis.mean[2].any()
