"""What a motion promises: where it starts and ends, when its clock runs, and the same motion from the same seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from retorque.control import JointWaypoints, PoseWaypoints, WindowedSines
from retorque.control.action import Action, JointAction, PoseAction
from retorque.control.reference import Reference, minimum_jerk
from retorque.physics.default_profile import profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

ARM = Robot.load("panda")
PROFILE = profile_of(ARM)


def sines(seed: int) -> Reference:
    return WindowedSines.sample(ARM.home, PROFILE.tracking_amplitude, 3, 4.0, seed)


def waypoints(seed: int) -> Reference:
    return JointWaypoints.sample(ARM.home, ARM.lower, ARM.upper, PROFILE.waypoint_delta, 3, 4.0, seed)


def poses(seed: int) -> Reference:
    return PoseWaypoints.sample(ARM, 2, 4.0, seed, waypoints=2)


MOTIONS = pytest.mark.parametrize("make", [sines, waypoints, poses])


def numbers(action: Action) -> np.ndarray:
    """All of an action in a row."""
    assert isinstance(action, JointAction | PoseAction)
    turn = [action.rotation, action.angular_velocity] if isinstance(action, PoseAction) else []
    return np.concatenate([np.ravel(x) for x in (action.position, action.velocity, *turn)])


def state(time: float) -> State:
    return State(time, *np.zeros((3, ARM.n)))


@MOTIONS
def test_a_seed_is_a_motion(make: Callable[[int], Reference]) -> None:
    one, again, other = (numbers(make(seed).at(1.3)) for seed in (1000, 1000, 1001))
    np.testing.assert_array_equal(one, again)
    assert np.max(np.abs(one - other)) > 1e-3


@MOTIONS
def test_before_it_begins_a_motion_is_where_it_begins_and_after_it_ends_where_it_ends(
    make: Callable[[int], Reference],
) -> None:
    reference = make(1000)
    first, last = numbers(reference.at(0.0)), numbers(reference.at(reference.duration))
    for early in (-1e-3, -0.7, -5.0):
        np.testing.assert_allclose(numbers(reference.at(early)), first, atol=1e-12)
    for late in (1e-9, 0.5, 1e6):
        np.testing.assert_allclose(numbers(reference.at(reference.duration + late)), last, atol=1e-6)


@MOTIONS
def test_the_clock_starts_where_it_is_reset(make: Callable[[int], Reference]) -> None:
    reference = make(1000)
    reference.reset(state(17.0))
    np.testing.assert_allclose(numbers(reference.act(state(18.3))), numbers(make(1000).at(1.3)), atol=1e-9)
    reference.reset(state(0.0))
    np.testing.assert_array_equal(numbers(reference.act(state(1.3))), numbers(make(1000).at(1.3)))


@MOTIONS
def test_an_action_belongs_to_who_asked_for_it(make: Callable[[int], Reference]) -> None:
    reference = make(1000)
    action = reference.at(1.0)
    assert isinstance(action, JointAction | PoseAction)
    before = numbers(action).copy()
    reference.at(2.0)
    np.testing.assert_array_equal(numbers(action), before)
    action.position[...] = np.nan
    np.testing.assert_array_equal(numbers(reference.at(1.0)), before)


def test_minimum_jerk_begins_and_ends_without_speed_or_acceleration() -> None:
    phase = np.linspace(0.0, 1.0, 2001)
    step, rate = minimum_jerk(phase)
    np.testing.assert_allclose(np.gradient(step, phase, edge_order=2), rate, atol=1e-5)
    acceleration = np.gradient(rate, phase, edge_order=2)
    assert step[0] == rate[0] == rate[-1] == 0.0 and step[-1] == 1.0
    assert abs(acceleration[0]) < 1e-3 and abs(acceleration[-1]) < 1e-3
    np.testing.assert_allclose(step + step[::-1], 1.0, atol=1e-12)  # there as back
    assert np.all(np.diff(step) >= 0.0)


@pytest.mark.parametrize("name", ["panda", "z1", "ur10e", "arx_x5"])
def test_waypoints_of_the_hand_can_be_reached_and_begin_at_home(name: str) -> None:
    robot = Robot.load(name)
    reference = PoseWaypoints.sample(robot, 1, 2.0, 1000, waypoints=2)
    position, rotation = RigidBody(robot).frame_pose(robot.end_effector, robot.home)
    start = reference.at(0.0)
    np.testing.assert_allclose(start.position[0], position, atol=1e-12)
    np.testing.assert_allclose(start.rotation[0], rotation, atol=1e-12)
    for time in np.linspace(0.0, 2.0, 9):
        turned = reference.at(time).rotation[0]
        np.testing.assert_allclose(turned @ turned.T, np.eye(3), atol=1e-9)


def test_a_joint_that_waits_stands_still_and_the_others_trials_go_on() -> None:
    points = np.zeros((2, 3, 2))
    points[0, 1:] = [[1.0, -1.0], [1.0, -1.0]]  # moves, then waits
    points[1, 2] = [0.5, 0.5]  # waits, then moves
    reference = JointWaypoints(points, np.array([[1.0, 1.0], [0.5, 2.0]]))
    assert reference.duration == 2.5
    waiting = reference.at(1.4)
    np.testing.assert_array_equal(waiting.velocity[0], 0.0)
    assert np.all(waiting.velocity[1] > 0.0)
    np.testing.assert_allclose(reference.at(2.4999).position[0], [1.0, -1.0])
    np.testing.assert_array_equal(reference.at(0.25).velocity[1], 0.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan])
def test_motions_without_time_are_refused(bad: float) -> None:
    with pytest.raises(RetorqueError, match="longer than 0 s"):
        JointWaypoints(np.zeros((1, 2, 3)), np.array([[bad]]))
    with pytest.raises(RetorqueError, match="longer than 0 s"):
        PoseWaypoints(np.zeros((1, 2, 3)), np.tile(np.eye(3), (1, 2, 1, 1)), bad)
    with pytest.raises(RetorqueError, match="longer than 0 s"):
        WindowedSines(np.zeros(3), np.ones((1, 3)), np.ones((1, 3)), np.zeros((1, 3)), bad)


def test_an_arm_whose_home_leaves_no_room_says_so() -> None:
    """A hand's fingers cannot place their palm's frame six ways."""
    with pytest.raises(RetorqueError, match="move its home"):
        PoseWaypoints.sample(Robot.load("leap_hand"), 1, 2.0, 0, waypoints=1)
