"""Discrete dynamics by every backend: the equations of motion, conservation, symmetry, and one row as many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from dynamics_cases import far, hidden, knots

from retorque.physics.backends.joint_losses import all_losses
from retorque.physics.dynamics import BACKENDS, Dynamics, make_dynamics
from retorque.physics.friction import PRESETS
from retorque.physics.inertia import with_inertias
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import Selection
from retorque.robots.library import names
from retorque.robots.robot import Robot

FREE = tuple(name for name in names() if Robot.load(name).floating)
H = 0.002


def acceleration(d: Dynamics, x: np.ndarray, u: np.ndarray) -> np.ndarray:
    """(knots, nv) of states (knots, states)."""
    return d.accelerations(x[:, : d.nq].copy(), x[:, d.nq :].copy(), u, None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["rby1", "leap_hand", "toddlerbot"])
def test_accelerations_solve_the_equations_of_motion(name: str, backend: str) -> None:
    robot = Robot.load(name)
    base = hidden(robot, PRESETS["asymmetric"])
    d = make_dynamics(robot, H, backend=backend, parameters=base)
    x, u = knots(d, 3)
    a = acceleration(d, x, u)
    body = RigidBody(robot, base.total_inertial(robot), base.armature)
    q, v = x[:, : d.nq], x[:, d.nq :]
    lost, _, implicit, _ = all_losses(q[:, d.nq - robot.n :], v[:, d.passed :], base)
    left = body.inverse_dynamics(q, v, a)
    left[:, d.passed :] += lost + H * implicit * a[:, d.passed :]
    left[:, d.actuated] -= u
    assert np.max(np.abs(left)) < 1e-7 * max(1.0, float(np.max(np.abs(a))))


@pytest.mark.parametrize("name", FREE)
def test_joint_torques_cannot_push_a_free_robot(name: str) -> None:
    """Momentum changes by weight alone, whatever the joints do."""
    robot = Robot.load(name)
    d = make_dynamics(robot, H, backend="tree", parameters=hidden(robot))
    x, u = knots(d, 2)
    a = acceleration(d, x, 10.0 * u)
    armature = np.zeros(d.nv)
    d.body.model.armature = armature  # rotors carry no momentum of their own here
    mass = sum(link.mass for link in robot.moving_links)
    for k in range(2):
        pin.computeCentroidalMomentumTimeVariation(d.body.model, d.body.data, x[k, : d.nq], x[k, d.nq :], a[k])
        np.testing.assert_allclose(d.body.data.dhg.linear, mass * np.array(robot.gravity), atol=1e-7 * mass)
        np.testing.assert_allclose(d.body.data.dhg.angular, 0.0, atol=1e-6 * mass)


@pytest.mark.parametrize("name", FREE[:2])
def test_a_turn_about_the_vertical_changes_nothing_that_a_robot_feels(name: str) -> None:
    robot = Robot.load(name)
    d = make_dynamics(robot, H, backend="tree", parameters=hidden(robot))
    x, u = knots(d, 1)
    turned = x.copy()
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, 1.1))
    turned[0, :3] = turn.matrix() @ x[0, :3] + np.array([3.0, -2.0, 0.7])
    turned[0, 3:7] = (turn * pin.Quaternion(x[0, 3:7])).coeffs()
    np.testing.assert_allclose(acceleration(d, turned, u), acceleration(d, x, u), atol=1e-8)


def test_a_robot_without_losses_keeps_its_energy(tangled: Robot) -> None:
    """What a step adds vanishes with the step, and friction only takes."""
    q, v = np.array([0.1, 0.4, -0.3]), np.array([0.3, -1.0, 2.0])

    def drift(steps: int, p: Parameters) -> float:
        d = make_dynamics(tangled, 0.2 / steps, backend="tree", parameters=p)
        path = d.rollout(np.concatenate([q, v]), np.zeros((steps, d.inputs)))
        model, data = d.body.model, d.body.data
        energy = [pin.computeMechanicalEnergy(model, data, row[:3], row[3:]) for row in (path[0], path[-1])]
        return energy[1] - energy[0]

    ideal = Parameters.ideal(tangled)
    coarse, fine = drift(100, ideal), drift(200, ideal)
    assert abs(coarse) < 0.1 and abs(fine) < 0.6 * abs(coarse)
    damped = replace(ideal, viscous=np.full((3, 2), 0.5))
    assert drift(200, damped) < -0.05


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("count", [1, 7, 8, 17])
def test_many_rows_are_each_row_alone(tangled: Robot, backend: str, count: int) -> None:
    d = make_dynamics(tangled, H, backend=backend, parameters=hidden(tangled, PRESETS["stribeck"]))
    x, u = knots(d, count)
    whole = d.step(x, u)
    np.testing.assert_allclose(whole, [d.step(x[k], u[k]) for k in range(count)], atol=1e-12)
    np.testing.assert_array_equal(d.step(x[:, None, None], u[:, None, None])[:, 0, 0], whole)
    np.testing.assert_allclose(d.step(x, u[0]), d.step(x, np.tile(u[0], (count, 1))), atol=1e-13)


@pytest.mark.parametrize("backend", ["tree", "pinocchio"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_row_that_is_not_finite_harms_no_other(tangled: Robot, backend: str, bad: float) -> None:
    d = make_dynamics(tangled, H, backend=backend, parameters=hidden(tangled))
    x, u = knots(d, 9)
    whole = d.step(x, u)
    x[3, 1] = bad
    with np.errstate(invalid="ignore"):
        after = d.step(x, u)
    np.testing.assert_array_equal(np.delete(after, 3, axis=0), np.delete(whole, 3, axis=0))
    assert not np.all(np.isfinite(after[3]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_nobodys_arrays_are_written_to(tangled: Robot, backend: str) -> None:
    base = hidden(tangled)
    selection = Selection(tangled, ["mass", "damping"], base)
    d = make_dynamics(tangled, H, backend=backend, selection=selection)
    x, u = knots(d, 3)
    p = selection.to_vector(base)
    for array in (x, u, p):
        array.flags.writeable = False
    kept = d.step(x, u, p)
    held = kept.copy()
    d.linearise(x, u, p)
    d.step(2.0 * x, u, p)
    np.testing.assert_array_equal(kept, held)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_vector_is_the_vector_that_the_selection_starts_from(tangled: Robot, backend: str) -> None:
    base = hidden(tangled)
    selection = Selection(tangled, ["mass", "centre", "viscous"], base)
    d = make_dynamics(tangled, H, backend=backend, selection=selection)
    x, u = knots(d, 2)
    at = selection.to_vector(base)
    d.step(x, u, at + 0.3)  # and what was asked for in between is forgotten
    assert far(d.step(x, u), d.step(x, u, at)) < 1e-13
    for ours, theirs in zip(d.linearise(x, u), d.linearise(x, u, at), strict=True):
        assert far(ours, theirs) < 1e-7


def test_fingers_feel_each_other_through_no_palm_that_is_fixed() -> None:
    robot = Robot.load("leap_hand")
    d = make_dynamics(robot, H, backend="tree", parameters=hidden(robot))
    x, u = knots(d, 1)
    by_torque = d.linearise(x, u)[1][0, d.nv :]
    parents = {link.name: link.parent for link in robot.links}

    def finger(name: str) -> str:
        while parents[name] != "world" and robot.link(parents[name]).joint is not None:
            name = parents[name]
        return name

    fingers = np.array([finger(link.name) for link in robot.moving_links])
    apart = fingers[:, None] != fingers[None, :]
    assert len(set(fingers)) == 4
    np.testing.assert_array_equal(by_torque[apart], 0.0)
    assert np.all(np.diagonal(by_torque) > 0.0)


def test_the_response_to_torque_is_symmetric_as_a_mass_matrix_is(tangled: Robot) -> None:
    d = make_dynamics(tangled, H, backend="tree", parameters=hidden(tangled))
    x, u = knots(d, 4)
    by_torque = d.linearise(x, u)[1][:, d.nv :][:, d.actuated]
    np.testing.assert_allclose(by_torque, np.swapaxes(by_torque, 1, 2), atol=1e-15)
    assert np.all(np.linalg.eigvalsh(by_torque) > 0.0)


@pytest.mark.parametrize("name", ["tangled", "toddlerbot"])
def test_small_changes_of_state_go_there_and_back(name: str, tangled: Robot) -> None:
    d = make_dynamics(tangled if name == "tangled" else Robot.load(name), H, backend="pinocchio")
    x, _ = knots(d, 5)
    dx = 0.3 * np.random.default_rng(4).standard_normal((5, 2 * d.nv))
    np.testing.assert_allclose(d.difference(x, d.add(x, dx)), dx, atol=1e-10)
    np.testing.assert_allclose(d.difference(x[:1], x)[0], 0.0, atol=1e-12)
    assert d.add(x[0], dx).shape == x.shape


def test_a_rollout_is_its_steps_and_a_linearisation_predicts_it(tangled: Robot) -> None:
    d = make_dynamics(tangled, H, backend="tree", parameters=hidden(tangled))
    _, u = knots(d, 20)
    start = np.array([0.1, 0.4, -0.3, 0.3, -1.0, 2.0])
    path = d.rollout(start, u)
    np.testing.assert_array_equal(path[0], start)
    np.testing.assert_allclose(path[1:], d.step(path[:-1], u), atol=1e-12)
    by_x, by_u, _ = d.linearise(path, u)
    dx, du = 1e-4 * np.ones(6), 1e-3 * np.ones_like(u)
    other = d.rollout(start + dx, u + du)
    for k in range(20):
        dx = by_x[k] @ dx + by_u[k] @ du[k]
    np.testing.assert_allclose(other[-1] - path[-1], dx, atol=2e-2 * np.max(np.abs(dx)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_payload_is_felt_as_a_heavier_link(backend: str) -> None:
    robot = Robot.load("z1")
    loaded = Parameters.ideal(robot).with_payload(1.2, np.array([0.02, -0.01, 0.06]), 2e-3 * np.eye(3))
    heavier = with_inertias(robot, loaded.total_inertial(robot), robot.armature)
    d = make_dynamics(robot, H, backend=backend, parameters=loaded)
    same = make_dynamics(heavier, H, backend=backend, parameters=Parameters.ideal(heavier))
    x, u = knots(d, 4)
    assert far(d.step(x, u), same.step(x, u)) < 1e-9
