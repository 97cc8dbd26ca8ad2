"""The source-to-OSC experiment: possible pose motions, and the payloads of its conditions."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest

from retorque.loop.loop import Loop, run
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.tasks.source_to_osc_task import CONDITIONS, SourceToOscSettings, SourceToOscTask

PANDA = Robot.load("panda")


@pytest.fixture(scope="module")
def task() -> SourceToOscTask:
    return SourceToOscTask(PANDA, SourceToOscSettings(trials=2, source_duration=1.0, osc_duration=1.0))


def test_conditions_are_payloads(task: SourceToOscTask) -> None:
    for name, mass in CONDITIONS.items():
        np.testing.assert_allclose(task.target(name, threads=1).parameters.payload_mass, mass)
    nominal, loaded = (task.target(name, threads=1).parameters for name in CONDITIONS)
    np.testing.assert_array_equal(nominal.armature, loaded.armature)  # all else is hidden alike


def test_the_ideal_robot_follows_the_poses_within_its_limits(task: SourceToOscTask) -> None:
    target = task.ideal(threads=1)
    target.reset(np.tile(task.robot.home, (2, 1)))
    trace = run(Loop(target, task.poses, task.controller()), 1.0)
    assert np.all(trace.position > PANDA.lower) and np.all(trace.position < PANDA.upper)
    assert not np.any(target.diverged)


def test_part_is_those_trials(task: SourceToOscTask) -> None:
    part = task.part(slice(1, 2))
    assert part.settings.trials == 1 and part.poses.position.shape[0] == 1
    np.testing.assert_array_equal(part.poses.position[0], task.poses.position[1])
    np.testing.assert_array_equal(part.source.parameters.flatten()[0], task.source.parameters.flatten()[1])


def test_a_motion_is_as_shaky_as_a_slight_torque_makes_the_hand_move(task: SourceToOscTask) -> None:
    moved = task.sensitivity()
    assert moved.shape == (2,) and np.all((moved > 1e-5) & (moved < 0.05))
    np.testing.assert_allclose(task.part(slice(1, 2)).sensitivity(), moved[1:], rtol=1e-6)
    twice = copy(task)
    twice._pushed = 2.0 * task._pushed
    np.testing.assert_allclose(twice.sensitivity(), 2.0 * moved, rtol=0.1)


def test_poses_begin_at_the_public_home(task: SourceToOscTask) -> None:
    np.testing.assert_allclose(np.rad2deg(task.robot.home), (0.0, -45.0, 0.0, -135.0, 0.0, 90.0, 45.0), atol=1e-3)
    at, _ = RigidBody(task.robot).frame_pose(task.robot.end_effector, task.robot.home)
    action = task.poses.at(0.0)
    np.testing.assert_allclose(action.position[0], at, atol=1e-9)
    np.testing.assert_allclose(action.position, np.broadcast_to(action.position[0], (2, 3)))
    np.testing.assert_allclose(action.velocity, 0.0, atol=1e-12)
