"""Fits of windows against the Cramér-Rao bound, with first states unknown, in segments and with holes."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.dynamics import make_dynamics
from retorque.plan.modelling.change import surprise
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import FitSettings, WindowFit
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@pytest.fixture(scope="module")
def task() -> MpcTask:
    return make_task("cartpole")


@pytest.fixture(scope="module")
def fit(task: MpcTask) -> WindowFit:
    dynamics = make_dynamics(task.robot, task.timestep, backend="tree", selection=task.free.selection)
    return WindowFit(dynamics, task.free, np.full(4, task.noise))


def window(fit: WindowFit, steps: int, rng: np.random.Generator) -> tuple[Samples, Array, Array]:
    """A noisy window, the true parameters and the true last state."""
    p = rng.uniform(0.5, 3.0, 2)
    x = np.array([0.0, rng.uniform(-3.0, 3.0), 0.0, rng.standard_normal()])
    knots = rng.uniform(-15.0, 15.0, steps // 10 + 2)
    inputs = np.interp(np.arange(steps) / 10.0, np.arange(len(knots)), knots)[:, None]
    states = fit.dynamics.rollout(x, inputs, fit.free.whole(p))
    measured = states + fit.noise * rng.standard_normal(states.shape)
    return Samples(0.0, steps, measured, inputs, np.ones(steps + 1, dtype=bool)), p, states[-1]


def weak(fit: WindowFit) -> Array:
    return np.diag(1.0 / np.square(2.0 * fit.free.span))


@pytest.mark.parametrize(("steps", "trials"), [(20, 60), (50, 60)])
def test_errors_are_at_the_cramer_rao_bound_and_covariances_are_honest(fit: WindowFit, steps: int, trials: int) -> None:
    rng, errors, bounds, squares = np.random.default_rng(1000), [], [], []
    for _ in range(trials):
        samples, p, last = window(fit, steps, rng)
        found = fit.fit(samples, fit.free.guess, weak(fit))
        assert found is not None
        errors.append(found.p - p)
        bounds.append(np.diag(np.linalg.inv(found.information)))
        off = np.concatenate([found.state - last, found.p - p])
        squares.append(off @ np.linalg.pinv(found.joint) @ off / len(off))
    ratio = np.sqrt(np.mean(np.square(errors) / bounds, axis=0))
    assert np.all(ratio < 1.3), ratio
    assert 0.7 < np.mean(squares) < 1.4


@pytest.mark.parametrize("steps", [20, 60])
def test_a_constant_error_of_the_sensors_is_fitted_and_covariances_are_honest(fit: WindowFit, steps: int) -> None:
    wary = WindowFit(fit.dynamics, fit.free, fit.noise, FitSettings(iterations=20), offset=2.0 * fit.noise)
    rng, squares, plain, known = np.random.default_rng(1002), [], [], []
    for _ in range(30):
        samples, p, last = window(fit, steps, rng)
        error = wary.offset * rng.standard_normal(4)
        biased = samples.less(-error)
        found, unaware = (each.fit(biased, fit.free.guess, weak(fit)) for each in (wary, fit))
        assert found is not None and unaware is not None
        off = np.concatenate([found.state - last, found.offset - error, found.p - p])
        squares.append(off @ np.linalg.pinv(found.joint) @ off / len(off))
        plain.append(np.square((unaware.p - p) / np.sqrt(np.diag(unaware.covariance))))
        known.append(np.square((found.p - p) / np.sqrt(np.diag(found.covariance))))
    assert 0.7 < np.mean(squares) < 1.4
    assert np.mean(known) < 1.5 < np.mean(plain)


def test_segments_and_compiled_sums_change_nothing(fit: WindowFit, task: MpcTask) -> None:
    samples, _, _ = window(fit, 60, np.random.default_rng(4))
    whole = WindowFit(fit.dynamics, task.free, fit.noise, FitSettings(segment=100))
    plain = make_dynamics(task.robot, task.timestep, backend="pinocchio", selection=task.free.selection)
    slow = WindowFit(plain, task.free, fit.noise)
    found = [f.fit(samples, task.free.guess, weak(fit)) for f in (fit, whole, slow)]
    assert found[0] is not None and found[1] is not None and found[2] is not None
    np.testing.assert_allclose(found[0].p, found[1].p, rtol=5e-3)
    np.testing.assert_allclose(found[0].p, found[2].p, rtol=1e-6)
    np.testing.assert_allclose(found[0].covariance, found[2].covariance, rtol=1e-4)


def test_a_smoothed_state_is_better_than_the_sample(fit: WindowFit) -> None:
    rng, raw, smooth = np.random.default_rng(7), [], []
    for _ in range(20):
        samples, p, last = window(fit, 12, rng)
        found = fit.fit(samples, p, np.zeros((0, 0)), free=False)
        assert found is not None and np.array_equal(found.p, p)
        raw.append(np.linalg.norm(samples.states[-1] - last))
        smooth.append(np.linalg.norm(found.state - last))
    assert np.mean(smooth) < 0.8 * np.mean(raw)


def test_holes_are_bridged_and_bounds_hold(fit: WindowFit) -> None:
    samples, p, _ = window(fit, 40, np.random.default_rng(3))
    samples.states[10:14] = 99.0
    samples.valid[10:14] = False
    found = fit.fit(samples, fit.free.guess, weak(fit))
    assert found is not None and np.all(np.abs(found.p - p) < 0.3)
    assert not found.residuals[10:14].any()
    samples.inputs[:] *= 30.0  # impossible for masses within their bounds
    found = fit.fit(samples, fit.free.guess, weak(fit))
    assert found is None or np.all((found.p >= fit.free.lower) & (found.p <= fit.free.upper))


def test_surprise_is_chi_square_until_something_changes(fit: WindowFit) -> None:
    rng, calm, changed = np.random.default_rng(5), [], []
    for _ in range(40):
        samples, p, _ = window(fit, 50, rng)
        anchor = fit.fit(samples.before(8), p, weak(fit))
        assert anchor is not None
        seen = fit.predicted(samples.last(9), anchor)
        assert seen is not None
        calm.append(surprise(seen) / len(seen.errors))
        other = fit.dynamics.rollout(anchor.state, samples.inputs[-8:], fit.free.whole(fit.free.clip(1.5 * p)))
        moved = Samples(
            0.0, 50, other + fit.noise * rng.standard_normal(other.shape), samples.inputs[-8:], np.ones(9, bool)
        )
        seen = fit.predicted(moved, anchor)
        assert seen is not None
        changed.append(surprise(seen) / len(seen.errors))
    assert 0.85 < np.mean(calm) < 1.15 and np.mean(changed) > 2.0


def test_noise_must_be_given(fit: WindowFit, task: MpcTask) -> None:
    with pytest.raises(RetorqueError, match="4 standard deviations"):
        WindowFit(fit.dynamics, task.free, np.zeros(4))
