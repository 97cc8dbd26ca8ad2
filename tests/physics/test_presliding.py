"""Friction that remembers: Dahl's states along a path, step by step, and their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from retorque.physics.presliding import DISTANCES, SlipState, slip


def path(samples: int = 400, seed: int = 0, size: float = 2e-3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (
        np.cumsum(rng.standard_normal((samples, 3)) * size / 20.0, axis=0)
        + size * np.sin(np.linspace(0.0, 12.0, samples))[:, None]
    )


def test_it_is_dahls_differential_equation() -> None:
    """dz/dq = 1 - z sign(dq), over d, integrated by another means."""
    q = 1e-3 * np.sin(np.linspace(0.0, 7.0, 2000))[:, None]
    found = slip(q)[:, 0]
    for index, distance in enumerate(DISTANCES[1:], start=1):
        z, values = 0.0, [0.0]
        for before, after in zip(q[:-1, 0], q[1:, 0], strict=True):
            sign = np.sign(after - before)
            solved = solve_ivp(
                lambda _, y, s=sign, d=distance: (s - y) / d, (0.0, abs(after - before)), [z], rtol=1e-9, atol=1e-12
            )
            z = float(solved.y[0, -1])
            values.append(z)
            if len(values) > 200:
                break
        np.testing.assert_allclose(found[: len(values), index], values, atol=1e-6)


def test_states_stay_within_one() -> None:
    z = slip(path(size=1.0))
    assert z.shape == (400, 3, len(DISTANCES)) and np.all(np.abs(z) <= 1.0)


def test_a_long_way_one_way_winds_it_up_and_back_again() -> None:
    there = np.linspace(0.0, 0.1, 200)[:, None]
    z = slip(np.concatenate([there, there[::-1]]))
    np.testing.assert_allclose(z[199, 0], 1.0, atol=1e-6)
    np.testing.assert_allclose(z[-1, 0], -1.0, atol=1e-6)


def test_a_joint_that_stands_keeps_its_state() -> None:
    q = np.concatenate([np.linspace(0.0, 1e-3, 50), np.full(50, 1e-3)])[:, None]
    z = slip(q)
    np.testing.assert_array_equal(z[49:], np.broadcast_to(z[49], z[49:].shape))


def test_a_path_in_two_parts_is_the_path() -> None:
    q = path()
    whole, first = slip(q), slip(q[:150])
    second = slip(q[149:], start=first[-1])
    np.testing.assert_allclose(second[1:], whole[150:], atol=1e-12)


def test_how_often_a_path_is_sampled_does_not_matter() -> None:
    coarse = np.linspace(0.0, 2e-3, 11)[:, None]
    fine = np.linspace(0.0, 2e-3, 1001)[:, None]
    np.testing.assert_allclose(slip(coarse)[-1], slip(fine)[-1], atol=1e-12)


@pytest.mark.parametrize("lead", ((), (4,)))
def test_step_by_step_is_the_path(lead: tuple[int, ...]) -> None:
    rows = np.stack([path(seed=seed) for seed in range(4)], axis=1) if lead else path()
    state = SlipState(rows[0])
    for q in rows[1:]:
        state.advance(q)
    if lead:
        for trial in range(4):
            np.testing.assert_allclose(state.value[trial], slip(rows[:, trial])[-1], atol=1e-12)
    else:
        np.testing.assert_allclose(state.value, slip(rows)[-1], atol=1e-12)


def test_looking_ahead_is_advancing_and_its_slope_is_the_derivative() -> None:
    rng = np.random.default_rng(2)
    state = SlipState(np.zeros(3))
    for _ in range(20):
        state.advance(state._position + 1e-4 * rng.standard_normal(3))
    velocity, dt, step = np.array([0.3, -0.02, 0.5]), 1e-3, 1e-6
    ahead, slope = state.after(velocity, dt)
    numeric = (state.after(velocity + step, dt)[0] - state.after(velocity - step, dt)[0]) / (2.0 * step)
    np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-7)
    state.advance(state._position + dt * velocity)
    np.testing.assert_allclose(state.value, ahead, atol=1e-9)


def test_a_position_given_is_not_kept_by_reference() -> None:
    here = np.zeros(2)
    state = SlipState(here)
    here[:] = 1.0
    state.advance(np.zeros(2))
    assert np.all(state.value == 0.0)
