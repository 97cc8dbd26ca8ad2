"""Rotation vectors in kernels, against SciPy, and links that come near each other, against MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from retorque.control.comply.rotation_steps import rotate_by, rotation_between
from retorque.control.comply.self_collision import SelfCollision
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.formats.mjcf_writer import to_mjmodel
from retorque.robots.robot import Geom, Robot

VECTORS = arrays(float, 3, elements=st.floats(-3.0, 3.0))


@settings(max_examples=60, deadline=None)
@given(vector=VECTORS, start=VECTORS)
def test_turning_is_scipys_and_between_undoes_it(vector: np.ndarray, start: np.ndarray) -> None:
    rotation = Rotation.from_rotvec(start).as_matrix()
    turned, back = np.empty((3, 3)), np.empty(3)
    rotate_by(vector, rotation, turned)
    np.testing.assert_allclose(
        turned, (Rotation.from_rotvec(vector) * Rotation.from_rotvec(start)).as_matrix(), atol=1e-9
    )
    rotation_between(rotation, turned, vector, back)  # nearest to itself, also beyond half a turn
    again = np.empty((3, 3))
    rotate_by(back, rotation, again)
    np.testing.assert_allclose(again, turned, atol=1e-7)
    np.testing.assert_allclose(back, vector, atol=1e-5)


@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-9, 1e-4, np.pi - 1e-9, np.pi, 1.9 * np.pi])
@pytest.mark.parametrize("axis", [*np.eye(3).tolist(), [0.6, 0.0, -0.8]])
def test_no_angle_is_too_small_or_too_large(angle: float, axis: list[float]) -> None:
    vector, turned, found = angle * np.array(axis), np.empty((3, 3)), np.empty(3)
    rotate_by(vector, np.eye(3), turned)
    np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-12)
    rotation_between(np.eye(3), turned, vector, found)
    assert np.all(np.isfinite(found))
    np.testing.assert_allclose(found, vector, atol=1e-6)


def test_an_error_followed_round_and_round_never_jumps() -> None:
    near, found, turned = np.zeros(3), np.empty(3), np.empty((3, 3))
    for angle in np.arange(0.0, 25.0, 0.05):
        rotate_by(np.array([0.0, angle, 0.0]), np.eye(3), turned)
        rotation_between(np.eye(3), turned, near, found)
        assert np.linalg.norm(found - near) < 0.06
        near = found.copy()
    assert near[1] == pytest.approx(24.95, abs=1e-6)


def test_distances_between_capsules_are_mujocos() -> None:
    """A hand whose links are one capsule each: the nearest pair of fingers."""
    robot = Robot.load("leap_hand")
    capsule = Geom(shape="capsule", size=(0.006, 0.012), position=(0.0, 0.0, 0.01))
    robot = robot.with_links(tuple(replace(x, geoms=(capsule,)) for x in robot.links))
    frames = tuple(robot.frame(name) for name in robot.end_effectors)
    trials = 6
    tree = CompiledTree(robot, frames, trials)
    made = SelfCollision(tree, margin=-1.0)
    q = np.random.default_rng(0).uniform(robot.lower, robot.upper, (trials, robot.n))
    tree.update(q)
    found = made.distance().copy()
    model = to_mjmodel(robot, timestep=1e-3, contact=True)
    data = mujoco.MjData(model)
    depth = {"world": frozenset()}
    for link in robot.links:
        depth[link.name] = depth[link.parent] | ({link.name} if link.joint is not None else set())
    used = {robot.links[k].name for k in range(len(robot.links))}
    geoms = [g for g in range(model.ngeom) if model.body(int(model.geom_bodyid[g])).name in used]
    for t in range(trials):
        data.qpos[:] = q[t]
        mujoco.mj_kinematics(model, data)
        gaps = []
        for i, g in enumerate(geoms):
            for h in geoms[:i]:
                a, b = (model.body(int(model.geom_bodyid[x])).name for x in (g, h))
                if len(depth[a] ^ depth[b]) > 2:
                    gaps.append(mujoco.mj_geomDistance(model, data, g, h, 1.0, None))
        assert found[t] == pytest.approx(min(gaps), abs=1e-6)
