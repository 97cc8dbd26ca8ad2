"""The box from ray-cast clouds: the table taken away, the pose within millimetres, and clouds that say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.simulate.cameras.depth_camera import DepthView, beside_the_table, depth_cloud
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_filter import BoxFilter
from retorque.tasks.push.box_task import HALF, BoxTask, box_pose, errors, planar
from retorque.tasks.push.table_plane import above_table, cropped, table_plane
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def test_rays_hit_the_table_and_the_box_where_they_are() -> None:
    task = BoxTask(PANDA, 1, 1000)
    target = task.target(Robots.ideal(PANDA, 1))
    target.place("box", box_pose(np.array([[0.5, 0.0, 0.0]])))
    down = DepthView(eye=(0.5, 0.3, 0.8), at=(0.5, 0.0, 0.0), width=41, height=31)
    cloud = depth_cloud(target, down)
    low, high = cloud[cloud[:, 2] < 1e-6], cloud[np.abs(cloud[:, 2] - 2.0 * HALF[2]) < 1e-6]
    assert len(low) > 100 and len(high) > 30
    assert (np.abs(high[:, :2] - [0.5, 0.0]) <= np.array(HALF[:2]) + 1e-6).all()
    np.testing.assert_allclose(np.linalg.norm(down.rays(), axis=-1), 1.0)
    with pytest.raises(RetorqueError, match="stands where it looks"):
        DepthView(eye=(0.1, 0.1, 0.1), at=(0.1, 0.1, 0.1)).rays()
    few = depth_cloud(target, DepthView(eye=(0.5, 0.3, 0.8), dropped=1.0))
    assert few.shape == (0, 3)


def test_the_box_is_found_within_five_millimetres_and_three_degrees() -> None:
    task = BoxTask(PANDA, 8, 1001)
    target = task.target(Robots.ideal(PANDA, 8))
    rng = np.random.default_rng(0)
    for trial in range(8):
        found = BoxFilter(seed=trial)
        views = beside_the_table(rng, noise=0.002, dropped=0.1)
        for look in range(3):
            cloud = np.concatenate([depth_cloud(target, view, trial, rng) for view in views])
            pose = found.see(0.05 * look, cloud)
        distance, turn = errors(pose, task.start[trial])
        assert distance < 5e-3 and turn < np.deg2rad(3.0)


def test_a_box_on_the_move_is_followed() -> None:
    task = BoxTask(PANDA, 1, 1002)
    target = task.target(Robots.ideal(PANDA, 1))
    rng = np.random.default_rng(1)
    views, found = beside_the_table(rng, noise=0.002), BoxFilter()
    for look in range(15):  # 5 cm/s and 30 deg/s at 20 Hz
        target.place("box", box_pose(task.start + look * np.array([0.0025, 0.0, 0.026])))
        pose = found.see(0.05 * look, np.concatenate([depth_cloud(target, view, 0, rng) for view in views]))
    assert target.objects is not None
    distance, turn = errors(pose, planar(target.objects[0, 0]))
    assert distance < 5e-3 and turn < np.deg2rad(3.0)


def _flat(rng: np.random.Generator, height: float = 0.0) -> np.ndarray:
    table = rng.uniform([0.25, -0.45, 0.0], [0.85, 0.45, 0.0], (900, 3))
    return table + [0.0, 0.0, height] + 0.001 * rng.standard_normal((900, 3))


def test_the_table_is_found_at_any_height_and_taken_away() -> None:
    rng = np.random.default_rng(2)
    thing = rng.uniform([0.4, -0.1, 0.05], [0.5, 0.1, 0.15], (100, 3))
    cloud = np.concatenate([_flat(rng, 0.02), thing])
    plane = table_plane(cloud, rng)
    assert plane is not None
    np.testing.assert_allclose(plane[0], [0.0, 0.0, 1.0], atol=5e-3)
    assert plane[1] == pytest.approx(0.02, abs=2e-3)
    rest = above_table(cloud, rng)
    assert rest is not None and 90 <= len(rest) <= 110
    upright = cloud[:, [2, 1, 0]] + [0.4, 0.0, -0.3]  # a wall is no table
    assert table_plane(upright[:900], rng) is None


def test_clouds_that_say_nothing_leave_the_last_pose_until_it_is_stale() -> None:
    task = BoxTask(PANDA, 1, 1003)
    target = task.target(Robots.ideal(PANDA, 1))
    rng = np.random.default_rng(3)
    views, found = beside_the_table(rng), BoxFilter()
    empty, broken, alone = np.zeros((0, 3)), np.full((500, 3), np.nan), _flat(rng)
    for nothing in (empty, broken, alone, rng.uniform(0.3, 0.35, (50, 3))):
        assert np.isnan(found.see(0.0, nothing)).all()
    assert len(cropped(broken)) == 0 and above_table(empty, rng) is None
    whole = np.concatenate([depth_cloud(target, view) for view in views])
    pose = found.see(1.0, whole)
    assert np.isfinite(pose).all()
    for late, nothing in ((1.05, empty), (1.15, broken), (1.24, alone)):
        np.testing.assert_array_equal(found.see(late, nothing), pose)
    assert np.isnan(found.see(1.3, empty)).all()
    assert np.isnan(found.see(0.5, empty)).all()  # a clock set back
    again = found.see(2.0, whole)
    distance, turn = errors(again, task.start[0])
    assert distance < 5e-3 and turn < np.deg2rad(3.0)
