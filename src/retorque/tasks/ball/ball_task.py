"""The ball on a plate: as many goals as possible in 15 s (TAM, Table 1 and E.3)."""

from __future__ import annotations

import numpy as np

from retorque.control.direct_torque import DirectTorque
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.scene import Scene
from retorque.simulate.target import Target
from retorque.tasks.ball.goals import Goals
from retorque.tasks.ball.plate import BALL_RADIUS, PLATE, ball_scene, on_plate, plate_robot
from retorque.tasks.policy_task import PolicyTask, Referee
from retorque.work.array import Array

START = 0.03
"""The ball starts at most this far from the plate's middle [m]."""


class BallTask(PolicyTask):
    """Starts and goals of every trial.

    Args:
        robot: without the plate.
        trials: how many.
        seed: of starts and goals.
    """

    name, metric, unit, duration = "ball", "goals", "goals", 15.0

    def __init__(self, robot: Robot, trials: int, seed: int):
        self.robot, self.trials = plate_robot(robot), trials
        seeds = np.random.SeedSequence([seed, 15]).generate_state(2)
        self.goals = Goals.sample(trials, int(seeds[0]))
        rng = np.random.default_rng(int(seeds[1]))
        self.start = rng.uniform(-START, START, (trials, 2)) / np.sqrt(2.0)

    def part(self, rows: slice) -> BallTask:
        other = object.__new__(BallTask)
        other.robot, other.goals, other.start = self.robot, self.goals.part(rows), self.start[rows]
        other.trials = len(other.start)
        return other

    def scene(self) -> Scene:
        return ball_scene()

    def controller(self) -> DirectTorque:
        return DirectTorque()

    def settle(self, target: Target) -> None:
        self.goals.reset()
        target.reset(np.broadcast_to(self.robot.home, (self.trials, self.robot.n)))
        body = RigidBody(self.robot)
        position, rotation = body.frame_pose(self.robot.frame("plate"), self.robot.home)
        height = np.full((self.trials, 1), BALL_RADIUS)
        centre = position + np.concatenate([self.start, height], axis=-1) @ rotation.T
        target.place("ball", np.concatenate([centre, np.tile([1.0, 0.0, 0.0, 0.0], (self.trials, 1))], axis=-1))

    def referee(self) -> BallReferee:
        return BallReferee(self)


class BallReferee(Referee):
    """The referee: names goals and counts them by the ball's true place, until it is lost."""

    def __init__(self, task: BallTask):
        self._body, self._frame = RigidBody(task.robot), task.robot.frame("plate")
        self._goals = task.goals
        self.lost = np.zeros(task.trials, dtype=bool)
        """(trials,)"""
        self._counted = np.zeros(task.trials)

    def look(self, target: Target, tick: int) -> None:
        if tick % 10:
            return
        assert target.objects is not None
        ball = on_plate(self._body, self._frame, target.position, target.objects[:, 0, :3])
        with np.errstate(invalid="ignore"):
            there = (np.abs(ball[:, :2]) < PLATE[0]).all(axis=-1) & (np.abs(ball[:, 2] - BALL_RADIUS) < BALL_RADIUS)
        self.lost |= ~there
        self._goals.see(ball[:, :2])
        self._counted = np.where(self.lost, self._counted, self._goals.count)

    def scores(self) -> Array:
        return self._counted
