"""What the tasks share: the hand meets the table, and a policy that fails spoils its own trial only."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.action import JointAction, PoseAction
from retorque.control.inverse_kinematics import solve
from retorque.loop.loop import Loop, run
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.flip.flip_task import FlipTask
from retorque.tasks.flip.scripted_flip import ScriptedFlip
from retorque.tasks.policy_task import Robots, play
from retorque.tasks.push.box_task import BoxTask, box_pose
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


class Into:
    """The hand is told to be somewhere."""

    period = 0.0

    def __init__(self, place: np.ndarray, rotation: np.ndarray):
        self._action = PoseAction(place, rotation, np.zeros_like(place), np.zeros_like(place))

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> PoseAction:
        return self._action


def test_the_tool_touches_the_table_and_stays_above_it() -> None:
    task, body = BoxTask(PANDA, 1, 1000), RigidBody(PANDA)
    target = task.target(Robots.ideal(PANDA, 1))
    rotation = body.frame_pose(PANDA.end_effector, PANDA.home)[1][None]
    above = np.array([[0.55, 0.0, 0.02]])
    target.reset(solve(body, PANDA.end_effector, above, rotation, PANDA.home, iterations=40)[0])
    target.place("box", box_pose(np.array([0.55, 0.4, 0.0])))
    run(Loop(target, Into(above - [0.0, 0.0, 0.07], rotation), task.controller()), 0.4)
    tip = body.frame_pose(PANDA.end_effector, target.position)[0][0, 2]
    assert 0.005 < tip < 0.010  # the fingertips end 8.5 mm below the frame
    assert 2.0 < target.contact_force("robot", "table")[0, 2] < 50.0


class HalfMad(ScriptedFlip):
    """The script, which asks for nonsense in its first trial."""

    def act(self, state: State) -> JointAction:
        action = super().act(state)
        if state.time > 0.05:
            action.position = action.position.copy()
            action.position[0] = np.nan
        return action


class Narrow(ScriptedFlip):
    """The script, with one joint too few."""

    def act(self, state: State) -> JointAction:
        action = super().act(state)
        return JointAction(action.position[:, :-1], action.velocity[:, :-1])


def test_a_policy_that_is_not_finite_spoils_its_own_trial_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlipTask, "duration", 0.2)
    ends = []
    for policy in (ScriptedFlip(PANDA), HalfMad(PANDA)):
        task = FlipTask(PANDA, 2, 1000)
        target = task.target(Robots.ideal(task.robot, 2))
        scores = play(task, target, policy)
        assert np.isfinite(scores).all() and np.isfinite(target.position).all()
        ends.append((np.array(target.position), np.array(target.diverged)))
    np.testing.assert_array_equal(ends[0][0][1], ends[1][0][1])
    assert ends[1][1].tolist() == [True, False]


def test_a_policy_of_the_wrong_width_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FlipTask, "duration", 0.2)
    task = FlipTask(PANDA, 2, 1000)
    with pytest.raises(
        RetorqueError, match=r"Narrow gave a JointAction of the shape \(2, 6\); this robot's is \(2, 7\)"
    ):
        play(task, task.target(Robots.ideal(task.robot, 2)), Narrow(PANDA))
