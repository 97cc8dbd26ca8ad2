"""The algebra against finite differences and against MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from retorque.physics.inertia import from_vector, robot_inertia, to_vector
from retorque.physics.rigid_body import RigidBody
from retorque.robots.formats.mjcf import to_mjmodel
from retorque.robots.robot import Robot

FIXED = ("panda", "z1", "rby1", "ur10e", "leap_hand")


def _states(robot: Robot, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.lower, -np.pi), np.minimum(robot.upper, np.pi)
    shape = (count, robot.n)
    return rng.uniform(low, high, shape), rng.normal(0.0, 1.0, shape), rng.normal(0.0, 5.0, shape)


@pytest.mark.parametrize("name", FIXED)
def test_jacobian_is_the_derivative_of_the_pose(name: str) -> None:
    robot = Robot.load(name)
    body, step = RigidBody(robot), 1e-6
    for q in _states(robot, 5)[0]:
        jacobian = body.jacobian(robot.end_effector, q)
        for joint in range(robot.n):
            move = step * np.eye(robot.n)[joint]
            (ahead, turned), (behind, before) = (body.frame_pose(robot.end_effector, q + s * move) for s in (1, -1))
            spin = Rotation.from_matrix(turned @ before.T).as_rotvec() / (2 * step)
            found = np.concatenate([(ahead - behind) / (2 * step), spin])
            np.testing.assert_allclose(jacobian[:, joint], found, atol=1e-7)


@pytest.mark.parametrize("name", FIXED)
def test_regressor_times_any_inertias_is_the_inverse_dynamics(name: str) -> None:
    robot = Robot.load(name)
    rng = np.random.default_rng(1)
    mass, centre, inertia = from_vector(robot_inertia(robot))
    scale, shift = rng.uniform(0.8, 1.2, len(mass)), rng.normal(0.0, 0.01, centre.shape)
    inertial = to_vector(scale * mass, centre + shift, inertia * rng.uniform(0.8, 1.2, (len(mass), 1, 1)))
    armature = rng.uniform(0.0, 0.2, robot.n)
    other = RigidBody(robot, inertial, armature)
    q, qd, qdd = _states(robot, 20)
    expected = other.inverse_dynamics(q, qd, qdd)
    found = RigidBody(robot).regressor(q, qd, qdd) @ inertial.ravel() + armature * qdd
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_regressor_is_the_derivative_of_the_torque_by_each_inertial_parameter() -> None:
    robot = Robot.load("z1")
    base, step = robot_inertia(robot), 1e-4
    q, qd, qdd = (x[0] for x in _states(robot, 1))
    regressor = RigidBody(robot).regressor(q, qd, qdd)
    for column in range(base.size):
        move = np.zeros(base.size)
        move[column] = step
        ahead, behind = (
            RigidBody(robot, base + s * move.reshape(base.shape)).inverse_dynamics(q, qd, qdd) for s in (1, -1)
        )
        np.testing.assert_allclose(regressor[:, column], (ahead - behind) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("name", (*FIXED, "iiwa14", "piper", "rizon4", "google_robot"))
def test_agrees_with_mujoco(name: str) -> None:
    robot = Robot.load(name)
    model = to_mjmodel(robot)
    data, body = mujoco.MjData(model), RigidBody(robot)
    q, qd, torque = _states(robot, 20, seed=2)
    for a, b, c in zip(q, qd, torque, strict=True):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = a, b, c
        mujoco.mj_forward(model, data)
        full = np.zeros((robot.n, robot.n))
        mujoco.mj_fullM(model, data, full)
        np.testing.assert_allclose(body.mass_matrix(a), full, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(body.bias(a, b), data.qfrc_bias, rtol=1e-6, atol=1e-8)
        # Limits and contact act in MuJoCo only: the smooth acceleration leaves them out.
        np.testing.assert_allclose(body.forward_dynamics(a, b, c), data.qacc_smooth, rtol=1e-5, atol=1e-5)


def test_forward_and_inverse_dynamics_undo_each_other_over_any_leading_axes() -> None:
    robot = Robot.load("panda")
    body = RigidBody(robot)
    q, qd, qdd = (x.reshape(2, 3, robot.n) for x in _states(robot, 6))
    torque = body.inverse_dynamics(q, qd, qdd)
    assert torque.shape == (2, 3, robot.n)
    np.testing.assert_allclose(body.forward_dynamics(q, qd, torque), qdd, atol=1e-8)
    np.testing.assert_allclose(np.matvec(body.mass_matrix(q), qdd) + body.bias(q, qd), torque, atol=1e-9)
    np.testing.assert_allclose(body.gravity(q), body.bias(q, np.zeros_like(q)), atol=1e-10)


def test_a_free_base_comes_first_and_is_not_counted() -> None:
    robot = Robot.load("g1")
    body = RigidBody(robot)
    assert (body.nq, body.nv) == (robot.n + 7, robot.n + 6)
    q = pin.neutral(body.model)
    weight = sum(link.mass for link in robot.moving_links) * 9.81
    np.testing.assert_allclose(body.gravity(q)[:3], [0.0, 0.0, weight], rtol=1e-9, atol=1e-9)
