"""Doubts about a change: against Gaussian conditioning, against draws, and in the band of `information`."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from retorque.physics.dynamics import make_dynamics
from retorque.plan.modelling.change import Doubt, doubts, honest_deviation, surprise
from retorque.plan.modelling.information import Information, InformationSettings
from retorque.plan.modelling.window import SampleWindow
from retorque.plan.modelling.window_fit import Prediction, WindowFit
from retorque.tasks.mpc.mpc_library import make_task
from retorque.work.array import Array

LEVEL = 1.7


@pytest.fixture
def seen() -> Prediction:
    rng = np.random.default_rng(5)
    rows, root = rng.standard_normal((9, 6)), 0.3 * rng.standard_normal((6, 6))
    joint = root @ root.T
    covariance = np.eye(9) + rows @ joint @ rows.T
    return Prediction(rng.standard_normal(9), covariance, rows, np.array([1.0, -2.0]), joint)


def test_doubts_are_what_conditioning_gives(seen: Prediction) -> None:
    spread = np.array([0.5, 2.0])
    selects = np.concatenate([np.zeros((2, 4)), np.eye(2)], axis=1)
    found = doubts(seen, spread, 0.03, LEVEL)
    assert len(found) == 3
    for each, jumps in zip(found, ([0, 1], [1, 0], [1, 1]), strict=True):
        jump = np.diag(spread**2 * jumps)
        whole = LEVEL * seen.joint + selects.T @ jump @ selects  # of state and parameters after the jump
        of_errors = LEVEL * np.eye(9) + seen.rows @ whole @ seen.rows.T
        cross = selects @ whole @ seen.rows.T
        np.testing.assert_allclose(each.mean, seen.p + cross @ np.linalg.solve(of_errors, seen.errors))
        covariance = selects @ whole @ selects.T - cross @ np.linalg.solve(of_errors, cross.T)
        np.testing.assert_allclose(each.deviation, np.sqrt(np.diag(covariance)))
        likely = [multivariate_normal.logpdf(seen.errors, cov=c) for c in (of_errors, LEVEL * seen.covariance)]
        assert each.evidence == pytest.approx(likely[0] - likely[1]) and each.odds == pytest.approx(0.01)
    expected = seen.errors @ np.linalg.inv(seen.covariance) @ seen.errors / LEVEL
    assert surprise(seen, LEVEL) == pytest.approx(expected)


def test_of_many_parameters_each_may_change_alone_or_all() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 7))
    seen = Prediction(rng.standard_normal(30), np.eye(30), rows, np.zeros(5), np.zeros((7, 7)))
    found = doubts(seen, np.ones(5), 0.6)
    assert len(found) == 6 and sum(each.odds for each in found) == pytest.approx(0.6)
    for k, each in enumerate(found[:5]):  # what does not jump stays known exactly
        np.testing.assert_allclose(np.delete(each.deviation, k), 0.0, atol=1e-9)
        assert each.deviation[k] > 0.0


def test_a_band_holds_95_of_100_draws_of_what_is_possible() -> None:
    p, deviation, span = np.array([1.0, 1.0]), np.array([0.1, 0.2]), np.array([4.0, 4.0])
    other = Doubt(0.2, np.log(1.5), np.array([1.8, 1.0]), np.array([0.3, 0.01]))
    found = honest_deviation(p, deviation, [other], span)
    rng, share = np.random.default_rng(0), 0.3 / 1.3
    changed = rng.random(200_000) < share
    draws = np.where(changed[:, None], other.mean, p)
    draws = draws + np.where(changed[:, None], other.deviation, deviation) * rng.standard_normal((200_000, 2))
    inside = np.mean(np.abs(draws - p) <= 1.96 * found, axis=0)
    assert inside[0] == pytest.approx(0.95, abs=0.003)
    assert found[1] == deviation[1]  # a change that would lead nowhere else does not narrow what is believed


def test_without_doubts_or_evidence_a_deviation_stays_and_with_all_of_it_the_span_is_the_end() -> None:
    p, deviation, span = np.zeros(1), np.array([0.1]), np.array([2.0])
    assert honest_deviation(p, deviation, [], span) is deviation
    for evidence, low, high in ((-1e9, 0.1, 0.1001), (1e9, 2.0 / 1.97, 2.0 / 1.96)):
        found = honest_deviation(p, deviation, [Doubt(0.01, evidence, np.array([50.0]), np.array([0.1]))], span)
        assert low <= found[0] <= high * (1.0 + 1e-9)


def watched(settings: InformationSettings, change: float) -> tuple[Array, Array]:
    """Whether the truth was inside, and deviations, in the steps after a change of a pushed cart-pole."""
    task = make_task("cartpole")
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    fit = WindowFit(dynamics, task.free, np.full(4, task.noise))
    rng, modeller = np.random.default_rng(1000), Information(task.free, fit, settings)
    window, p = SampleWindow(modeller.longest, 4, 1, task.timestep), np.array([1.0, 0.5])
    x, u, inside, deviations = np.array([0.0, 2.0, 0.0, 0.0]), np.zeros(1), [], []
    for k in range(74):
        p = p * change if k == 60 else p
        window.add(k * task.timestep, x + fit.noise * rng.standard_normal(4), u)
        model = modeller.update(window.samples()) if window.count > 1 else modeller.model
        if k >= 60:
            inside.append(np.abs(model.p - p) <= 1.96 * model.deviation)
            deviations.append(model.deviation)
        u = np.array([12.0 * np.sin(0.07 * k) + 4.0 * np.sin(0.23 * k) - 2.0 * x[0]])
        x = dynamics.step(x, u, task.free.whole(p))
    return np.array(inside), np.array(deviations)


def test_the_band_of_information_widens_at_a_change_and_hardly_without_one() -> None:
    sure, wary = InformationSettings(hazard=0.0), InformationSettings()
    assert np.mean(watched(wary, 1.12)[0]) > np.mean(watched(sure, 1.12)[0]) + 0.1
    plain, doubted = watched(sure, 1.0)[1], watched(wary, 1.0)[1]
    assert np.all(doubted >= plain) and np.median(doubted / plain) < 1.3
