"""Policies that see through cameras: the ball from the hand, the box from two clouds."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.loop.loop import Loop, run
from retorque.robots.robot import Robot
from retorque.tasks.experiments import make_policy, make_task
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_task import errors, planar
from retorque.tasks.sight import SeenTarget, through_cameras
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def test_the_ball_is_regulated_by_what_the_camera_sees() -> None:
    task = make_task("ball", PANDA, 1, 1000)
    target = task.target(Robots.ideal(task.robot, 1))
    assert target.objects is not None
    before = target.objects.copy()
    try:
        seen = through_cameras(task, target, 0)
    except RetorqueError as error:
        pytest.skip(str(error))
    np.testing.assert_array_equal(target.objects, before)  # calibrating leaves no trace
    referee = task.referee()
    loop = Loop(seen, make_policy(task, "lqr"), task.controller())
    run(loop, 1.0, before=lambda tick: referee.look(target, tick))
    state = seen.read()
    assert state.objects is not None and target.objects is not None
    np.testing.assert_allclose(state.objects[0, 0, :3], target.objects[0, 0, :3], atol=4e-3)  # and up to 20 ms old


def test_the_box_is_reported_as_two_clouds_show_it_and_held_between_looks() -> None:
    task = make_task("push", PANDA, 2, 1000)
    target = task.target(Robots.ideal(PANDA, 2))
    seen = through_cameras(task, target, 0)
    assert isinstance(seen, SeenTarget) and seen.takes == "torque" and seen.timestep == target.timestep
    run(Loop(seen, make_policy(task, "planner"), task.controller()), 0.05)
    state = seen.read()
    assert state.objects is not None and target.objects is not None
    distance, turn = errors(planar(state.objects[:, 0]), planar(target.objects[:, 0]))
    assert distance.max() < 5e-3 and turn.max() < np.deg2rad(3.0)
    again = seen.read()
    np.testing.assert_array_equal(again.objects, state.objects)


def test_a_task_without_cameras_says_so() -> None:
    task = make_task("flip", PANDA, 1, 0)
    with pytest.raises(RetorqueError, match="no cameras"):
        through_cameras(task, task.target(Robots.ideal(PANDA, 1)), 0)
