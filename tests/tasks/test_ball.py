"""The ball on the plate: goals by hand-made traces, the linear model against the simulation, the regulator."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.action import TorqueAction
from retorque.control.direct_torque import DirectTorque
from retorque.loop.loop import Loop, run
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.goals import APART, FARTHEST, LEAVE, NEAREST, REACH, Goals
from retorque.tasks.ball.plate import BALL_RADIUS, linear_model, on_plate, plate_robot
from retorque.tasks.ball.plate_regulator import PlateRegulator
from retorque.tasks.policy_task import Robots, play

PANDA = Robot.load("panda")


def test_goals_lie_in_their_ring_and_apart_and_follow_the_seed() -> None:
    goals = Goals.sample(20, 3)
    radius = np.linalg.norm(goals.points, axis=-1)
    assert radius.min() >= NEAREST and radius.max() <= FARTHEST
    assert np.linalg.norm(np.diff(goals.points, axis=1), axis=-1).min() >= APART
    inner = np.mean(radius**2 < 0.5 * (NEAREST**2 + FARTHEST**2))
    assert 0.47 < inner < 0.53  # uniform in area
    np.testing.assert_array_equal(goals.points, Goals.sample(20, 3).points)
    np.testing.assert_array_equal(goals.part(slice(2, 4)).points, goals.points[2:4])


def test_a_goal_counts_once_and_the_next_only_after_the_ball_has_left() -> None:
    points = np.zeros((1, 400, 2))
    points[0, 0], points[0, 1] = (0.03, 0.0), (0.03 + 0.5 * LEAVE, 0.0)
    goals = Goals(points)
    goals.see(np.array([[0.03 + 1.1 * REACH, 0.0]]))
    assert goals.count[0] == 0
    goals.see(np.array([[0.03, 0.0]]))
    assert goals.count[0] == 1
    for _ in range(3):
        goals.see(points[:, 1])  # at the second goal, but still within 10 mm of the first
    assert goals.count[0] == 1
    goals.see(np.array([[np.nan, 0.0]]))
    goals.see(np.array([[0.03 + 1.2 * LEAVE, 0.0]]))
    goals.see(points[:, 1])
    assert goals.count[0] == 2
    goals.reset()
    assert goals.count[0] == 0


def test_the_plate_is_level_at_home_and_its_weight_is_the_robots() -> None:
    robot = plate_robot(PANDA)
    _, rotation = RigidBody(robot).frame_pose(robot.frame("plate"), robot.home)
    np.testing.assert_allclose(rotation[2, 2], 1.0, atol=1e-9)
    more = RigidBody(robot).gravity(robot.home) - RigidBody(PANDA).gravity(robot.home)
    jacobian = RigidBody(robot).jacobian(robot.frame("plate"), robot.home)
    np.testing.assert_allclose(more, jacobian[2] * 0.15 * 9.81, atol=1e-6)


class Accelerate:
    """Joint accelerations through the ideal model."""

    period = 0.0

    def __init__(self, robot: Robot, acceleration: np.ndarray):
        self._body, self._acceleration = RigidBody(robot), acceleration

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> TorqueAction:
        return TorqueAction(self._body.inverse_dynamics(state.position, state.velocity, self._acceleration))


@pytest.mark.parametrize("joint", (3, 5, 6))
def test_the_linear_model_says_where_the_ball_rolls(joint: int) -> None:
    task = BallTask(PANDA, 2, 0)
    task.start[:] = 0.0
    target = task.target(Robots.ideal(task.robot, 2))
    u = np.zeros((2, 7))
    u[:, joint] = 0.5, -0.5  # half their difference: the ball's own weight, which the model leaves out, tilts both
    run(Loop(target, Accelerate(task.robot, u), DirectTorque()), 0.25)
    assert target.objects is not None
    ball = on_plate(RigidBody(task.robot), task.robot.frame("plate"), target.position, target.objects[:, 0, :3])
    a, b = linear_model(task.robot)
    x = np.zeros(18)
    for _ in range(2500):
        x = x + 1e-4 * (a @ x + b @ u[0])
    rolled = 0.5 * (ball[0] - ball[1])[:2]
    np.testing.assert_allclose(rolled, x[14:16], atol=0.15 * np.abs(x[14:16]).max() + 2e-5)
    np.testing.assert_allclose(ball[:, 2], BALL_RADIUS, atol=5e-4)


def test_the_regulator_reaches_goals_and_a_lost_ball_stops_the_count() -> None:
    task = BallTask(PANDA, 2, 1000)
    target = task.target(Robots.ideal(task.robot, 2))
    referee = task.referee()
    loop = Loop(target, PlateRegulator(task.robot, task.goals), task.controller())
    run(loop, 4.0, before=lambda tick: referee.look(target, tick))
    assert (referee.scores() >= 3).all() and not referee.lost.any()
    target.place("ball", np.array([0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 0.0]))
    referee.look(target, 0)
    counted = referee.scores().copy()
    task.goals.count += 5
    referee.look(target, 10)
    assert referee.lost.all()
    np.testing.assert_array_equal(referee.scores(), counted)


def test_parts_are_the_same_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BallTask, "duration", 1.5)
    whole = BallTask(PANDA, 3, 7)
    robots = Robots.hidden(whole.robot, 3, 7)
    scores = play(whole, whole.target(robots), PlateRegulator(whole.robot, whole.goals))
    part = BallTask(PANDA, 3, 7).part(slice(1, 3))
    again = play(part, part.target(robots.part(slice(1, 3))), PlateRegulator(part.robot, part.goals))
    assert scores.shape == (3,) and again.shape == (2,)
    np.testing.assert_array_equal(part.goals.points, whole.goals.points[1:])
