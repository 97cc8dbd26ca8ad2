"""The compiled tree against Pinocchio, and against itself uncompiled."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.kernels import compiled_tree
from retorque.physics.kernels.compiled import COMPILED, cholesky_solve
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot


@pytest.mark.parametrize("name", ("arx_x5", "leap_hand", "panda", "toddlerbot_2xm", "g1"))
def test_poses_jacobians_and_gravity_are_pinocchios(name: str) -> None:
    robot = Robot.load(name)
    frames = tuple(robot.frame(site) for site in (robot.end_effectors or ("end_effector",)))
    rng = np.random.default_rng(1)
    q = robot.home + rng.uniform(-0.3, 0.3, (3, robot.n))
    body, tree = RigidBody(robot), CompiledTree(robot, frames, 3)
    pose = np.zeros((3, 7))
    if robot.floating:
        quaternion = rng.standard_normal((3, 4))
        pose = np.concatenate([rng.uniform(-1, 1, (3, 3)), quaternion / np.linalg.norm(quaternion, axis=1)[:, None]], 1)
    tree.update(q, pose if robot.floating else None)
    for t in range(3):
        full = q[t]
        if robot.floating:
            offset = np.array(robot.links[0].position)  # Pinocchio's free joint begins at the card's place
            full = np.concatenate([pose[t, :3] - offset, pose[t, 4:7], pose[t, 3:4], q[t]])
        for s, frame in enumerate(frames):
            position, rotation = body.frame_pose(frame, full)
            np.testing.assert_allclose(tree.position[t, s], position, atol=1e-12)
            np.testing.assert_allclose(tree.rotation[t, s], rotation, atol=1e-12)
            np.testing.assert_allclose(tree.jacobian[t, s], body.jacobian(frame, full)[:, -robot.n :], atol=1e-12)
        np.testing.assert_allclose(tree.gravity[t], body.gravity(full)[-robot.n :], atol=1e-11)


@pytest.mark.skipif(not COMPILED, reason="needs numba: pip install 'retorque[compile]'")
def test_the_same_numbers_without_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = Robot.load("leap_hand")
    frames = (robot.frame("index_tip"), robot.frame("thumb_tip"))
    fast, slow = CompiledTree(robot, frames), CompiledTree(robot, frames)
    fast.update(robot.home[None])
    monkeypatch.setattr(compiled_tree, "_update", compiled_tree._update.py_func)
    slow.update(robot.home[None])
    np.testing.assert_allclose(slow.jacobian, fast.jacobian, atol=1e-13)
    np.testing.assert_allclose(slow.gravity, fast.gravity, atol=1e-13)


def test_cholesky_solve_solves_and_says_where_it_cannot() -> None:
    rng = np.random.default_rng(2)
    root = rng.standard_normal((6, 6))
    a, b = root @ root.T + np.eye(6), rng.standard_normal((6, 3))
    x = b.copy()
    assert cholesky_solve(a.copy(), x)
    np.testing.assert_allclose(a @ x, b, atol=1e-10)
    assert not cholesky_solve(-np.eye(3), np.ones((3, 1)))
