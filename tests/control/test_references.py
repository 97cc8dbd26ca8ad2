"""References are continuous, their velocity is their derivative, and nonsense is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.control import JointWaypoints, PoseWaypoints, WindowedSines
from retorque.control.reference import Reference
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
PROFILE = profile_of(PANDA)


def _sines() -> WindowedSines:
    return WindowedSines.sample(PANDA.home, PROFILE.tracking_amplitude, 5, 8.0, 0)


def _waypoints() -> JointWaypoints:
    return JointWaypoints.sample(PANDA.home, PANDA.lower, PANDA.upper, PROFILE.waypoint_delta, 5, 8.0, 0)


@pytest.mark.parametrize("make", (_sines, _waypoints))
def test_joint_velocity_is_the_derivative_of_position(make: Callable[[], Reference]) -> None:
    reference, step = make(), 1e-6
    for time in np.random.default_rng(0).uniform(0.01, reference.duration - 0.01, 100):
        ahead, now, behind = (reference.at(time + s * step) for s in (1, 0, -1))
        found = (ahead.position - behind.position) / (2 * step)
        np.testing.assert_allclose(now.velocity, found, atol=1e-4)


@pytest.mark.parametrize("make", (_sines, _waypoints))
def test_joint_references_are_continuous_and_end_at_rest(make: Callable[[], Reference]) -> None:
    reference = make()
    path = np.stack([reference.at(t).position for t in np.arange(0.0, reference.duration + 0.5, 1e-3)])
    assert np.abs(np.diff(path, axis=0)).max() < 0.02
    np.testing.assert_array_equal(path[0], np.broadcast_to(PANDA.home, path[0].shape))
    end = reference.at(reference.duration + 1.0)
    np.testing.assert_allclose(end.velocity, 0.0, atol=1e-12)
    np.testing.assert_allclose(end.position, path[-1], atol=1e-12)


def test_joint_waypoints_stay_within_the_limits_and_pause() -> None:
    reference = JointWaypoints.sample(PANDA.home, PANDA.lower, PANDA.upper, PROFILE.waypoint_delta, 200, 12.0, 1)
    assert np.all(reference.points >= PANDA.lower) and np.all(reference.points <= PANDA.upper)
    pauses = np.all(reference.points[:, 1:] == reference.points[:, :-1], axis=-1)
    assert 0.25 < pauses.mean() < 0.35


def test_pose_waypoints_move_and_turn_as_their_velocities_say() -> None:
    reference, step = PoseWaypoints.sample(PANDA, 3, 8.0, 0), 1e-6
    for time in np.random.default_rng(1).uniform(0.01, 7.99, 40):
        ahead, now, behind = (reference.at(time + s * step) for s in (1, 0, -1))
        np.testing.assert_allclose(now.velocity, (ahead.position - behind.position) / (2 * step), atol=1e-5)
        turn = np.matmul(ahead.rotation, np.swapaxes(behind.rotation, -1, -2))
        np.testing.assert_allclose(now.angular_velocity, Rotation.from_matrix(turn).as_rotvec() / (2 * step), atol=1e-5)
    path = np.stack([reference.at(t).position for t in np.arange(0.0, 8.5, 1e-3)])
    assert np.abs(np.diff(path, axis=0)).max() < 0.005
    np.testing.assert_allclose(reference.at(9.0).position, reference.position[:, -1], atol=1e-12)


@pytest.mark.parametrize("which", ("home", "amplitude", "cycles", "phase", "duration"))
def test_sines_refuse_what_is_not_a_number(which: str) -> None:
    good = dict(home=PANDA.home, amplitude=np.ones((1, 7)), cycles=np.ones((1, 7)), phase=np.ones((1, 7)), duration=1.0)
    bad = np.nan if which == "duration" else np.where(np.arange(7) == 3, np.nan, good[which])
    with pytest.raises(RetorqueError):
        WindowedSines(**{**good, which: bad})


def test_waypoints_refuse_what_is_not_a_number() -> None:
    with pytest.raises(RetorqueError):
        JointWaypoints(np.full((1, 3, 7), np.nan), np.ones((1, 2)))
    with pytest.raises(RetorqueError):
        JointWaypoints(np.zeros((1, 3, 7)), np.zeros((1, 2)))
    with pytest.raises(RetorqueError):
        PoseWaypoints(np.full((1, 2, 3), np.nan), np.broadcast_to(np.eye(3), (1, 2, 3, 3)), 1.0)
