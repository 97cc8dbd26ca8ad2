"""Friction features and presliding states."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.friction import PRESETS, Friction, limited_sign, preset
from retorque.physics.presliding import DISTANCES, SlipState, slip
from retorque.work.errors import RetorqueError


def test_limited_coulomb_is_equation_13() -> None:
    velocity = np.array([-1.0, -0.02, -0.01, 0.0, 0.005, 0.02, 3.0])
    assert np.allclose(limited_sign(velocity, 0.02), [-1.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1.0])


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_torque_is_linear_and_dissipates(name: str) -> None:
    model = PRESETS[name]
    rng = np.random.default_rng(0)
    velocity = rng.uniform(-2.0, 2.0, (50, 3))
    coefficients = rng.uniform(0.0, 1.0, (3, model.count))
    features = model.features(velocity)
    assert features.shape == (50, 3, model.count) and len(model.units) == model.count
    assert np.allclose(model.torque(velocity, 2.0 * coefficients), 2.0 * model.torque(velocity, coefficients))
    without_offset = features[..., model.nonnegative] * velocity[..., None]
    assert np.all(without_offset >= 0.0)  # every term with a positive coefficient takes power


@pytest.mark.parametrize("name", ["saturating", "stribeck", "asymmetric"])
def test_features_are_continuous(name: str) -> None:
    model = PRESETS[name]
    velocity = np.linspace(-0.5, 0.5, 20_001)[:, None]
    steps = np.abs(np.diff(model.features(velocity), axis=0))
    assert np.max(steps) < 60.0 * 5e-5  # the steepest slope is 1 / limit


def test_asymmetric_terms_add_up_to_the_symmetric_ones() -> None:
    velocity = np.linspace(-1.0, 1.0, 41)[:, None]
    both = Friction(asymmetric=True, offset=False).features(velocity)
    plain = Friction(offset=False).features(velocity)
    assert np.allclose(both[..., 0::2] + both[..., 1::2], plain)


def test_presliding_keeps_friction_at_rest_and_reverses_over_its_distance() -> None:
    path = np.concatenate([np.linspace(0.0, 0.1, 500), np.full(100, 0.1), np.linspace(0.1, 0.1 - 3e-4, 200)])[:, None]
    state = slip(path)
    k = DISTANCES.index(3e-4)
    assert np.all(np.abs(state) <= 1.0)
    assert state[499, 0, k] > 0.999 and np.all(state[500:600, 0, k] == state[499, 0, k])
    # one distance back from +1: -1 + 2 exp(-1)
    assert np.isclose(state[-1, 0, k], -1.0 + 2.0 * np.exp(-1.0), atol=1e-3)


def test_presliding_continues_from_a_given_state() -> None:
    path = 0.01 * np.cumsum(np.random.default_rng(0).standard_normal((300, 2)), axis=0)
    whole = slip(path)
    second = slip(path[149:], start=whole[149])
    assert np.allclose(second[1:], whole[150:], atol=1e-12)


def test_presliding_without_a_path_is_limited_coulomb() -> None:
    velocity = np.array([[0.5, -0.01]])
    model = Friction(coulomb=False, presliding=(1e-4,), viscous=False, offset=False)
    assert np.allclose(model.features(velocity)[..., 0], limited_sign(velocity, model.limit))


def test_bad_friction_is_refused() -> None:
    with pytest.raises(RetorqueError, match="above zero"):
        Friction(limit=0.0)
    with pytest.raises(RetorqueError, match="presliding distances"):
        Friction(presliding=(0.5,))
    with pytest.raises(RetorqueError, match="did you mean 'stribeck'"):
        preset("stribek")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_slopes_match_finite_differences(name: str) -> None:
    model = PRESETS[name]
    velocity = np.random.default_rng(1).uniform(-0.3, 0.3, (40, 3))
    velocity = velocity[np.all(np.abs(np.abs(velocity) - model.limit) > 1e-4, axis=1)]  # not at a kink
    step = 1e-7
    slope = (model.features(velocity + step) - model.features(velocity - step)) / (2.0 * step)
    np.testing.assert_allclose(model.slopes(velocity), slope, atol=1e-5)


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_model_is_known_by_its_terms(name: str) -> None:
    assert Friction.of_terms(PRESETS[name].names, PRESETS[name].limit) == PRESETS[name]


def test_the_slip_state_follows_the_path() -> None:
    rng = np.random.default_rng(2)
    q = np.cumsum(rng.normal(0.0, 2e-4, (200, 3)), axis=0)
    state = SlipState(q[0])
    found = [state.value]
    for row in q[1:]:
        state.advance(row)
        found.append(state.value)
    np.testing.assert_allclose(np.array(found), slip(q), atol=1e-12)


def test_where_a_velocity_takes_the_slip_state() -> None:
    rng = np.random.default_rng(3)
    state = SlipState(np.zeros((2, 4)))
    state.advance(rng.normal(0.0, 1e-4, (2, 4)))
    velocity, h = rng.choice([-1.0, 1.0], (2, 4)) * rng.uniform(0.005, 0.2, (2, 4)), 1e-3
    ahead, slope = state.after(velocity, h)
    up, down = (state.after(velocity + sign * 1e-7, h)[0] for sign in (1.0, -1.0))
    np.testing.assert_allclose(slope, (up - down) / 2e-7, atol=1e-5)
    moved = SlipState(np.zeros((2, 4)))
    moved.value = state.value.copy()
    moved.advance(h * velocity)
    np.testing.assert_allclose(moved.value, ahead, atol=1e-12)
