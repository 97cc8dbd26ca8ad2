"""Names to vectors and back: charts, bounds, derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.friction import preset
from retorque.physics.inertia import from_vector, pseudo_inertia, robot_inertia
from retorque.physics.kinds import KINDS
from retorque.physics.log_cholesky import from_log_cholesky, log_cholesky, log_cholesky_jacobian
from retorque.physics.parameters import Parameters
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
INERTIAS = ("mass", "centre", "inertia", "payload_mass", "payload_centre")


def _base(trials: int | tuple[int, ...] = ()) -> Parameters:
    p = Parameters.ideal(PANDA, trials, friction=preset("presliding"))
    return p.with_payload(0.7, np.array([0.01, 0.02, 0.05]), np.diag([0.002, 0.003, 0.004]))


def test_log_cholesky_round_trips_and_any_ten_numbers_are_a_body() -> None:
    vector = robot_inertia(PANDA)
    np.testing.assert_allclose(from_log_cholesky(log_cholesky(vector)), vector, atol=1e-12)
    chart = np.random.default_rng(0).normal(0.0, 1.0, (200, 10))
    bodies = from_log_cholesky(chart)
    assert np.linalg.eigvalsh(pseudo_inertia(bodies))[:, 0].min() > 0.0
    np.testing.assert_allclose(log_cholesky(bodies), chart, atol=1e-6)


def test_log_cholesky_says_mass_and_centre_themselves() -> None:
    vector = robot_inertia(PANDA)
    mass, centre, _ = from_vector(vector)
    chart = log_cholesky(vector)
    np.testing.assert_allclose(np.exp(chart[:, 0]), mass)
    np.testing.assert_allclose(chart[:, 1:4], centre, atol=1e-14)


def test_log_cholesky_jacobian_matches_finite_differences() -> None:
    chart = np.random.default_rng(1).normal(0.0, 0.5, (5, 10))
    found = log_cholesky_jacobian(chart)
    step = 1e-6
    for k in range(10):
        move = step * np.eye(10)[k]
        slope = (from_log_cholesky(chart + move) - from_log_cholesky(chart - move)) / (2.0 * step)
        np.testing.assert_allclose(found[..., k], slope, atol=1e-7)


@pytest.mark.parametrize("vector", (np.zeros(10), np.eye(10)[0]))
def test_what_has_no_chart_is_refused_with_a_sentence(vector: np.ndarray) -> None:
    with pytest.raises(RetorqueError, match="log-Cholesky chart"):
        log_cholesky(vector)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lead", ((), (3,), (2, 3)))
def test_every_kind_writes_what_it_reads(kind: str, lead: tuple[int, ...]) -> None:
    chosen = Selection(PANDA, (kind,), _base())
    rng = np.random.default_rng(2)
    vector = np.broadcast_to(chosen.to_vector(chosen.base), (*lead, chosen.size)) + rng.uniform(
        0.01, 0.1, (*lead, chosen.size)
    )
    written = chosen.apply(vector)
    assert written.trials == lead
    np.testing.assert_allclose(chosen.to_vector(written), vector, atol=1e-9)
    assert len(chosen.names) == len(chosen.units) == chosen.size == len(set(chosen.names))
    one = Selection(PANDA, (f"{kind} {KINDS[kind].owners(PANDA)[-1]}".strip(),), _base())
    width = one.size
    alone = one.apply(vector[..., -width:])
    np.testing.assert_allclose(one.to_vector(alone), vector[..., -width:], atol=1e-9)
    if KINDS[kind].owner != "payload":  # the other owners stay
        rest = chosen.to_vector(alone)[..., :-width]
        np.testing.assert_allclose(
            rest, np.broadcast_to(chosen.to_vector(chosen.base)[:-width], rest.shape), atol=1e-12
        )


def test_the_inertial_jacobian_matches_finite_differences() -> None:
    chosen = Selection(PANDA, (*INERTIAS, "armature"), _base())
    vector = chosen.to_vector(chosen.base) + np.random.default_rng(3).uniform(-0.05, 0.05, (2, chosen.size))
    found = chosen.inertial_jacobian(vector)
    assert found.shape == (2, 70, chosen.size)
    step = 1e-6
    for k in range(chosen.size):
        move = step * np.eye(chosen.size)[k]
        ahead, behind = (chosen.apply(vector + sign * move).total_inertial(PANDA) for sign in (1.0, -1.0))
        slope = ((ahead - behind) / (2.0 * step)).reshape(2, 70)
        np.testing.assert_allclose(found[..., k], slope, atol=1e-7, err_msg=chosen.names[k])


@pytest.mark.parametrize("kinds", (("mass_scale",), ("inertial",)))
def test_linear_charts_have_their_jacobians_too(kinds: tuple[str, ...]) -> None:
    chosen = Selection(PANDA, kinds, _base())
    vector = chosen.to_vector(chosen.base)
    found = chosen.inertial_jacobian(vector)
    for k in range(chosen.size):
        move = 1e-4 * np.eye(chosen.size)[k]
        slope = (chosen.apply(vector + move).total_inertial(PANDA) - chosen.apply(vector).total_inertial(PANDA)) / 1e-4
        np.testing.assert_allclose(found[:, k], slope.ravel(), atol=1e-8)


def test_links_of_a_chart_can_always_exist() -> None:
    chosen = Selection(PANDA, ("mass", "centre", "inertia"))
    vector = chosen.to_vector(chosen.base) + np.random.default_rng(4).normal(0.0, 1.0, (50, chosen.size))
    links = chosen.apply(vector).inertial
    assert np.linalg.eigvalsh(pseudo_inertia(links))[..., 0].min() > 0.0


def test_bounds_hold_and_clip() -> None:
    profile = profile_of(PANDA)
    chosen = Selection(PANDA, DRAWN, profile=profile)
    assert np.all(chosen.lower < chosen.upper)
    wild = chosen.apply(2.0 * chosen.upper - chosen.lower)
    inside = chosen.to_vector(chosen.clip(wild))
    assert np.all(inside <= chosen.upper + 1e-9) and np.all(inside >= chosen.lower - 1e-9)
    free = Selection(PANDA, ("mass", "inertia", "damping", "friction", "stiffness"), _base())
    low = dict(zip(free.names, free.lower, strict=True))
    assert low[f"damping {PANDA.joint_names[0]}"] == 0.0
    assert all(np.isinf(value) for name, value in low.items() if "spread" in name or "mass" in name or "offset" in name)


def test_single_precision_stays_single_without_copies() -> None:
    chosen = Selection(PANDA, ("viscous", "armature"))
    particles = np.random.default_rng(5).random((chosen.size, 64), dtype=np.float32)
    p = chosen.apply(particles.T)
    assert p.viscous.dtype == np.float32 and np.shares_memory(p.viscous, particles)
    np.testing.assert_array_equal(np.moveaxis(p.viscous, 0, -1).reshape(-1, 64), particles[: 2 * PANDA.n])


def test_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(RetorqueError, match="unknown kind of parameter 'viscos'; did you mean 'viscous'"):
        Selection(PANDA, ("viscos",))
    with pytest.raises(RetorqueError, match="unknown link 'elbow'"):
        Selection(PANDA, ("mass elbow",))
    with pytest.raises(RetorqueError, match="twice"):
        Selection(PANDA, ("armature", f"armature {PANDA.joint_names[0]}"))


def test_stiffness_and_rest_position_are_selected_like_the_rest() -> None:
    chosen = Selection(PANDA, ("stiffness", "rest_position"))
    p = chosen.apply(np.concatenate([np.full(7, 3.0), 0.1 * np.arange(7)]))
    np.testing.assert_array_equal(p.stiffness, np.full(7, 3.0))
    np.testing.assert_array_equal(p.rest_position, 0.1 * np.arange(7))
    assert replace(p, stiffness=np.zeros(7)).stiffness.sum() == 0.0
