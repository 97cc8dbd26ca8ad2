"""Motions of the ideal robot while it pushes boxes, to be replayed without them (TAM, F.2)."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import CubicSpline

from retorque.control.action import JointAction
from retorque.control.reference import Reference
from retorque.loop.loop import Loop, run
from retorque.robots.robot import Robot
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_task import BoxTask
from retorque.tasks.push.push_network import PPO, load_push_network
from retorque.tasks.push.push_policy import NetworkPush
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

KNOTS = 20
"""Ticks between two knots of the smooth motion."""


class PlayedMotion(Reference):
    """A smooth motion through positions (knots, trials, n) at even times.

    Args:
        positions: [rad].
        period: between two of them [s].
    """

    def __init__(self, positions: Array, period: float):
        self.duration = period * (len(positions) - 1)
        self._place = CubicSpline(period * np.arange(len(positions)), positions, bc_type="clamped")
        self._rate = self._place.derivative()

    def at(self, time: float) -> JointAction:
        t = min(max(time, 0.0), self.duration)
        return JointAction(self._place(t), self._rate(t))


def pushing_motions(robot: Robot, trials: int, duration: float, seed: int) -> PlayedMotion:
    """What the joints do while `ppo` pushes boxes on the ideal robot, each its own box and goal.

    Args:
        robot: the Panda.
        trials: how many motions.
        duration: of each, at most the task's [s].
        seed: of boxes and goals.
    """
    task = BoxTask(robot, trials, seed)
    if not 0.0 < duration <= task.duration:
        raise RetorqueError(f"a push lasts up to {task.duration:g} s, not {duration:g} s; choose a shorter --duration")
    target = task.target(Robots.ideal(task.robot, trials))
    policy = NetworkPush(task.robot, task.goal, load_push_network(PPO, task.robot))
    first = np.array(target.position)
    trace = run(Loop(target, policy, task.controller()), duration, every=KNOTS)
    return PlayedMotion(np.concatenate([first[None], trace.position]), KNOTS * target.timestep)
