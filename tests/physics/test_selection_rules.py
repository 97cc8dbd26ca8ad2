"""Free parameters as a vector: only what was chosen moves, in the order named, and never by accident."""

from __future__ import annotations

import numpy as np
import pytest
from differences import slope
from dynamics_cases import hidden
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from retorque.physics.default_profile import profile_of
from retorque.physics.friction import PRESETS
from retorque.physics.inertia import from_vector, nearest_feasible, pseudo_inertia, robot_inertia
from retorque.physics.kinds import KINDS
from retorque.physics.log_cholesky import from_log_cholesky, log_cholesky, log_cholesky_jacobian
from retorque.physics.parameters import ARRAYS, Parameters
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.library import names
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("piper")
CHARTS = arrays(float, 10, elements=st.floats(-3.0, 3.0))


def base() -> Parameters:
    return hidden(ARM, PRESETS["full"]).with_payload(0.3, np.array([0.01, 0.02, 0.03]), 1e-3 * np.eye(3))


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_nothing_moves_but_what_was_chosen(kind: str) -> None:
    own = base()
    owners = KINDS[kind].owners(ARM)
    name = f"{kind} {owners[-1]}".strip()
    selection = Selection(ARM, [name], own)
    changed = selection.apply(selection.to_vector(own) + 0.05)
    field = KINDS[kind].field if KINDS[kind].owner != "payload" else "payload"
    for array in ARRAYS:
        same = np.array_equal(getattr(changed, array), getattr(own, array))
        assert same != (array == field), array
    if KINDS[kind].owner != "payload":  # and of the others not even that
        np.testing.assert_allclose(getattr(changed, field)[:-1], getattr(own, field)[:-1], atol=1e-12)


def test_the_vector_is_in_the_order_of_the_names() -> None:
    own = base()
    there, back = Selection(ARM, ["armature", "mass"], own), Selection(ARM, ["mass", "armature"], own)
    assert sorted(there.names) == sorted(back.names) and there.names != back.names
    order = [there.names.index(name) for name in back.names]
    np.testing.assert_array_equal(there.to_vector(own)[order], back.to_vector(own))
    assert [there.units[k] for k in order] == list(back.units)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_neither_base_nor_vector_is_written_to(kind: str) -> None:
    own = base()
    for name in ARRAYS:
        getattr(own, name).flags.writeable = False
    selection = Selection(ARM, [kind], own)
    vector = selection.to_vector(own) + 0.01
    vector.flags.writeable = False
    selection.apply(vector)
    np.testing.assert_allclose(selection.to_vector(selection.apply(vector)), vector, atol=1e-9)


@pytest.mark.parametrize("name", [x for x in names() if not Robot.load(x).floating])
def test_what_a_profile_draws_is_within_the_bounds_it_gives(name: str) -> None:
    robot = Robot.load(name)
    profile = profile_of(robot)
    drawn = Parameters.sample(robot, profile, 20, 1000)
    selection = Selection(robot, DRAWN, profile=profile)
    vector = selection.to_vector(drawn)
    assert np.all(vector >= selection.lower - 1e-9) and np.all(vector <= selection.upper + 1e-9)


def test_clipping_is_done_once_and_leaves_what_is_inside() -> None:
    profile = profile_of(ARM)
    selection = Selection(ARM, ["armature", "viscous", "mass"], profile=profile)
    wild = selection.apply(selection.to_vector(Parameters.ideal(ARM)) + np.linspace(-3.0, 3.0, selection.size))
    once = selection.clip(wild)
    np.testing.assert_allclose(selection.to_vector(selection.clip(once)), selection.to_vector(once), atol=1e-12)
    inside = selection.apply(0.5 * (selection.lower + selection.upper))
    np.testing.assert_allclose(selection.to_vector(selection.clip(inside)), selection.to_vector(inside), atol=1e-12)


@pytest.mark.parametrize("name", ["z1", "leap_hand", "toddlerbot"])
def test_all_inertial_kinds_of_any_robot_have_their_derivatives(name: str) -> None:
    robot = Robot.load(name)
    selection = Selection(robot, ["mass", "centre", "payload_mass", "payload_centre"])
    at = selection.to_vector(Parameters.ideal(robot).with_payload(0.4, np.array([0.02, 0.01, 0.05])))
    want = slope(lambda x: selection.apply(x).total_inertial(robot).ravel(), at)
    np.testing.assert_allclose(selection.inertial_jacobian(at), want, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(chart=CHARTS)
def test_any_ten_numbers_are_a_body_and_come_back(chart: np.ndarray) -> None:
    vector = from_log_cholesky(chart)
    mass, centre, inertia = from_vector(vector)
    assert mass == pytest.approx(np.exp(chart[0])) and np.allclose(centre, chart[1:4])
    principal = np.linalg.eigvalsh(inertia)
    assert principal[2] <= (principal[0] + principal[1]) * (1.0 + 1e-9) + 1e-9 * mass
    np.testing.assert_allclose(
        from_log_cholesky(log_cholesky(vector)), vector, rtol=1e-6, atol=1e-6 * np.max(np.abs(vector))
    )


@settings(max_examples=15, deadline=None)
@given(chart=arrays(float, (2, 10), elements=st.floats(-1.5, 1.5)))
def test_a_batch_of_charts_is_each_of_them(chart: np.ndarray) -> None:
    both = log_cholesky_jacobian(chart)
    for k in range(2):
        np.testing.assert_array_equal(log_cholesky_jacobian(chart[k]), both[k])
        np.testing.assert_allclose(both[k], slope(from_log_cholesky, chart[k], 1e-5), rtol=1e-4, atol=1e-6)


@settings(max_examples=40, deadline=None)
@given(noise=arrays(float, 10, elements=st.floats(-2.0, 2.0)), floor=st.sampled_from([1e-8, 1e-4, 1e-2]))
def test_the_nearest_body_exists_and_is_its_own_nearest(noise: np.ndarray, floor: float) -> None:
    """No other body's pseudo-inertia is closer: the projection onto a convex set."""
    vector = robot_inertia(ARM)[1] + noise
    near = nearest_feasible(vector, floor)
    matrix = pseudo_inertia(near)
    assert np.linalg.eigvalsh(matrix)[0] >= floor * (1.0 - 1e-6) - 1e-12
    np.testing.assert_allclose(nearest_feasible(near, floor - 1e-12), near, atol=1e-9)
    own = np.linalg.norm(matrix - pseudo_inertia(vector))
    rng = np.random.default_rng(0)
    for other in rng.standard_normal((5, 4, 4)):
        body = floor * np.eye(4) + other @ other.T
        assert own <= np.linalg.norm(body - pseudo_inertia(vector)) + 1e-9


@pytest.mark.parametrize(
    ("chosen", "what"),
    [
        (["masss"], "did you mean 'mass'"),
        (["mass link99"], "unknown link"),
        (["armature joint99"], "unknown joint"),
        (["mass", "mass"], "twice"),
        (["armature", f"armature {ARM.joint_names[0]}"], "twice"),
    ],
)
def test_what_cannot_be_chosen_is_said_in_a_sentence(chosen: list[str], what: str) -> None:
    with pytest.raises(RetorqueError, match=what):
        Selection(ARM, chosen)
