"""The Bayesian wrench solve: exact where it can be, honest where it cannot."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.sense.public_code import separate_solves
from retorque.sense.wrench_estimator import own_joints
from retorque.sense.wrench_solve import COHERENT, WrenchPrior, WrenchSolve
from retorque.work.errors import RetorqueError


def _arm() -> CompiledTree:
    robot = Robot.load("arx_x5")
    tree = CompiledTree(robot, (robot.end_effector,))
    tree.update(np.array([[0.1, 1.0, 1.2, -0.3, 0.1, 0.1]]))
    return tree


def test_a_pure_force_has_no_phantom_moment_and_separate_solves_see_one() -> None:
    tree = _arm()
    force = np.array([6.0, -5.0, 6.2])
    torque = tree.jacobian[:, 0, :3].transpose(0, 2, 1) @ force
    solve = WrenchSolve(tree.on_chain, WrenchPrior(force=20.0, moment=2.0))
    wrench = solve(tree.jacobian, torque, np.full(torque.shape, 1e-6))[0, 0]
    np.testing.assert_allclose(wrench[:3], force, atol=0.05)
    assert np.linalg.norm(wrench[3:]) < 0.05
    assert np.linalg.norm(separate_solves(tree.jacobian, torque, tree.on_chain)[0, 0, 3:]) > 0.5


def test_it_is_the_posterior_of_a_linear_gaussian_model() -> None:
    tree = _arm()
    rng = np.random.default_rng(3)
    prior = WrenchPrior(force=(3.0, 2.0, 1.0), moment=0.5)
    variance = rng.uniform(0.01, 0.1, (1, 6))
    torque = rng.standard_normal((1, 6))
    solve = WrenchSolve(tree.on_chain, prior)
    wrench = solve(tree.jacobian, torque, variance)[0, 0]
    p = np.diag([9.0, 4.0, 1.0, 0.25, 0.25, 0.25])
    h = tree.jacobian[0, 0].T
    gain = p @ h.T @ np.linalg.inv(h @ p @ h.T + np.diag(variance[0]))  # the covariance form, another way around
    np.testing.assert_allclose(wrench, gain @ torque[0], atol=1e-8)
    np.testing.assert_allclose(solve.covariance[0, 0], p - gain @ h @ p, atol=1e-8)


def test_chosen_axes_are_equation_10() -> None:
    tree = _arm()
    u = np.array([0.0, 0.6, 0.8])
    torque = np.array([[0.3, -0.5, 0.2, 0.1, 0.0, 0.05]])
    variance, size = 1e-2, 4.0
    solve = WrenchSolve(tree.on_chain, WrenchPrior(force=size, moment=0.0, axes=(tuple(u),)))
    wrench = solve(tree.jacobian, torque, np.full((1, 6), variance))[0, 0]
    row = u @ tree.jacobian[0, 0, :3]
    expected = (row @ torque[0]) / (row @ row + variance / size**2) * u
    np.testing.assert_allclose(wrench[:3], expected, atol=2e-3)
    assert np.abs(wrench[3:]).max() < 1e-3


def test_fingers_are_solved_from_their_own_chains_and_shared_chains_together() -> None:
    robot = Robot.load("leap_hand")
    names = ("index_tip", "thumb_tip")
    q = robot.home[None] + 0.4
    tree = CompiledTree(robot, tuple(robot.frame(name) for name in names))
    tree.update(q)
    forces = np.array([[0.5, -0.3, 1.0], [-0.8, 0.2, 0.4]])
    torque = np.einsum("sin,si->n", tree.jacobian[0, :, :3], forces)[None]
    solve = WrenchSolve(own_joints(tree), WrenchPrior(force=10.0, moment=0.0))
    found = solve(tree.jacobian, torque, np.full(torque.shape, 1e-8))[0, :, :3]
    np.testing.assert_allclose(found, forces, atol=0.02)
    humanoid = Robot.load("g1")  # both arms hang on the same waist
    both = CompiledTree(humanoid, (humanoid.frame("left_hand"), humanoid.frame("right_hand")))
    both.update(np.array(humanoid.home)[None])
    torque = np.einsum("sin,si->n", both.jacobian[0, :, :3], forces)[None]
    together = WrenchSolve(both.on_chain, WrenchPrior(force=10.0, moment=0.0))
    found = together(both.jacobian, torque, np.full(torque.shape, 1e-8))[0, :, :3]
    np.testing.assert_allclose(found, forces, atol=0.02)


def test_a_stretched_arm_says_what_it_does_not_feel() -> None:
    robot = Robot.load("leap_hand")
    tree = CompiledTree(robot, (robot.frame("index_tip"),))
    weakness = []
    for bend in (0.0, 0.7):
        q = np.zeros((1, robot.n))
        q[0, :4] = [bend, 0.0, bend, bend]
        tree.update(q)
        solve = WrenchSolve(own_joints(tree), WrenchPrior(force=2.0, moment=0.0))
        solve(tree.jacobian, np.zeros((1, robot.n)), np.full((1, robot.n), 0.02**2))
        weakness.append(float(solve.doubt[1, 0, 0]))
        values = np.linalg.eigvalsh(solve.covariance[0, 0, :3, :3]) / 4.0
        assert weakness[-1] == pytest.approx(values.max(), rel=0.02)
    assert weakness[0] > 2.0 * weakness[1]


def test_bad_priors_are_refused() -> None:
    with pytest.raises(RetorqueError, match="above 0 N"):
        WrenchPrior(force=-1.0).precision()
    with pytest.raises(RetorqueError, match="2 sites and 1 priors"):
        WrenchSolve(np.ones((2, 3), dtype=bool), [WrenchPrior()])


def test_what_torques_lag_behind_widens_the_ellipsoid_and_leaves_the_wrench() -> None:
    tree = _arm()
    rng = np.random.default_rng(4)
    variance, torque = rng.uniform(0.01, 0.1, (1, 6)), rng.standard_normal((1, 6))
    lag = rng.uniform(0.1, 1.0, (1, 6))
    plain, late = (WrenchSolve(tree.on_chain, WrenchPrior(force=5.0, moment=0.5)) for _ in range(2))
    np.testing.assert_array_equal(plain(tree.jacobian, torque, variance), late(tree.jacobian, torque, variance, lag))
    gain = np.array([_moved(plain, tree, torque, variance, j) for j in range(6)]).T  # (6, joints)
    expected = plain.covariance[0, 0] + gain @ np.diag(lag[0]) @ gain.T
    np.testing.assert_allclose(late.covariance[0, 0], expected, rtol=1e-6, atol=1e-9)


def test_what_joints_at_rest_hide_together_is_told_apart_and_leaves_the_wrench() -> None:
    tree = _arm()
    rng = np.random.default_rng(5)
    variance, torque = rng.uniform(0.01, 0.1, (1, 6)), rng.standard_normal((1, 6))
    hidden = variance * rng.uniform(0.1, 0.9, (1, 6))
    plain, still = (WrenchSolve(tree.on_chain, WrenchPrior(force=5.0, moment=0.5)) for _ in range(2))
    expected = plain(tree.jacobian, torque, variance)
    np.testing.assert_array_equal(expected, still(tree.jacobian, torque, variance, None, hidden))
    np.testing.assert_array_equal(plain.covariance, still.covariance)
    gain = np.array([_moved(plain, tree, torque, variance, j) for j in range(6)]).T
    more = (6 / COHERENT - 1.0) * gain @ np.diag(hidden[0]) @ gain.T
    np.testing.assert_allclose(still.beyond[0, 0], more, rtol=1e-6, atol=1e-9)
    assert not plain.beyond.any()


def test_an_ellipsoid_of_what_six_joints_hide_holds_their_box() -> None:
    """Pushes that no joint yields to lie within the 95 % ellipsoid of a solve that feels nothing."""
    tree = _arm()
    rng = np.random.default_rng(6)
    bound = rng.uniform(0.2, 1.0, 6)
    solve = WrenchSolve(tree.on_chain, WrenchPrior(force=1e3, moment=0.0))
    variance = bound[None] ** 2 / 3.0
    solve(tree.jacobian, np.zeros((1, 6)), variance, None, variance)
    held, jacobian = (solve.covariance + solve.beyond)[0, 0, :3, :3], tree.jacobian[0, 0, :3]
    narrow = solve.covariance[0, 0, :3, :3]
    push = rng.standard_normal((500, 3))
    push /= np.max(np.abs(push @ jacobian) / bound, axis=1)[:, None]  # one joint is about to yield
    inside, before = (np.einsum("ki,ij,kj->k", push, np.linalg.inv(c), push) < 7.815 for c in (held, narrow))
    assert inside.all() and not before.all()


def _moved(solve: WrenchSolve, tree: CompiledTree, torque: np.ndarray, variance: np.ndarray, j: int) -> np.ndarray:
    """By how much a wrench moves for 1 N·m more of a joint's torque."""
    more = torque.copy()
    more[0, j] += 1.0
    before = solve(tree.jacobian, torque, variance)[0, 0].copy()
    return solve(tree.jacobian, more, variance)[0, 0] - before
