"""The ball's planner: its tree against the linear model, its cost against finite differences, its goals."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.loop.loop import Loop, run
from retorque.physics.dynamics import make_dynamics
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.tasks.ball.ball_filter import BallFilter
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.ball_tree import ball_tree
from retorque.tasks.ball.goals import MOST, Goals
from retorque.tasks.ball.plate import linear_model, plate_robot
from retorque.tasks.ball.plate_cost import PlateCost, goal_reference
from retorque.tasks.ball.plate_planner import AS_PUBLISHED, PlatePlanner
from retorque.tasks.experiments import make_policy
from retorque.tasks.policy_task import Robots
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")
HELD = plate_robot(PANDA)


def test_the_tree_rolls_the_ball_as_the_linear_model_does() -> None:
    tree = ball_tree(HELD)
    assert tree.n == HELD.n + 2 and not tree.torque_limit[-2:].any()
    body = RigidBody(tree)
    a, b = linear_model(HELD)
    rng = np.random.default_rng(0)
    q, u = np.array(tree.home), 0.5 * rng.standard_normal(7)
    q[:7] += 0.002 * rng.standard_normal(7)
    # Accelerate the arm by u with no force on the slides: the ball's rows of the dynamics say where it rolls.
    mass, bias = body.mass_matrix(q), body.bias(q, np.zeros(9))
    ball = np.linalg.solve(mass[7:, 7:], -bias[7:] - mass[7:, :7] @ u)
    x = np.concatenate([q[:7] - HELD.home, np.zeros(11)])
    np.testing.assert_allclose(ball, (a @ x + b @ u)[16:18], atol=2e-3)


def test_the_cost_is_expanded_as_finite_differences_say() -> None:
    tree = ball_tree(HELD)
    cost = PlateCost(tree)
    rng = np.random.default_rng(1)
    states = np.concatenate([tree.home, np.zeros(9)]) + 0.05 * rng.standard_normal((5, 18))
    states[2, 7], states[3, 9] = 0.085, 1.9 * tree.velocity_limit[0]  # beyond the edge, and too fast
    inputs = cost._hold + rng.standard_normal((4, 7))
    inputs[1, 0] = 0.95 * tree.torque_limit[0]
    cost.reference = 0.02 * rng.standard_normal((5, 2))
    made = cost.expand(states, inputs)
    step = 1e-6
    for place in np.ndindex(states.shape):
        more, less = states.copy(), states.copy()
        more[place] += step
        less[place] -= step
        slope = (cost.value(more, inputs) - cost.value(less, inputs)) / (2.0 * step)
        assert made.state_gradient[place] == pytest.approx(slope, abs=1e-6)
    for place in np.ndindex(inputs.shape):
        more, less = inputs.copy(), inputs.copy()
        more[place] += step
        less[place] -= step
        slope = (cost.value(states, more) - cost.value(states, less)) / (2.0 * step)
        assert made.input_gradient[place] == pytest.approx(slope, abs=1e-5)
    assert np.linalg.eigvalsh(made.state_hessian).min() > -1e-9
    assert np.linalg.eigvalsh(made.input_hessian).min() > 0.0
    whole = cost.value(states, inputs)
    last = cost.ending(states)
    assert 0.0 < last < whole and len(cost.reference) == 5


def test_the_reference_never_outruns_its_speed_and_ends_at_the_goal() -> None:
    way = goal_reference(np.array([0.05, 0.0]), np.array([-0.05, 0.001]), 400, 0.02, 1.0, 0.04)
    np.testing.assert_allclose(way[0], [0.05, 0.0])
    np.testing.assert_allclose(way[1] - way[0], [-0.0008, 0.00002])
    assert np.abs(np.diff(way, axis=0)).max() <= 0.0008 + 1e-12
    np.testing.assert_allclose(way[-1], [-0.05, 0.001], atol=1e-4)


def test_the_planner_reaches_goals_and_lives_with_a_ball_that_is_not_seen() -> None:
    task = BallTask(PANDA, 2, 1000)
    target = task.target(Robots.ideal(task.robot, 2))
    referee = task.referee()
    planner = PlatePlanner(task.robot, task.goals)
    run(Loop(target, planner, task.controller()), 2.5, before=lambda tick: referee.look(target, tick))
    assert (referee.scores() >= 2).all() and not referee.lost.any()
    state = target.read()
    assert state.objects is not None
    state.objects[0, 0] = np.nan
    state.position[1, 0] = np.nan
    assert np.isfinite(planner.act(state).torque).all()
    published = make_policy(task, "ilqr-paper")
    assert isinstance(published, PlatePlanner) and published.settings == AS_PUBLISHED
    assert (published.settings.gain, published.settings.fastest, published.settings.horizon) == (1.0, 0.04, 20)


def test_the_plan_is_the_tree_under_its_own_torques() -> None:
    task = BallTask(PANDA, 1, 1000)
    planner = PlatePlanner(task.robot, task.goals)
    target = task.target(Robots.ideal(task.robot, 1))
    planner.reset(target.read())
    x = np.concatenate([task.robot.home, [0.03, 0.0], np.zeros(9)])
    planner._plan(0, x, np.array([-0.03, 0.0]))
    dynamics = make_dynamics(ball_tree(task.robot), planner.period, backend="pinocchio")
    end = dynamics.rollout(x, planner._inputs[0])[-1]
    assert end[7] < 0.022 and abs(end[8]) < 0.004  # 0.4 s later it is on its way


def test_a_hidden_ball_stays_where_it_was_and_then_rests() -> None:
    found = BallFilter(0.02, memory=0.02, patience=0.1)
    assert not found.stale.any()
    found.see(np.array([[np.nan, np.nan]]))
    assert found.stale.all()
    for k in range(20):
        place, rate = found.see(np.array([[0.001 * k, 0.0]]))
    np.testing.assert_allclose(rate, [[0.05, 0.0]], rtol=1e-3)
    for _ in range(3):
        place, rate = found.see(np.array([[np.nan, 0.0]]))
    np.testing.assert_allclose(place, [[0.019, 0.0]])
    np.testing.assert_allclose(rate, [[0.05, 0.0]], rtol=1e-3)
    _, rate = found.see(np.array([[0.023, 0.0]]))  # 4 mm in 80 ms: as before
    np.testing.assert_allclose(rate, [[0.05, 0.0]], rtol=1e-3)
    for _ in range(7):
        place, rate = found.see(np.full((1, 2), np.nan))
    assert found.stale.all() and not rate.any()
    place, rate = found.see(np.array([[-0.05, 0.02]]))  # somewhere else: no rate can be told
    np.testing.assert_allclose(place, [[-0.05, 0.02]])
    assert not rate.any() and not found.stale.any()


def test_goals_off_the_plate_are_refused() -> None:
    points = np.zeros((1, MOST, 2))
    points[0, 3, 0] = 0.1
    with pytest.raises(RetorqueError, match="off the plate"):
        Goals(points)
    with pytest.raises(RetorqueError, match="off the plate"):
        Goals(np.full((1, MOST, 2), np.nan))
