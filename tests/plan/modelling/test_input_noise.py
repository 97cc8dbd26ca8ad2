"""Noise of the inputs: its part of a window's covariance, by finite differences and by many windows."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.dynamics import make_dynamics
from retorque.plan.modelling.input_noise import input_spread
from retorque.plan.modelling.window import Samples
from retorque.plan.modelling.window_fit import TIE, FitSettings, WindowFit
from retorque.tasks.mpc.mpc_library import make_task
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STEPS = 50


def _fit(input_noise: float) -> WindowFit:
    task = make_task("cartpole")
    dynamics = make_dynamics(task.robot, task.timestep, selection=task.free.selection)
    return WindowFit(dynamics, task.free, np.full(4, 0.002), FitSettings(segment=20), input_noise=input_noise)


def _data(fit: WindowFit, p: Array, inputs: Array, pushes: Array) -> Samples:
    """Samples without noise of their own, of inputs that were not quite what was sent."""
    states = fit.dynamics.rollout(np.array([0.0, 2.0, 0.1, -0.5]), inputs + pushes, fit.free.whole(p))
    valid = np.ones(STEPS + 1, dtype=bool)
    valid[[7, 30]] = False
    return Samples(0.0, STEPS, states, inputs, valid)


@pytest.mark.parametrize("offsets", [0, 4])
def test_it_is_what_pushes_do_to_the_gradient(offsets: int) -> None:
    fit, p = _fit(0.1), np.array([1.2, 0.8])
    inputs = 10.0 * np.sin(np.arange(STEPS) / 6.0)[:, None]
    fit.offset, off = fit.noise, np.zeros(offsets)
    starts = fit._starts(STEPS + 1)
    assert len(starts) == 3

    def gradient(samples: Samples) -> tuple[Array, Array]:
        found = fit._evaluate(samples, starts, samples.states[starts], p, np.zeros((2, 2)), p, 2, off)
        assert found is not None
        return found[1], found[6]

    expected, small = np.zeros((14 + offsets, 14 + offsets)), 1e-4
    always = np.zeros(14 + offsets)
    for step in range(STEPS):
        push = np.zeros((STEPS, 1))
        push[step] = small
        slope = (gradient(_data(fit, p, inputs, push))[0] - gradient(_data(fit, p, inputs, -push))[0]) / (2.0 * small)
        expected += 0.1**2 * np.outer(slope, slope)
        always += 0.3 * slope
    still = _data(fit, p, inputs, np.zeros((STEPS, 1)))
    weights = 1.0 / np.square(fit.noise)
    columns = 2 * fit.dynamics.nv + fit.dynamics.inputs + fit.free.columns
    found = input_spread(
        *(gradient(still)[1], columns, fit.dynamics.timestep, weights, weights / TIE**2),
        *(still.valid, starts, np.array([0.1**2])),
        constant=np.array([0.3**2]),
        offsets=offsets > 0,
    )
    expected += np.outer(always, always)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4 * np.abs(expected).max())


def test_bands_hold_with_it_and_are_too_narrow_without() -> None:
    rng, with_it, without = np.random.default_rng(1000), _fit(0.5), _fit(0.0)
    inside: dict[bool, list[Array]] = {True: [], False: []}
    prior = np.diag(1.0 / np.square(2.0 * with_it.free.span))
    for _ in range(60):
        p = rng.uniform(0.5, 3.0, 2)
        inputs = 12.0 * np.sin(np.arange(STEPS) / rng.uniform(4.0, 8.0))[:, None]
        samples = _data(with_it, p, inputs, 0.5 * rng.standard_normal((STEPS, 1)))
        samples.states[:] += 0.002 * rng.standard_normal(samples.states.shape)
        for known, fit in ((True, with_it), (False, without)):
            found = fit.fit(samples, p, prior)
            assert found is not None
            inside[known].append(np.abs(found.p - p) <= 1.96 * np.sqrt(np.diag(found.covariance)))
    assert np.mean(inside[True]) > 0.88
    assert np.mean(inside[False]) < 0.75


def test_it_must_be_a_deviation() -> None:
    with pytest.raises(RetorqueError, match="0 or more"):
        _fit(-1.0)
    good = _fit(0.0)
    with pytest.raises(RetorqueError, match="0 or more"):
        WindowFit(good.dynamics, good.free, good.noise, input_offset=np.nan)
    with pytest.raises(RetorqueError, match="or all zero"):
        WindowFit(good.dynamics, good.free, good.noise, offset=np.array([0.1, 0.0, 0.1, 0.1]))


def test_samples_that_are_all_missing_are_not_predicted_and_few_of_many_may_be_chosen() -> None:
    fit, p = _fit(0.1), np.array([1.2, 0.8])
    samples = _data(fit, p, np.zeros((STEPS, 1)), np.zeros((STEPS, 1)))
    anchor = fit.fit(samples, p, np.eye(2))
    assert anchor is not None
    later = samples.last(4)
    seen = fit.predicted(later, anchor)
    assert seen is not None and len(seen.errors) == 12
    fewer = fit.predicted(later, anchor, 2)
    assert fewer is not None
    np.testing.assert_array_equal(fewer.errors, seen.errors[[0, 1, 2, 3, 8, 9, 10, 11]])
    later.valid[1:] = False
    assert fit.predicted(later, anchor) is None
