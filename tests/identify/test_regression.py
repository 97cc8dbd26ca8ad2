"""The regression against dense algebra and Pinocchio: rows, factors, base parameters, priors, and the cone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.identify.methods.sdp import BoundedBody, nearest, project
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.choose import cross_validated
from retorque.identify.regression.factors import Factors, merge, triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import Posterior, base_deviation, compress, posterior
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction, preset
from retorque.physics.inertia import pseudo_inertia, robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]
ARMS = ("arx_x5", "iiwa14", "panda", "piper", "rizon4", "ur10e", "xmate3", "z1")


def random_motion(robot: Robot, samples: int, seed: int = 0) -> Motion:
    rng = np.random.default_rng(seed)
    q, qd, qdd, torque = rng.standard_normal((4, samples, robot.n))
    return Motion.of(robot.home + q, qd, qdd, 10.0 * torque, period=0.01)


@pytest.mark.parametrize("name", ARMS)
def test_the_rows_are_newton_and_euler_and_friction(name: str) -> None:
    robot, friction = Robot.load(name), Friction()
    layout, motion = Layout(robot, friction), random_motion(robot, 12)
    rng = np.random.default_rng(1)
    armature = rng.uniform(0.0, 0.3, robot.n)
    vector = layout.card.copy()
    split = 10 * layout.links
    vector[split : split + robot.n] = armature
    vector[split + robot.n :] = rng.uniform(0.1, 1.0, layout.size - split - robot.n)
    coefficients = layout.unpack(vector)[2]
    wanted = RigidBody(robot, robot_inertia(robot), armature).inverse_dynamics(motion.q, motion.qd, motion.qdd)
    wanted = wanted + friction.torque(motion.qd, coefficients)
    body = RigidBody(robot)
    np.testing.assert_allclose(layout.torque(body, vector, motion.q, motion.qd, motion.qdd), wanted, atol=1e-9)
    np.testing.assert_allclose(layout.matrix(body, motion) @ vector, wanted, atol=1e-9)


def test_names_and_units_belong_to_the_numbers() -> None:
    layout = Layout(Robot.load("z1"), Friction())
    assert len(layout.names) == len(layout.units) == layout.size == len(set(layout.names))
    assert {unit for name, unit in zip(layout.names, layout.units, strict=True) if name.startswith("m ")} <= {"kg"}
    with pytest.raises(RetorqueError, match="free base"):
        Layout(Robot.load("g1"), Friction())


@pytest.fixture(scope="module")
def z1(simulate: Simulate) -> Any:
    return simulate("z1", seconds=3.0, rate=60.0)


def factors_of(truth: Any, *parts: Motion) -> Factors:
    found = Factors(Layout(truth.robot, truth.friction))
    for part in parts or (truth.motion,):
        found.add(RigidBody(truth.robot), part)
    return found


def test_factors_hold_all_that_least_squares_needs(z1: Any) -> None:
    found, layout = factors_of(z1), Layout(z1.robot, z1.friction)
    rng = np.random.default_rng(0)
    vector = layout.card + 0.1 * rng.standard_normal(layout.size)
    matrix = layout.matrix(RigidBody(z1.robot), z1.motion)
    residual = z1.motion.torque - matrix @ vector
    np.testing.assert_allclose(found.squared_residual(vector), np.sum(residual**2, axis=0), rtol=1e-8)
    np.testing.assert_allclose(found.squared_residual(z1.vector), 0.0, atol=1e-12)
    weight = rng.uniform(0.5, 2.0, 6)
    dense = (np.sqrt(weight)[None, :, None] * matrix).reshape(-1, layout.size)
    stacked = found.stacked(weight)[:, :-1]
    np.testing.assert_allclose(stacked.T @ stacked, dense.T @ dense, rtol=1e-7, atol=1e-7)


def test_parts_of_a_log_are_the_whole_in_any_order(z1: Any) -> None:
    pieces = list(z1.motion.chunks(50))
    whole, merged = factors_of(z1), merge([factors_of(z1, piece) for piece in pieces[::-1]])
    assert merged.count == whole.count == len(z1.motion)
    for one, other in zip(whole.of_joint, merged.of_joint, strict=True):
        np.testing.assert_allclose(one.T @ one, other.T @ other, rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(merged.lowest, z1.motion.torque.min(axis=0))
    with pytest.raises(RetorqueError, match="no usable sample"):
        merge([Factors(whole.layout)])


def test_a_channel_that_never_moves_is_dead_and_the_others_are_not(z1: Any) -> None:
    torque = z1.motion.torque.copy()
    torque[:, 3] = 1.25
    assert factors_of(z1, Motion.of(z1.motion.q, z1.motion.qd, z1.motion.qdd, torque)).dead.tolist() == [
        joint == 3 for joint in range(6)
    ]
    assert not Factors(Layout(z1.robot, z1.friction)).dead.any()


def test_data_and_prior_make_the_ridge_solution(z1: Any) -> None:
    layout, weight = Layout(z1.robot, z1.friction), np.linspace(1.0, 4.0, 6)
    prior = card_prior(layout)
    found = posterior(factors_of(z1), weight, prior)
    matrix = layout.matrix(RigidBody(z1.robot), z1.motion)
    information = np.einsum("tjs,j,tjr->sr", matrix, weight, matrix) + prior.root.T @ prior.root
    right = np.einsum("tjs,j,tj->s", matrix, weight, z1.motion.torque) + prior.root.T @ prior.root @ prior.mean
    wanted = np.linalg.solve(information, right)
    seen = np.sqrt(np.diagonal(np.linalg.inv(information)))
    assert np.max(np.abs(found.mean - wanted) / seen) < 1e-4
    np.testing.assert_allclose(found.root.T @ found.root, information, rtol=1e-6, atol=1e-6)
    scaled = np.sqrt(np.diagonal(found.covariance)) / seen
    np.testing.assert_allclose(scaled, 1.0, rtol=1e-4)


def test_twice_the_data_halves_the_variance(z1: Any) -> None:
    base = base_parameters(Layout(z1.robot, z1.friction))
    once = base_deviation(factors_of(z1), np.ones(6), base)
    twice = base_deviation(factors_of(z1, z1.motion, z1.motion), np.ones(6), base)
    np.testing.assert_allclose(once / twice, np.sqrt(2.0), rtol=1e-6)


@pytest.mark.parametrize("name", ("panda", "z1", "ur10e", "arx_x5"))
def test_what_no_combination_holds_no_torque_shows(name: str) -> None:
    """Vectors with the same base parameters give the same torques, and one more direction would not."""
    robot = Robot.load(name)
    layout = Layout(robot, Friction())
    base, motion = base_parameters(layout), random_motion(robot, 60, seed=3)
    matrix = layout.matrix(RigidBody(robot), motion).reshape(-1, layout.size)
    rng = np.random.default_rng(0)
    vector = rng.standard_normal(layout.size)
    other = base.lift(base.combination @ vector, rng.standard_normal(layout.size))
    np.testing.assert_allclose(matrix @ other, matrix @ vector, atol=1e-6 * np.max(np.abs(matrix @ vector)))
    np.testing.assert_allclose(base.combination @ other, base.combination @ vector, atol=1e-7)
    size = np.linalg.norm(matrix, axis=0)
    felt = size > 1e-8 * size.max()
    assert np.linalg.matrix_rank(matrix[:, felt] / size[felt], tol=1e-8) == base.rank
    assert base.rank == base_parameters(layout, seed=5).rank == len(base.names)
    assert sorted([*base.independent, *base.dependent]) == list(range(layout.size))


@pytest.mark.parametrize("name", ARMS)
def test_a_cards_links_can_exist_and_its_prior_costs_nothing_at_the_card(name: str) -> None:
    layout = Layout(Robot.load(name), Friction())
    assert np.all(np.linalg.eigvalsh(reference_pseudo_inertia(layout.robot)) > 0.0)
    loose, tight = card_prior(layout), card_prior(layout, relative=0.5)
    np.testing.assert_array_equal(loose.mean, layout.card)
    inertial = slice(0, 10 * layout.links)
    np.testing.assert_allclose(loose.deviation[inertial], 2.0 * tight.deviation[inertial], rtol=1e-9)
    masses = loose.deviation[inertial][::10]
    card = np.maximum(robot_inertia(layout.robot)[:, 0], 1e-3)
    assert np.all((masses > 0.5 * card) & (masses < 3.0 * card))  # a link's mass may be wrong by its own size


def belief(seed: int, size: int = 12) -> Posterior:
    """Ten inertial numbers of one body and two that may not be negative, believed at a point that cannot be."""
    rng = np.random.default_rng(seed)
    mean = np.concatenate([[1.0], 0.5 * rng.standard_normal(3), 0.1 * rng.standard_normal(6), rng.standard_normal(2)])
    return Posterior(mean=mean, root=triangle(rng.standard_normal((3 * size, size)) + 3.0 * np.eye(3 * size, size)))


BODY = BoundedBody(start=0, reference=np.diag([0.05, 0.05, 0.05, 1.0]), margin=1e-3)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 9999))
def test_the_nearest_possible_point_is_possible_and_none_is_nearer(seed: int) -> None:
    pytest.importorskip("clarabel")
    given_belief = belief(seed)
    bounded = np.array([10, 11])
    found, status = nearest(given_belief, bounded, [BODY])

    def possible(x: np.ndarray, slack: float = 0.0) -> bool:
        whitener = np.linalg.inv(np.linalg.cholesky(BODY.reference))
        inside = np.linalg.eigvalsh(whitener @ pseudo_inertia(x[:10]) @ whitener.T)[0] >= BODY.margin - slack
        return bool(inside and np.all(x[bounded] >= -slack))

    def cost(x: np.ndarray) -> float:
        return float(np.sum((given_belief.root @ (x - given_belief.mean)) ** 2))

    assert "olved" in status and possible(found, 1e-6)
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(25):
            other = found + scale * rng.standard_normal(12)
            assert not possible(other) or cost(other) >= cost(found) - 1e-5 * (1.0 + cost(found))


def test_what_is_possible_already_stays_where_it_is(z1: Any) -> None:
    pytest.importorskip("clarabel")
    layout = Layout(z1.robot, z1.friction)
    given_belief = posterior(factors_of(z1), np.full(6, 1e4), card_prior(layout))
    inside = Posterior(mean=z1.vector, root=given_belief.root)
    found, _ = project(inside, layout)
    spread = np.sqrt(np.diagonal(given_belief.covariance))
    assert np.max(np.abs(found - z1.vector) / spread) < 1e-3


def test_the_friction_that_was_there_predicts_best(simulate: Simulate) -> None:
    truth = simulate("z1", preset("coulomb-viscous"), seconds=6.0, rate=60.0)
    torque = truth.motion.torque + 0.01 * np.random.default_rng(0).standard_normal(truth.motion.torque.shape)
    motion = Motion(q=truth.motion.q, qd=truth.motion.qd, qdd=truth.motion.qdd, torque=torque, time=truth.motion.time)
    pieces = list(motion.chunks(120))
    errors = {name: np.mean(cross_validated(pieces, truth.robot, preset(name))) for name in ("none", "coulomb-viscous")}
    assert errors["coulomb-viscous"] < 0.02 and errors["none"] > 5.0 * errors["coulomb-viscous"]


def test_too_little_is_refused(z1: Any) -> None:
    with pytest.raises(RetorqueError, match="longer motion"):
        compress(z1.motion[:8], Layout(z1.robot, z1.friction))
    with pytest.raises(RetorqueError, match="the log has 6 joints and robot 'panda' has 7"):
        compress(z1.motion, Layout(Robot.load("panda"), z1.friction))
