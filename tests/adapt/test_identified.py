"""The identified card: fed forward, and as the recursive adapter's prior."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.identified import Identified
from retorque.adapt.oracle import Oracle
from retorque.adapt.recursive.adapter import Recursive, RecursiveSettings
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.unknowns import BASIS, BIAS, FRICTION_BACKWARD, FRICTION_FORWARD, VISCOUS, joint_unknowns
from retorque.adapt.recursive.unknowns_prior import GENTLE, prior_of
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import PRESETS, preset
from retorque.physics.parameters import Parameters
from retorque.robots.card import card_text
from retorque.robots.losses import Uncertainty
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def _identified(seed: int = 0, terms: str = "presliding", size: float = 1e-3) -> Robot:
    """A card as identification leaves it: other links, rotors and friction, with small errors."""
    rng = np.random.default_rng(seed)
    drawn = Parameters.sample(PANDA, profile_of(PANDA), 1, seed)[0]
    friction = preset(terms)
    p = Parameters.ideal(PANDA, friction=friction)
    coefficients = rng.uniform(0.1, 0.5, (7, friction.count))
    p = replace(p, inertial=drawn.inertial, armature=drawn.armature, friction_coefficients=coefficients)
    card = p.on_card(PANDA)
    assert card.friction is not None
    return replace(
        card,
        friction=replace(card.friction, deviation=np.full(coefficients.shape, size)),
        uncertainty=Uncertainty(inertial=np.full((7, 10), size), armature=np.full(7, size)),
    )


def _states(trials: int) -> tuple[State, np.ndarray]:
    rng = np.random.default_rng(4)
    q, qd, torque = PANDA.home + rng.normal(0.0, 0.3, (trials, 7)), *rng.normal(0.0, 1.0, (2, trials, 7))
    return State(0.0, q, qd, torque), 5.0 * torque


def test_it_is_the_oracle_with_the_cards_own_numbers(tmp_path: Path) -> None:
    card = _identified()
    (tmp_path / "card.toml").write_text(card_text(card), encoding="utf-8")
    truth = Parameters.of_robot(card, 3)
    state, nominal = _states(3)
    wanted = Oracle(PANDA, 3, truth=lambda: truth).correct(state, nominal)
    found = make("identified", PANDA, 3, settings={"card": str(tmp_path / "card.toml")}).correct(state, nominal)
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    one = make("identified", PANDA, settings={"card": str(tmp_path / "card.toml")})
    alone = one.correct(State(0.0, state.position[0], state.velocity[0], state.torque[0]), nominal[0])
    np.testing.assert_allclose(alone, wanted[0], atol=1e-9)


def test_a_card_of_its_own_needs_no_setting() -> None:
    card = _identified()
    state, nominal = _states(2)
    found = Identified(card, 2).correct(state, nominal)
    assert np.all(np.isfinite(found)) and not np.allclose(found, nominal)


def test_a_card_that_knows_nothing_or_another_robots_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="was not identified"):
        make("identified", PANDA, 1)
    (tmp_path / "z1.toml").write_text(card_text(Robot.load("z1")), encoding="utf-8")
    for name in ("identified", "recursive"):
        with pytest.raises(RetorqueError, match="other joints"):
            make(name, PANDA, 1, settings={"card": str(tmp_path / "z1.toml")})


@pytest.mark.parametrize("terms", [name for name in PRESETS if name != "none"])
def test_the_unknowns_nearest_to_friction_terms_have_their_torque(terms: str) -> None:
    p = Parameters.of_robot(_identified(terms=terms))
    unknowns = joint_unknowns(p)
    for sign, side, place in ((1.0, 0, FRICTION_FORWARD), (-1.0, 1, FRICTION_BACKWARD)):
        speed = np.array([0.1, 0.3, 0.8, 1.5])
        velocity = sign * np.tile(speed[:, None], (1, 7))
        own = unknowns[:, VISCOUS][:, side] * velocity - unknowns[:, BIAS][:, side]
        own = own + np.einsum("gk,jk->gj", np.tanh(sign * speed[:, None] * BASIS), unknowns[:, place])
        truth = p.friction.torque(velocity, p.friction_coefficients)
        assert np.abs(own - truth).max() < 0.1 * np.abs(truth).max()


def test_the_prior_is_the_cards_mean_and_no_surer_than_its_errors() -> None:
    profile = profile_of(PANDA)
    ranges = prior_of(PANDA, profile)
    sure, unsure = (prior_of(PANDA, profile, _identified(size=size)) for size in (1e-3, 1e-1))
    known = Parameters.of_robot(_identified())
    np.testing.assert_allclose(sure.inertial_mean, known.inertial, atol=1e-12)
    gentle = replace(known, friction=replace(known.friction, limit=max(known.friction.limit, GENTLE)))
    np.testing.assert_allclose(sure.joint_mean, joint_unknowns(gentle), atol=1e-12)

    def spread(root: np.ndarray) -> np.ndarray:
        return np.sqrt(np.sum(root**2, axis=-1))

    assert np.all(spread(unsure.inertial_root) >= 0.1) and np.all(spread(unsure.joint_root)[:, 0] >= 0.1)
    assert np.all(spread(sure.joint_root) < 0.5 * spread(ranges.joint_root) + 5e-3)


def test_recursive_takes_the_card_and_trusts_it_from_the_first_tick(tmp_path: Path) -> None:
    card = _identified()
    (tmp_path / "card.toml").write_text(card_text(card), encoding="utf-8")
    state, nominal = _states(3)
    truth = Parameters.of_robot(card, 3)
    wanted = Oracle(PANDA, 3, truth=lambda: truth).correct(state, nominal)
    found = make("recursive", PANDA, 3, settings={"card": str(tmp_path / "card.toml")}).correct(state, nominal)
    plain = make("recursive", PANDA, 3).correct(state, nominal)
    times = [Recursive(robot, 1).disturbance_time for robot in (PANDA, card)]
    assert times == [RecursiveSettings().disturbance_time, RecursiveSettings().card_disturbance_time]
    assert np.abs(found - wanted).max() < 0.1 * np.abs(plain - wanted).max()
    own = Recursive(card, 3)  # a robot that was identified brings its prior along
    assert own.card is card and np.array_equal(own.model.joint_mean, LinearModel(card, card).joint_mean)


def test_without_a_card_nothing_has_changed() -> None:
    ranges, model = prior_of(PANDA, profile_of(PANDA)), LinearModel(PANDA)
    np.testing.assert_array_equal(model.joint_mean, ranges.joint_mean)
    assert Recursive(PANDA, 1).card is None
