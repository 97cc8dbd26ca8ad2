"""Inverse kinematics within limits, and self-collision."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.self_collision import SelfCollision
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.sense.wrench_estimator import own_joints
from retorque.tasks.embodiments import embodiment


def _made(name: str, settings: KinematicsSettings | None = None) -> tuple[DampedLeastSquares, CompiledTree, np.ndarray]:
    body = embodiment(name)
    robot = body.load()
    frames = tuple(robot.frame(site) for site in body.sites)
    tree = CompiledTree(robot, frames)
    made = DampedLeastSquares(robot, frames, own_joints(tree), settings=settings)
    q = body.position(robot)[None]
    made.reset(q)
    return made, tree, q


def test_a_pose_that_can_be_reached_is_reached() -> None:
    made, tree, q = _made("arx_x5")
    there = q + np.array([[0.2, -0.2, 0.15, 0.2, -0.1, 0.2]])
    tree.update(there)
    goal, turn = tree.position.copy(), tree.rotation.copy()
    for _ in range(150):
        made.step(goal, turn)
    tree.update(made.q)
    np.testing.assert_allclose(tree.position, goal, atol=2e-3)
    np.testing.assert_allclose(tree.rotation, turn, atol=2e-2)
    assert made.codes[0] == 0


def test_steps_keep_to_joint_speeds_and_limits_and_say_out_of_reach() -> None:
    made, tree, q = _made("arx_x5")
    tree.update(q)
    before = made.q.copy()
    far = tree.position + 5.0
    for _ in range(200):
        now = made.step(far, tree.rotation)
        assert np.abs(now - before).max() <= 4.0 * 0.02 + 1e-9
        before = now.copy()
    robot = Robot.load("arx_x5")
    assert np.all(now >= robot.lower) and np.all(now <= robot.upper)
    assert made.codes[0] & ComplyCode.REACH


def test_four_fingers_at_once_leave_each_other_alone() -> None:
    made, tree, q = _made("leap_hand")
    tree.update(q)
    goal = tree.position.copy()
    goal[0, 1] += [0.01, 0.0, -0.01]
    for _ in range(100):
        made.step(goal, tree.rotation)
    moved = np.abs(made.q - q)[0]
    assert moved[4:8].max() > 0.05
    assert moved[[0, 1, 2, 3, 8, 9, 10, 11]].max() < 0.02


@pytest.mark.parametrize("name", ("toddlerbot_2xm",))
def test_links_keep_apart_where_asked(name: str) -> None:
    free, tree, q = _made(name)
    careful, _, _ = _made(name, KinematicsSettings(collision_margin=0.01))
    robot = Robot.load(name)
    base = np.array([[0.0, 0.0, 0.309, 1.0, 0.0, 0.0, 0.0]])
    tree.update(q, base)
    goal, turn = tree.position.copy(), tree.rotation.copy()
    goal[0, :, 1] = 0.0  # both hands at the same place
    look = SelfCollision(tree, 0.01)
    codes = 0
    for _ in range(120):
        free.step(goal, turn, base)
        careful.step(goal, turn, base)
        codes |= int(careful.codes[0])
    tree.update(free.q, base)
    into = look.distance()[0]
    tree.update(careful.q, base)
    kept = look.distance()[0]
    assert into < 0.0 and kept > 0.0
    assert codes & ComplyCode.COLLISION
    assert robot.n == careful.q.shape[1]
