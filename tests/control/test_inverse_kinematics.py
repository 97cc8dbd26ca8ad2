"""Inverse kinematics of a frame: there and back on every arm, within limits, batch as single."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from walls import ARMS

from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import rotation_error
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

MARGIN = 0.05


@pytest.mark.parametrize("name", ARMS)
def test_a_pose_that_joints_made_is_found_again(name: str) -> None:
    robot = Robot.load(name)
    body = RigidBody(robot)
    low, high = np.maximum(robot.lower + 0.1, robot.home - 0.3), np.minimum(robot.upper - 0.1, robot.home + 0.3)
    q = np.random.default_rng(1000).uniform(np.minimum(low, high), np.maximum(low, high), (2, robot.n))
    position, rotation = body.frame_pose(robot.end_effector, q)
    found, left = solve(body, robot.end_effector, position, rotation, robot.home)
    at, turned = body.frame_pose(robot.end_effector, found)
    error = np.linalg.norm(np.concatenate([position - at, rotation_error(turned, rotation)], axis=-1), axis=-1)
    np.testing.assert_allclose(error, left, atol=1e-9)  # what it says is left is what is left
    assert np.all(left < 1e-3)
    inside = (found >= robot.lower + MARGIN - 1e-12) & (found <= robot.upper - MARGIN + 1e-12)
    assert np.all(inside)


def test_a_batch_is_each_of_its_poses() -> None:
    robot = Robot.load("panda")
    body = RigidBody(robot)
    q = robot.home + np.random.default_rng(1).uniform(-0.2, 0.2, (3, robot.n))
    position, rotation = body.frame_pose(robot.end_effector, q)
    together, left = solve(body, robot.end_effector, position, rotation, robot.home)
    for k in range(3):
        alone, own = solve(body, robot.end_effector, position[k], rotation[k], robot.home)
        np.testing.assert_allclose(together[k], alone, atol=1e-9)
        assert own.shape == () and np.isclose(left[k], own, atol=1e-9)


def test_where_it_starts_at_the_pose_it_stays() -> None:
    robot = Robot.load("iiwa14")
    body = RigidBody(robot)
    position, rotation = body.frame_pose(robot.end_effector, robot.home)
    start = robot.home.copy()
    found, left = solve(body, robot.end_effector, position, rotation, start)
    np.testing.assert_allclose(found, robot.home, atol=1e-12)
    assert left < 1e-12
    np.testing.assert_array_equal(start, robot.home)


def test_a_joint_with_hardly_any_room_stays_within_its_limits() -> None:
    """A range narrower than twice the margin."""
    robot = Robot.load("panda")
    narrow = tuple(
        replace(x, joint=replace(x.joint, lower=robot.home[2] - 0.01, upper=robot.home[2] + 0.01))
        if x.joint is not None and x.joint.name == robot.joint_names[2]
        else x
        for x in robot.links
    )
    robot = robot.with_links(narrow)
    body = RigidBody(robot)
    position, rotation = body.frame_pose(robot.end_effector, robot.home)
    found, _ = solve(body, robot.end_effector, position + np.array([0.0, 0.05, 0.0]), rotation, robot.home)
    assert np.all(found >= robot.lower) and np.all(found <= robot.upper)
