"""Every friction model that can be written down, not only the presets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from retorque.physics.friction import Friction
from retorque.physics.presliding import DISTANCES
from retorque.work.errors import RetorqueError

WIDTHS = st.lists(st.floats(1e-3, 5.0), max_size=2, unique=True).map(tuple)
MODELS = st.builds(
    Friction,
    coulomb=st.booleans(),
    limit=st.floats(1e-3, 0.5),
    presliding=st.lists(st.sampled_from(DISTANCES), max_size=2, unique=True).map(tuple),
    viscous=st.booleans(),
    stribeck=WIDTHS,
    saturating=WIDTHS,
    asymmetric=st.booleans(),
    offset=st.booleans(),
)
VELOCITIES = st.lists(st.floats(-20.0, 20.0), min_size=1, max_size=4).map(np.array)


@settings(max_examples=60, deadline=None)
@given(model=MODELS)
def test_the_names_of_its_terms_say_all_of_a_model(model: Friction) -> None:
    """Cards and parameter files hold the names only."""
    assume(not model.asymmetric or bool(model.nonnegative.any()))  # no direction where nothing depends on it
    assert Friction.of_terms(model.names, model.limit) == model
    assert len(set(model.names)) == model.count == len(model.units) == len(model.nonnegative)


@settings(max_examples=60, deadline=None)
@given(model=MODELS, velocity=VELOCITIES)
def test_turning_the_motion_round_turns_friction_round(model: Friction, velocity: np.ndarray) -> None:
    there, back = model.features(velocity), model.features(-velocity)
    moving = model.nonnegative
    if model.asymmetric:  # what was forward is backward now
        order = np.arange(model.count - model.offset).reshape(-1, 2)[:, ::-1].ravel()
        back = np.concatenate([back[..., order], back[..., len(order) :]], axis=-1)
    np.testing.assert_allclose(back[..., moving], -there[..., moving], atol=1e-12)
    np.testing.assert_array_equal(back[..., ~moving], there[..., ~moving])


@settings(max_examples=60, deadline=None)
@given(model=MODELS, velocity=VELOCITIES)
def test_dry_friction_is_bounded_and_nothing_resists_at_rest(model: Friction, velocity: np.ndarray) -> None:
    features = model.features(velocity)
    dry = np.array([not name.startswith("viscous") for name in model.names], dtype=bool)
    assert np.all(np.abs(features[..., dry]) <= 1.0 + 1e-12)
    assert not np.any(model.features(np.zeros(3))[..., model.nonnegative])


@settings(max_examples=40, deadline=None)
@given(model=MODELS, speed=st.floats(1e3, 1e12), sign=st.sampled_from([-1.0, 1.0]))
def test_no_speed_is_too_fast(model: Friction, speed: float, sign: float) -> None:
    velocity = np.array([sign * speed])
    assert np.all(np.isfinite(model.features(velocity))) and np.all(np.isfinite(model.slopes(velocity)))


@pytest.mark.parametrize("lead", [(), (3,), (2, 3)])
def test_a_batch_is_each_of_its_robots(lead: tuple[int, ...]) -> None:
    model = Friction(stribeck=(0.1,), presliding=(1e-3,), asymmetric=True)
    rng = np.random.default_rng(0)
    velocity = rng.normal(0.0, 0.2, (*lead, 4))
    coefficients = rng.uniform(0.0, 1.0, (*lead, 4, model.count))
    slip = rng.uniform(-1.0, 1.0, (*lead, 4, len(DISTANCES)))
    whole = model.torque(velocity, coefficients, slip)
    assert whole.shape == velocity.shape
    for index in np.ndindex(*lead):
        np.testing.assert_array_equal(model.torque(velocity[index], coefficients[index], slip[index]), whole[index])


def test_a_known_path_takes_the_place_of_the_sign() -> None:
    model = Friction(coulomb=False, presliding=(1e-4, 1e-3), viscous=False, offset=False)
    slip = np.random.default_rng(1).uniform(-1.0, 1.0, (6, len(DISTANCES)))
    found = model.features(np.zeros(6), slip)
    np.testing.assert_array_equal(found, slip[:, [DISTANCES.index(1e-4), DISTANCES.index(1e-3)]])


@pytest.mark.parametrize(
    ("terms", "what"),
    [
        (["viscous", "coulomb"], "not in order"),
        (["coulomb", "coulomb"], "not in order"),
        (["coulomb forward"], "not in order"),
        (["coulomb", "viscous forward", "viscous backward"], "not in order"),
        (["stribeck"], "needs one number"),
        (["saturating fast"], "needs one number"),
        (["stribeck -0.1"], "above zero"),
        (["presliding 0.5"], "presliding distances"),
        (["glue"], "not in order"),
    ],
)
def test_terms_that_no_model_has_are_refused(terms: list[str], what: str) -> None:
    with pytest.raises(RetorqueError, match=what):
        Friction.of_terms(terms)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize("field", ["limit", "stribeck", "saturating"])
def test_velocities_that_are_none_are_refused(field: str, bad: float) -> None:
    with pytest.raises(RetorqueError, match="above zero"):
        Friction(**{field: bad if field == "limit" else (bad,)})
