"""Random pushes on the ideal robot: what the forward model learns from."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import OperationalSpace
from retorque.loop.loop import Loop
from retorque.loop.loop import run as run_loop
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.push.box_task import BoxTask, box_pose, planar
from retorque.tasks.push.legs import Legs
from retorque.tasks.push.push_planner import HEIGHT, SPEED, WAIT
from retorque.tasks.push.pushes import CLEARANCE, Pushes, change_of
from retorque.work.array import Array

PERIOD = 2e-3
"""Tick of the data [s]."""
SETTLES = 0.3
"""Until the box has come to rest [s]."""


class OnePush:
    """One push each, from where the fingertips stand."""

    period = 0.0

    def __init__(self, legs: Legs):
        self._legs = legs

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> PoseAction:
        return self._legs.at(state.time)


def collect_pushes(robot: Robot, count: int, seed: int) -> tuple[Array, Array]:
    """What the model sees (count, 7), and what happened to each box (count, 3)."""
    rng = np.random.default_rng(seed)
    task = BoxTask(robot, count, seed)
    pushes = Pushes.sample((count,), rng)
    first, last = pushes.ends(task.start)
    body = RigidBody(robot)
    rotation = body.frame_pose(robot.end_effector, robot.home)[1]
    points = [np.column_stack([p, np.full(count, HEIGHT)]) for p in (first, last, last)]
    joints, left = solve(body, robot.end_effector, points[0], np.broadcast_to(rotation, (count, 3, 3)), robot.home)
    target = Target(robot, Parameters.ideal(robot, count), scene=task.scene(), timestep=PERIOD, substeps=2, threads=1)
    target.reset(joints)
    target.place("box", box_pose(task.start))
    legs = Legs(count, rotation)
    times = np.stack([(pushes.length + CLEARANCE + 0.01) / SPEED, np.full(count, WAIT + SETTLES)], axis=1)
    legs.begin(np.ones(count, dtype=bool), 0.0, np.stack(points, axis=1), times)
    loop = Loop(target, OnePush(legs), OperationalSpace(robot))
    run_loop(loop, float(times.sum(axis=1).max()))
    assert target.objects is not None
    change = change_of(task.start, planar(target.objects[:, 0]))
    flat = np.abs(target.objects[:, 0, 2] - task.scene().objects[1].geom_size[2]) < 0.005
    good = (left < 5e-3) & ~target.diverged & flat & (np.abs(change) < 0.5).all(axis=-1)
    return pushes.features()[good], change[good]
