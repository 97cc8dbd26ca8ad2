"""Candidates that swing poles up, and what no candidate can."""

from __future__ import annotations

import numpy as np

from retorque.physics.dynamics import make_dynamics
from retorque.plan.cost import QuadraticCost
from retorque.plan.ilqr import ILQR
from retorque.plan.pumping import CENTRING, pumped
from retorque.robots.robot import Robot
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.swing_bound import swings_up


def test_a_heavy_pole_comes_upright_within_limits() -> None:
    task = make_task("cartpole")
    ilqr = ILQR(make_dynamics(task.robot, task.timestep, selection=task.free.selection))
    p = task.free.whole(np.array([5.0, 5.0]))
    inputs = pumped(ilqr, task.cost, task.start, p, 800)
    assert inputs.shape == (len(CENTRING), 800, 1) and np.max(np.abs(inputs)) <= 20.0
    paths = ilqr.rollouts(task.start, inputs, p)
    assert np.max(np.cos(paths[0, :, 1])) > 0.99
    free, held = (np.max(np.abs(path[:, 0])) for path in paths[[0, -1]])
    assert held < free


def test_a_robot_with_all_its_motors_is_not_pumped() -> None:
    robot = Robot.load("z1")
    ilqr = ILQR(make_dynamics(robot, 0.01))
    cost = QuadraticCost(robot, np.zeros(2 * robot.n), final=1.0, effort=1.0)
    assert pumped(ilqr, cost, np.zeros(2 * robot.n), None, 50).shape == (0, 50, robot.n)


def test_a_light_pole_on_a_heavy_cart_is_out_of_reach() -> None:
    task = make_task("cartpole")
    assert not swings_up(task, (5.0, 0.2)) and not swings_up(task, (5.0, 0.2), margin=1.0)
    assert swings_up(task, (5.0, 5.0)) and swings_up(task, (1.0, 0.5))
    assert swings_up(task, (5.0, 0.2), margin=1.5)  # the bound is about the force, not about the time alone
