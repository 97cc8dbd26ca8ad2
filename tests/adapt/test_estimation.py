"""The parts of `recursive`: a filter that is Bayes' rule, weights that are a fit's slope, a disturbance that fades."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_are
from scipy.stats import chi2

from retorque.adapt.recursive.disturbance import Disturbance
from retorque.adapt.recursive.equation import Equation, slope_weights
from retorque.adapt.recursive.inverse import Inverse, estimate_arrays
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.readout import read
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.waiting import Waiting
from retorque.robots.robot import Robot

SIZE = 7


def learn(filter: SquareRootFilter, rows: np.ndarray, measured: np.ndarray, noise: np.ndarray) -> None:
    """Take in measurements (trials, m)."""
    expected, spread = filter.predict(rows)
    filter.update(measured - expected, rows, spread, noise)


def measurements(trials: int, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Unknowns drawn from the prior, and measurements of them in blocks of three."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((trials, SIZE))
    rows = rng.standard_normal((count, trials, 3, SIZE))
    noise = rng.uniform(0.05, 2.0, (count, trials, 3))
    measured = np.einsum("ctms,ts->ctm", rows, truth) + np.sqrt(noise) * rng.standard_normal(noise.shape)
    return truth, rows, measured, noise


def covariance(filter: SquareRootFilter) -> np.ndarray:
    return filter.root @ np.swapaxes(filter.root, -1, -2)


def test_the_posterior_is_that_of_all_measurements_at_once_in_any_order() -> None:
    _, rows, measured, noise = measurements(4, 12)
    filters = []
    for order in (np.arange(12), np.arange(12)[::-1]):
        filters.append(SquareRootFilter(4, SIZE, 1.0))
        for k in order:
            learn(filters[-1], rows[k], measured[k], noise[k])
    for trial in range(4):
        h, r = rows[:, trial].reshape(-1, SIZE), noise[:, trial].ravel()
        information = np.eye(SIZE) + (h.T / r) @ h
        wanted = np.linalg.solve(information, (h.T / r) @ measured[:, trial].ravel())
        for found in filters:
            np.testing.assert_allclose(found.mean[trial], wanted, atol=1e-9)
            np.testing.assert_allclose(covariance(found)[trial], np.linalg.inv(information), atol=1e-9)


def test_its_errors_are_as_large_as_it_says() -> None:
    """Squared errors over their covariance are chi-squared, over 400 robots."""
    truth, rows, measured, noise = measurements(400, 4, seed=1)
    found = SquareRootFilter(400, SIZE, 1.0)
    for k in range(4):
        learn(found, rows[k], measured[k], noise[k])
    error = truth - found.mean
    score = np.einsum("ti,tij,tj->t", error, np.linalg.inv(covariance(found)), error)
    assert abs(np.mean(score) / SIZE - 1.0) < 0.1
    for share in (0.5, 0.9, 0.99):
        assert abs(np.mean(score < chi2.ppf(share, SIZE)) - share) < 0.06


def test_a_row_of_zeros_is_no_measurement_and_a_trial_is_its_own() -> None:
    _, rows, measured, noise = measurements(3, 5, seed=2)
    rows[:, 1] = 0.0
    batch, alone = SquareRootFilter(3, SIZE, 0.99), SquareRootFilter(1, SIZE, 0.99)
    for k in range(5):
        learn(batch, rows[k], measured[k], noise[k])
        learn(alone, rows[k, 2:], measured[k, 2:], noise[k, 2:])
    np.testing.assert_array_equal(batch.mean[1], 0.0)
    np.testing.assert_allclose(covariance(batch)[1], np.eye(SIZE), atol=1e-12)
    np.testing.assert_allclose(batch.mean[2], alone.mean[0], atol=1e-12)
    batch.reset()
    np.testing.assert_array_equal(batch.root, np.broadcast_to(np.eye(SIZE), (3, SIZE, SIZE)))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), width=st.integers(1, 5))
def test_doubt_is_added_to_one_trial_exactly(seed: int, width: int) -> None:
    _, rows, measured, noise = measurements(2, 2, seed)
    found = SquareRootFilter(2, SIZE, 1.0)
    learn(found, rows[0], measured[0], noise[0])
    columns = np.random.default_rng(seed).standard_normal((SIZE, width))
    before = covariance(found)
    found.widen(1, columns)
    np.testing.assert_allclose(covariance(found)[1], before[1] + columns @ columns.T, atol=1e-9)
    np.testing.assert_array_equal(covariance(found)[0], before[0])
    found.walk(np.array([0]), slice(2, 5), 0.3)
    walked = np.diag(0.09 * (np.abs(np.arange(SIZE) - 3) <= 1))
    np.testing.assert_allclose(covariance(found)[0], before[0] + walked, atol=1e-9)


def test_renewed_unknowns_are_the_priors_and_the_others_keep_what_they_know() -> None:
    _, rows, measured, noise = measurements(2, 2, seed=3)
    found = SquareRootFilter(2, SIZE, 1.0)
    learn(found, rows[0], measured[0], noise[0])
    mean, before = found.mean.copy(), covariance(found)
    found.renew(np.array([1]), slice(5, SIZE))
    after = covariance(found)
    np.testing.assert_allclose(after[1, :5, :5], before[1, :5, :5], atol=1e-9)
    np.testing.assert_allclose(after[1, 5:], np.eye(SIZE)[5:], atol=1e-12)
    np.testing.assert_array_equal(found.mean[1], [*mean[1, :5], 0.0, 0.0])
    np.testing.assert_array_equal(found.mean[0], mean[0])


def test_a_constraint_is_met_the_likeliest_way() -> None:
    """The step is that of a measurement without noise: nothing meets the constraint nearer in the covariance."""
    _, rows, measured, noise = measurements(2, 2, seed=4)
    found = SquareRootFilter(2, SIZE, 1.0)
    learn(found, rows[0], measured[0], noise[0])
    before, row = found.mean.copy(), np.random.default_rng(0).standard_normal((1, SIZE))
    found.project(np.array([1]), row, np.array([0.7]))
    step = found.mean[1] - before[1]
    assert row[0] @ step == pytest.approx(0.7) and np.array_equal(found.mean[0], before[0])
    information = np.linalg.inv(covariance(found)[1])
    rng = np.random.default_rng(1)
    for _ in range(20):
        aside = rng.standard_normal(SIZE)
        other = step + 0.1 * (aside - row[0] * (row[0] @ aside) / (row[0] @ row[0]))
        assert other @ information @ other >= step @ information @ step - 1e-12


@settings(max_examples=30, deadline=None)
@given(count=st.integers(3, 80), timestep=st.sampled_from([1e-3, 2e-3, 0.01]), seed=st.integers(0, 999))
def test_the_slope_is_a_fits_and_a_mean_of_what_lies_between(count: int, timestep: float, seed: int) -> None:
    velocity = np.random.default_rng(seed).standard_normal(count)
    slope, mean = slope_weights(count, timestep)
    fitted = np.polyfit(np.arange(count) * timestep, velocity, 1)[0]
    assert slope @ velocity == pytest.approx(fitted, rel=1e-8, abs=1e-8)
    assert mean @ (np.diff(velocity) / timestep) == pytest.approx(fitted, rel=1e-8, abs=1e-8)
    assert mean.sum() == pytest.approx(1.0) and np.all(mean > 0.0) and np.allclose(mean, mean[::-1])


def disturbance(trials: int = 1) -> Disturbance:
    return Disturbance(np.array([2.0, 5.0]), trials, 0.01, 3, first=0.2, lasting=0.3, memory=2.0, floor=0.02)


def test_what_lasts_is_followed_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)
    noisy, lasting = disturbance(), disturbance()
    keep, true, errors, sizes = np.exp(-0.01 / 0.3), np.zeros(2), [], []
    for k in range(3000):
        white = rng.standard_normal((1, 2))
        noisy.learn(white, np.array([True]))
        true = keep * true + np.sqrt(1.0 - keep**2) * np.array([2.0, 5.0]) * rng.standard_normal(2)
        lasting.learn(true + white, np.array([True]))
        if k > 1000:
            errors.append(lasting.torque[0] - true)
            sizes.append(noisy.torque[0])
    assert np.all(np.std(sizes, axis=0) < 0.45)  # of white noise of size one, little is believed
    for size, error in zip((2.0, 5.0), np.std(errors, axis=0), strict=True):  # as good as if its size were known
        best = solve_discrete_are(np.array([[keep]]), np.eye(1), np.array([[(1 - keep**2) * size**2]]), np.eye(1))[0, 0]
        assert error < 1.08 * np.sqrt(best / (best + 1.0))
    np.testing.assert_allclose(lasting.lasting[0], [4.0, 25.0], rtol=0.6)


def test_without_data_it_fades_and_trials_are_their_own() -> None:
    found, alone = disturbance(2), disturbance(1)
    for k in range(60):
        residual = np.array([[1.0 + 0.1 * (k % 3), -2.0]])
        found.learn(np.vstack([residual, 100.0 * residual]), np.array([True, k % 2 == 0]))
        alone.learn(residual, np.array([True]))
    np.testing.assert_array_equal(found.torque[0], alone.torque[0])
    before = found.torque.copy()
    for _ in range(30):
        found.learn(np.full((2, 2), 9e9), np.array([False, False]))
    np.testing.assert_allclose(found.torque, before * np.exp(-30 * 0.01 / 0.3), rtol=1e-9)
    found.reset()
    fresh = disturbance(2)
    for filter in (found, fresh):
        filter.learn(np.ones((2, 2)), np.array([True, True]))
    np.testing.assert_array_equal(found.torque, fresh.torque)


def equation(number: int) -> Equation:
    rng = np.random.default_rng(number)
    torque, prior, ideal, *motion = rng.standard_normal((6, 2, 3))
    return Equation(
        torque, prior, rng.standard_normal((2, 3, 4)), ideal, float(number), np.array([True, True]), *motion
    )


def test_equations_wait_their_turn_and_what_is_refused_meanwhile_is_not_learnt_from() -> None:
    queue = Waiting(3, 2, 3, 4)
    came = [queue.exchange(equation(k)) for k in range(3)]
    assert came == [None, None, None]
    queue.refuse(np.array([False, True]))
    for k in range(3):
        oldest, wanted = queue.exchange(equation(k + 3)), equation(k)
        assert oldest is not None and oldest.noise_factor == k
        assert oldest.accepted.tolist() == [True, False]
        for name in ("torque", "prior", "rows", "ideal", "position", "velocity", "acceleration"):
            np.testing.assert_array_equal(getattr(oldest, name), getattr(wanted, name))
    later = queue.exchange(equation(9))
    assert later is not None and later.accepted.all()  # came after the refusal


@pytest.mark.parametrize("name", ("panda", "z1", "ur10e"))
def test_an_estimate_inverts_to_the_priors_torque_and_an_external_one_is_taken_off(name: str) -> None:
    robot = Robot.load(name)
    model = LinearModel(robot)
    inverse = Inverse(model, 1e-3)
    arrays = estimate_arrays(model, np.zeros((4, model.size)), np.zeros((4, robot.n)))
    rng = np.random.default_rng(0)
    q, qd, qdd = robot.home + 0.2 * rng.standard_normal((4, robot.n)), *rng.standard_normal((2, 4, robot.n))
    torque = inverse(arrays, q, qd, qdd)
    assert np.all(np.isfinite(torque)) and torque.shape == (4, robot.n)
    push = 0.5 * rng.standard_normal((4, robot.n))
    offset = {**arrays, "offset": arrays["offset"] - push}
    np.testing.assert_allclose(inverse(arrays, q, qd, qdd, push), inverse(offset, q, qd, qdd), rtol=1e-12)
    for trial in range(4):
        one = {key: value[:, [trial]] if key in ("push", "pull") else value[[trial]] for key, value in arrays.items()}
        np.testing.assert_allclose(inverse(one, q[[trial]], qd[[trial]], qdd[[trial]])[0], torque[trial], atol=1e-12)


def test_a_readout_knows_what_has_not_been_excited() -> None:
    robot = Robot.load("z1")
    model = LinearModel(robot)
    found = SquareRootFilter(1, model.size, 1.0)
    before = read(model, found, 0)
    assert not any(unknown.excited for unknown in before.unknowns) and before.unexcited
    assert {f"{link.name} mass" for link in robot.moving_links} <= {unknown.name for unknown in before.unknowns}
    rows = np.zeros((1, 1, model.size))
    rows[0, 0, 0] = 1.0  # the first joint's first direction, and nothing else
    learn(found, rows, np.array([[0.5]]), np.array([[1e-4]]))
    after = read(model, found, 0)
    changed = [a.name for a, b in zip(after.unknowns, before.unknowns, strict=True) if a.std < b.std - 1e-9]
    assert changed and all(name.startswith(robot.joint_names[0]) for name in changed)
    assert len(after.unexcited) <= len(before.unexcited)
    assert "(not excited)" in str(after) and "not excited:" in str(after)
    assert all(unknown.std <= unknown.prior_std * (1.0 + 1e-9) for unknown in after.unknowns)
