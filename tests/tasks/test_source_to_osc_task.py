"""The source-to-OSC experiment: possible pose motions, and the payloads of its conditions."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.loop.loop import Loop, run
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
    target.reset(np.tile(PANDA.home, (2, 1)))
    trace = run(Loop(target, task.poses, task.controller()), 1.0)
    assert np.all(trace.position > PANDA.lower) and np.all(trace.position < PANDA.upper)
    assert not np.any(target.diverged)


def test_part_is_those_trials(task: SourceToOscTask) -> None:
    part = task.part(slice(1, 2))
    assert part.settings.trials == 1 and part.poses.position.shape[0] == 1
    np.testing.assert_array_equal(part.poses.position[0], task.poses.position[1])
    np.testing.assert_array_equal(part.source.parameters.flatten()[0], task.source.parameters.flatten()[1])


def test_poses_begin_at_home(task: SourceToOscTask) -> None:
    action = task.poses.at(0.0)
    np.testing.assert_allclose(action.position, np.broadcast_to(action.position[0], (2, 3)))
    np.testing.assert_allclose(action.velocity, 0.0, atol=1e-12)
