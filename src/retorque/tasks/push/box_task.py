"""Pushing a box to a pose on a table (TAM, Table 1 and E.1)."""

from __future__ import annotations

import numpy as np

from retorque.control.operational_space import OperationalSpace
from retorque.robots.robot import Robot
from retorque.simulate.scene import Box, Floor, Scene
from retorque.simulate.target import Target
from retorque.tasks.policy_task import PolicyTask, Referee
from retorque.work.array import Array

HALF = (0.0755, 0.1148, 0.0507)
"""Half sizes of the box, as in a public benchmark of this kind; the paper does not say [m]."""
MASS, FRICTION = 0.15, 0.6
"""[kg], and against table and robot."""
PLACE = np.array([[0.48, 0.58], [-0.08, 0.08]])
"""Where boxes and goals stand: forward and left of the robot's base [m]."""
FARTHEST, YAW = 0.12, np.deg2rad(45.0)
"""Largest distance [m] and turn [rad] from the start to the goal."""
NEAR, TURNED = 0.03, np.deg2rad(15.0)
"""A box this close to its goal has arrived [m, rad]."""


class BoxTask(PolicyTask):
    """Boxes and their goals, both as (x, y, yaw).

    Args:
        robot: an arm whose gripper points down at home.
        trials: how many.
        seed: of starts and goals.
        yaw: largest turn from start to goal [rad]; 0: only the place counts.
    """

    name, metric, unit, duration = "push", "success", "share", 15.0

    def __init__(self, robot: Robot, trials: int, seed: int, yaw: float = YAW):
        self.robot, self.trials = robot, trials
        rng = np.random.default_rng(np.random.SeedSequence([seed, 17]))
        place = rng.uniform(PLACE[:, 0], PLACE[:, 1], (trials, 2))
        turn = rng.uniform(-np.pi / 6.0, np.pi / 6.0, trials)
        distance = FARTHEST * np.sqrt(rng.uniform(0.1, 1.0, trials))
        angle = rng.uniform(-np.pi, np.pi, trials)
        goal = place + distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        self.start = np.column_stack([place, turn])
        """(trials, 3) [m, m, rad]"""
        self.goal = np.column_stack([goal, turn + rng.uniform(-1.0, 1.0, trials) * yaw])
        """(trials, 3) [m, m, rad]"""
        self.any_yaw = yaw == 0.0

    def part(self, rows: slice) -> BoxTask:
        other = object.__new__(BoxTask)
        other.robot, other.start, other.goal = self.robot, self.start[rows], self.goal[rows]
        other.trials, other.any_yaw = len(other.start), self.any_yaw
        return other

    def scene(self) -> Scene:
        box = Box(name="box", size=HALF, mass=MASS, friction=FRICTION)
        return Scene(objects=(Floor(name="table", friction=FRICTION), box))

    def controller(self) -> OperationalSpace:
        """The soft gains of D.1."""
        return OperationalSpace(self.robot)

    def settle(self, target: Target) -> None:
        target.reset(np.broadcast_to(self.robot.home, (self.trials, self.robot.n)))
        target.place("box", box_pose(self.start))

    def referee(self) -> BoxReferee:
        return BoxReferee(self)


class BoxReferee(Referee):
    """Whether the box was at its goal at some time."""

    def __init__(self, task: BoxTask):
        self._task = task
        self._arrived = np.zeros(task.trials, dtype=bool)

    def look(self, target: Target, tick: int) -> None:
        if tick % 20 == 0:
            assert target.objects is not None
            distance, turn = errors(planar(target.objects[:, 0]), self._task.goal)
            self._arrived |= (distance < NEAR) & (self._task.any_yaw | (turn < TURNED))

    def scores(self) -> Array:
        return self._arrived.astype(float)


def box_pose(planar_pose: Array) -> Array:
    """Poses (..., 7) of boxes that stand on the table at (..., 3) x, y and yaw."""
    x, y, yaw = np.moveaxis(np.asarray(planar_pose, dtype=float), -1, 0)
    zero = np.zeros_like(x)
    return np.stack([x, y, zero + HALF[2], np.cos(yaw / 2.0), zero, zero, np.sin(yaw / 2.0)], axis=-1)


def planar(box: Array) -> Array:
    """(..., 3) x, y [m] and yaw [rad] of a pose (..., 7) or a pose and twist (..., 13)."""
    w, x, y, z = np.moveaxis(box[..., 3:7], -1, 0)
    yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
    return np.concatenate([box[..., :2], yaw[..., None]], axis=-1)


def wrapped(angle: Array) -> Array:
    """The same angle between -π and π [rad]."""
    return np.mod(angle + np.pi, 2.0 * np.pi) - np.pi


def errors(pose: Array, goal: Array) -> tuple[Array, Array]:
    """Distance [m] and turn [rad] between planar poses (..., 3); what is not finite is far away."""
    distance = np.linalg.norm(pose[..., :2] - goal[..., :2], axis=-1)
    turn = np.abs(wrapped(pose[..., 2] - goal[..., 2]))
    return np.nan_to_num(distance, nan=np.inf), np.nan_to_num(turn, nan=np.inf)
