"""Motions of the end-effector through random waypoints: smooth, within bounds, within reach."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.control.inverse_kinematics import solve
from retorque.control.pose_waypoints import ANGLE_BOUNDS, POSITION_BOUNDS, PoseWaypoints
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

DURATION, WAYPOINTS = 4.0, 2


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


@pytest.fixture(scope="module")
def motion(panda: Robot) -> PoseWaypoints:
    return PoseWaypoints.sample(panda, 3, DURATION, seed=1, waypoints=WAYPOINTS)


def angle(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Between rotations (trials, 3, 3) [rad]."""
    return Rotation.from_matrix(np.matmul(one, np.swapaxes(other, -1, -2))).magnitude()


def test_it_begins_at_the_home_pose_at_rest(panda: Robot, motion: PoseWaypoints) -> None:
    first = motion.at(0.0)
    position, rotation = RigidBody(panda).frame_pose(panda.end_effector, panda.home)
    np.testing.assert_allclose(first.position, np.broadcast_to(position, (3, 3)), atol=1e-12)
    np.testing.assert_allclose(first.rotation, np.broadcast_to(rotation, (3, 3, 3)), atol=1e-12)
    assert np.all(first.velocity == 0.0) and np.all(first.angular_velocity == 0.0)


@pytest.mark.parametrize("index", range(WAYPOINTS + 1))
def test_every_waypoint_is_met_in_its_turn_at_rest(motion: PoseWaypoints, index: int) -> None:
    met = motion.at(index * DURATION / WAYPOINTS)
    np.testing.assert_allclose(met.position, motion.position[:, index], atol=1e-9)
    assert angle(met.rotation, motion.rotation[:, index]).max() < 1e-6
    assert np.abs(met.velocity).max() < 1e-9 and np.abs(met.angular_velocity).max() < 1e-9


@pytest.mark.parametrize("time", [0.2, 1.0, 1.9, 2.3, 3.7])
def test_velocities_are_the_rates_of_the_poses(motion: PoseWaypoints, time: float) -> None:
    step = 1e-5
    before, now, after = (motion.at(time + k * step) for k in (-1, 0, 1))
    rate = (after.position - before.position) / (2 * step)
    np.testing.assert_allclose(now.velocity, rate, atol=1e-7)
    turned = np.matmul(after.rotation, np.swapaxes(before.rotation, -1, -2))
    spin = Rotation.from_matrix(turned).as_rotvec() / (2 * step)
    np.testing.assert_allclose(now.angular_velocity, spin, atol=1e-6)
    assert np.linalg.norm(now.velocity, axis=-1).min() > 0.0


@pytest.mark.parametrize("time", [-1.0, DURATION + 1.0, 1e9])
def test_outside_its_time_it_stands_at_an_end(motion: PoseWaypoints, time: float) -> None:
    end = 0 if time < 0.0 else WAYPOINTS
    held = motion.at(time)
    np.testing.assert_allclose(held.position, motion.position[:, end], atol=1e-12)
    assert np.all(held.velocity == 0.0) and np.all(held.angular_velocity == 0.0)


def test_waypoints_lie_in_the_published_bounds_and_in_reach(panda: Robot, motion: PoseWaypoints) -> None:
    shift = motion.position[:, 1:] - motion.position[:, :1]
    assert np.all(shift >= POSITION_BOUNDS[:, 0] - 1e-12) and np.all(shift <= POSITION_BOUNDS[:, 1] + 1e-12)
    turned = np.matmul(motion.rotation[:, 1:], np.swapaxes(motion.rotation[:, :1], -1, -2))
    angles = Rotation.from_matrix(turned.reshape(-1, 3, 3)).as_euler("xyz")
    assert np.all(angles >= ANGLE_BOUNDS[:, 0] - 1e-9) and np.all(angles <= ANGLE_BOUNDS[:, 1] + 1e-9)
    at, turn = motion.position[:, 1:].reshape(-1, 3), motion.rotation[:, 1:].reshape(-1, 3, 3)
    joints, error = solve(RigidBody(panda), panda.end_effector, at, turn, panda.home)
    assert error.max() < 1e-3
    assert np.all(joints >= panda.lower) and np.all(joints <= panda.upper)


def test_a_small_arm_gets_a_small_motion() -> None:
    arm = Robot.load("z1")
    shift = PoseWaypoints.sample(arm, 4, DURATION, seed=1, waypoints=WAYPOINTS).position
    largest = np.abs(shift[:, 1:] - shift[:, :1]).max(axis=(0, 1))
    assert np.all(largest < np.abs(POSITION_BOUNDS).max(axis=1))


def test_a_seed_gives_one_motion_and_another_seed_another(panda: Robot, motion: PoseWaypoints) -> None:
    same = PoseWaypoints.sample(panda, 3, DURATION, seed=1, waypoints=WAYPOINTS)
    other = PoseWaypoints.sample(panda, 3, DURATION, seed=2, waypoints=WAYPOINTS)
    assert np.array_equal(same.position, motion.position) and np.array_equal(same.rotation, motion.rotation)
    assert not np.array_equal(other.position, motion.position)


def test_an_arm_that_cannot_get_there_is_refused_with_a_sentence(panda: Robot) -> None:
    stiff = replace(
        panda,
        links=tuple(
            link
            if link.joint is None
            else replace(link, joint=replace(link.joint, lower=home - 0.01, upper=home + 0.01))
            for link, home in with_home(panda)
        ),
    )
    with pytest.raises(RetorqueError, match="cannot reach enough waypoints"):
        PoseWaypoints.sample(stiff, 1, DURATION, seed=1, waypoints=WAYPOINTS)


def with_home(robot: Robot) -> list[tuple]:
    """Links with the home position of their joints [rad]."""
    homes = dict(zip(robot.joint_names, robot.home.tolist(), strict=True))
    return [(link, homes.get(link.joint.name, 0.0) if link.joint else 0.0) for link in robot.links]


@pytest.mark.parametrize("spoilt", ["position", "rotation", "duration"])
def test_what_is_not_finite_is_refused(motion: PoseWaypoints, spoilt: str) -> None:
    given = {"position": motion.position.copy(), "rotation": motion.rotation.copy(), "duration": DURATION}
    if spoilt == "duration":
        given["duration"] = np.nan
    else:
        given[spoilt][0, 1] = np.nan
    with pytest.raises(RetorqueError, match="finite"):
        PoseWaypoints(**given)
