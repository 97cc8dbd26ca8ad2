"""The laws of mechanics, on every robot on board: energy, passivity, symmetry, and masses added up link by link."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from differences import slope
from scipy.spatial.transform import Rotation

from retorque.physics.inertia import from_vector, moved, robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import names
from retorque.robots.robot import Frame, Robot

FIXED = tuple(name for name in names() if not Robot.load(name).floating)


def state(body: RigidBody, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Somewhere within the limits, moving."""
    robot, rng = body.robot, np.random.default_rng(seed)
    low, high = np.maximum(robot.lower, -2.0), np.minimum(robot.upper, 2.0)
    q = rng.uniform(low, high)
    if robot.floating:
        quaternion = rng.standard_normal(4)
        q = np.concatenate([rng.uniform(-1.0, 1.0, 3), quaternion / np.linalg.norm(quaternion), q])
    return q, rng.normal(0.0, 1.0, body.nv)


def link_velocity(body: RigidBody, k: int, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity of a moving link's centre of mass, its spin, and its rotation, in world axes."""
    link = body.robot.moving_links[k]
    frame = Frame(link=link.name, position=link.centre)
    twist = body.jacobian(frame, q) @ v
    return twist[:3], twist[3:], body.frame_pose(frame, q)[1]


@pytest.mark.parametrize("name", names())
def test_kinetic_energy_is_that_of_the_links_and_rotors(name: str) -> None:
    body = RigidBody(Robot.load(name))
    q, v = state(body)
    mass, _, inertia = from_vector(body.inertial)
    rotors = np.concatenate([np.zeros(body.nv - body.robot.n), body.robot.armature])
    total = 0.5 * np.sum(rotors * v**2)
    for k in range(body.links):
        linear, spin, rotation = link_velocity(body, k, q, v)
        own = rotation.T @ spin
        total += 0.5 * mass[k] * linear @ linear + 0.5 * own @ inertia[k] @ own
    np.testing.assert_allclose(0.5 * v @ body.mass_matrix(q) @ v, total, rtol=1e-9)


@pytest.mark.parametrize("name", names())
def test_mass_matrices_are_symmetric_and_positive(name: str) -> None:
    body = RigidBody(Robot.load(name))
    matrix = body.mass_matrix(np.stack([state(body, seed)[0] for seed in range(3)]))
    np.testing.assert_array_equal(matrix, np.swapaxes(matrix, -1, -2))
    assert np.all(np.linalg.eigvalsh(matrix) > 0.0)


@pytest.mark.parametrize("name", FIXED)
def test_gravity_torque_is_the_slope_of_potential_energy(name: str) -> None:
    body = RigidBody(Robot.load(name))
    q, _ = state(body)
    links, down = body.robot.moving_links, np.array(body.robot.gravity)

    def potential(at: np.ndarray) -> np.ndarray:
        height = [body.frame_pose(Frame(link=x.name, position=x.centre), at)[0] @ -down for x in links]
        return np.array(sum(x.mass * h for x, h in zip(links, height, strict=True)))

    gravity = body.gravity(q)
    np.testing.assert_allclose(gravity, slope(potential, q), atol=1e-6 * max(1.0, float(np.max(np.abs(gravity)))))


@pytest.mark.parametrize("name", FIXED)
def test_coriolis_forces_do_no_work_beyond_the_change_of_the_mass_matrix(name: str) -> None:
    """v'(dM/dt v - 2 C v) = 0: what passivity proofs of controllers rest on."""
    body = RigidBody(Robot.load(name))
    q, v = state(body)
    step = 1e-6
    rate = (body.mass_matrix(q + step * v) - body.mass_matrix(q - step * v)) / (2.0 * step)
    coriolis = body.bias(q, v) - body.gravity(q)
    assert abs(v @ rate @ v - 2.0 * v @ coriolis) < 1e-6 * max(1.0, abs(float(v @ rate @ v)))


@pytest.mark.parametrize("name", names())
def test_coriolis_forces_grow_with_the_square_of_speed(name: str) -> None:
    body = RigidBody(Robot.load(name))
    q, v = state(body)
    still, once, thrice = body.gravity(q), body.bias(q, v), body.bias(q, 3.0 * v)
    np.testing.assert_allclose(thrice - still, 9.0 * (once - still), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(body.bias(q, -v), once, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["panda", "toddlerbot"])
def test_any_batch_is_each_of_its_states_and_none_is_none(name: str) -> None:
    body = RigidBody(Robot.load(name))
    rows = [state(body, seed) for seed in range(4)]
    q, v = (np.array([row[k] for row in rows]).reshape(2, 2, -1) for k in (0, 1))
    for method in (body.inverse_dynamics, body.forward_dynamics, body.regressor):
        whole = method(q, v, v)
        np.testing.assert_array_equal(whole[1, 0], method(q[1, 0], v[1, 0], v[1, 0]))
        np.testing.assert_array_equal(method(q[:1, 0], v[:1, 0], v[:1, 0])[0], whole[0, 0])
        assert method(q[:0, 0], v[:0, 0], v[:0, 0]).shape == (0, *whole.shape[2:])
    np.testing.assert_array_equal(body.bias(q[0, 0], v)[1, 1], body.bias(q[0, 0], v[1, 1]))


def test_a_frame_asked_for_later_moves_no_earlier_one() -> None:
    robot = Robot.load("panda")
    body = RigidBody(robot)
    before = body.jacobian(robot.end_effector, robot.home)
    kept = before.copy()
    far = Frame(link=robot.end_effector.link, position=(0.0, 0.0, 0.3))
    lever = body.frame_pose(far, robot.home)[0] - body.frame_pose(robot.end_effector, robot.home)[0]
    there = body.jacobian(far, robot.home)
    np.testing.assert_array_equal(before, kept)
    np.testing.assert_allclose(there[3:], before[3:], atol=1e-14)
    np.testing.assert_allclose(there[:3], before[:3] + np.cross(before[3:].T, lever).T, atol=1e-12)


def test_a_body_turned_and_carried_elsewhere_and_back_is_the_same() -> None:
    vector = robot_inertia(Robot.load("panda"))
    rotation, origin = Rotation.random(rng=0).as_matrix(), np.array([0.3, -0.2, 0.5])
    there = moved(vector, rotation, origin)
    np.testing.assert_allclose(moved(there, rotation.T, -rotation.T @ origin), vector, atol=1e-12)
    for (mass, centre, inertia), (m, c, i) in zip(
        zip(*from_vector(vector), strict=True), zip(*from_vector(there), strict=True), strict=True
    ):
        assert np.isclose(m, mass)
        np.testing.assert_allclose(c, rotation @ centre + origin, atol=1e-12)
        np.testing.assert_allclose(np.linalg.eigvalsh(i), np.linalg.eigvalsh(inertia), atol=1e-10)
        seen = pin.SE3(rotation, origin).act(pin.Inertia(mass, centre, inertia))
        np.testing.assert_allclose(seen.inertia, i, atol=1e-10)
