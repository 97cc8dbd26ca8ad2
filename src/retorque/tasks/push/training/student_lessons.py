"""Lessons of the student: what it sees while it pushes by itself, and what its teacher would do there (DAgger)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from retorque.robots.robot import Robot
from retorque.tasks.policy_task import Robots
from retorque.tasks.push.box_clouds import (
    CENTRE,
    POINTS,
    UNIT,
    VIEWS,
    BoxClouds,
    box_vertices,
    cloud_centre,
    half_turned,
    hand_points,
    scaled,
)
from retorque.tasks.push.box_task import FARTHEST, NEAR, TURNED, YAW, BoxTask, errors
from retorque.tasks.push.push_choice import SENSED, SHIFT, SIDES, BoxView, shifted, shifted_ends
from retorque.tasks.push.push_network import HISTORY, PushNetwork
from retorque.tasks.push.push_planner import ARRIVED, HEIGHT, SAFE
from retorque.tasks.push.student_network import CHOICES, ENDS, StudentNetwork
from retorque.tasks.push.student_push import within_reach
from retorque.tasks.push.training.push_worlds import SimulatedPushes
from retorque.tasks.push.training.student_module import Looks
from retorque.work.array import Array

LOOKS = 8
"""Of an episode."""
SAG = (-0.06, 0.02)
"""How far from where it should be the hand may be while the student looks, upwards [m]."""
LEARNT = POINTS // 3
"""Points of each view that a step learns from, others every time."""
MOVED = 0.03
"""Lessons are learnt with everything moved by up to this much along the table [m]."""


@dataclass(frozen=True)
class Lessons:
    """What was seen, (looks, trials, ...)."""

    points: Array
    """(..., points, 3) [m]"""
    there: Array
    """(..., points)"""
    hand: Array
    """(..., 3) [m]"""
    box: Array
    """(..., 3) x, y [m] and yaw [rad]."""
    goal: Array
    """(trials, 3)"""


class Classroom:
    """The ideal robot's engine, the cameras, and the teacher.

    Args:
        robot: the ideal robot.
        teacher: what chooses by the box's true pose.
        trials: boxes pushed together.
    """

    def __init__(self, robot: Robot, teacher: PushNetwork, trials: int):
        self.robot, self.teacher, self.trials = robot, teacher, trials
        self._world = SimulatedPushes(robot, Robots.ideal(robot, trials))
        home = self._world.hand_at(robot.home)
        self._rotation, self._home = home[1], home[0]

    def play(self, student: StudentNetwork | None, taught: float, seed: int) -> tuple[Lessons, float]:
        """One episode of every trial: what was seen, and the share of boxes that arrived.

        Args:
            student: what pushes; None: the teacher does.
            taught: share of the pushes that the teacher does all the same.
            seed: of starts, goals, cameras and who pushes.
        """
        task, rng = BoxTask(self.robot, self.trials, seed), np.random.default_rng(seed)
        eyes = BoxClouds(self._world.target, seed)
        box, arrived = task.start.copy(), np.zeros(self.trials, dtype=bool)
        hand = np.broadcast_to([*self._home[:2], SAFE], (self.trials, 3))
        memory = np.zeros((self.trials, student.shape.memory if student else 0))
        seen: list[tuple[Array, ...]] = []
        for _ in range(LOOKS):
            there_now = hand + np.column_stack([np.zeros((self.trials, 2)), rng.uniform(*SAG, self.trials)])
            self._world.show(box, there_now)
            points, there = eyes.look(np.arange(self.trials))
            seen.append((points, there, there_now, box))
            chosen, ends = advice(self.teacher, box, task.goal)
            best = np.argmax(chosen, axis=-1)
            if student is not None:
                keypoints = hand_points(there_now, self._rotation)
                own = student(points, there, keypoints, box_vertices(task.goal), memory)
                memory = own.memory
                mine = rng.uniform(size=self.trials) >= taught
                best = np.where(mine, np.argmax(own.preference, axis=-1), best)
                told = np.concatenate([own.first, own.last, own.up[..., None]], axis=-1)
                ends = np.where(mine[:, None, None], told, ends)
            push = ends[np.arange(self.trials), np.minimum(best, SIDES - 1)]
            box, hand = self._pushed(box, hand, push, best < SIDES)
            distance, turn = errors(box, task.goal)
            arrived |= (distance < NEAR) & (turn < TURNED)
        points, there, hands, boxes = (np.stack(part) for part in zip(*seen, strict=True))
        return Lessons(points, there, hands, boxes, task.goal), float(arrived.mean())

    def _pushed(self, box: Array, hand: Array, push: Array, which: Array) -> tuple[Array, Array]:
        """Boxes and hands after some pushes (trials, ENDS); a box that fell is put back."""
        low = HEIGHT + push[:, 4]
        first, last = (np.column_stack([within_reach(end), low]) for end in (push[:, :2], push[:, 2:4]))
        after, _, _ = self._world.along(box, first, last)
        moved = which & np.isfinite(after).all(axis=-1)
        over = np.column_stack([last[:, :2], np.full(len(last), SAFE)])
        return np.where(moved[:, None], after, box), np.where(which[:, None], over, hand)

    def looks(self, lessons: Lessons, rows: Array, rng: np.random.Generator) -> Looks:
        """Some of the lessons as they are learnt: moved along the table, every other one with another goal."""
        some = np.concatenate([POINTS * view + rng.permutation(POINTS)[:LEARNT] for view in range(VIEWS)])
        points, there = (part[:, rows][:, :, some] for part in (lessons.points, lessons.there))
        hand, box = lessons.hand[:, rows], lessons.box[:, rows].copy()
        goal = np.broadcast_to(lessons.goal[rows], box.shape).copy()
        another = np.arange(len(rows)) % 2 == 1
        goal[:, another] = other_goals(box[rng.integers(0, len(box), len(rows)), np.arange(len(rows))], rng)[another]
        shift = np.zeros((len(rows), 3))
        shift[:, :2] = rng.uniform(-MOVED, MOVED, (len(rows), 2))
        box[..., :2] += shift[:, :2]
        goal[..., :2] += shift[:, :2]
        chosen, ends = advice(self.teacher, box.reshape(-1, 3), goal.reshape(-1, 3))
        points = points + shift[:, None]
        centre = cloud_centre(points, there)
        ends = ends.reshape(*box.shape[:2], SIDES, ENDS)
        from_centre = (
            ends - np.concatenate([centre[..., :2], centre[..., :2], 0.0 * centre[..., :1]], axis=-1)[:, :, None]
        )
        parts = (
            scaled(points, centre).reshape(points.shape),
            there,
            scaled(hand_points(hand + shift, self._rotation), centre),
            (centre - CENTRE) / UNIT,
            scaled(box_vertices(goal), centre),
            scaled(box_vertices(box), centre),
            chosen.reshape(*box.shape[:2], CHOICES),
            from_centre / np.array([UNIT] * 4 + [SHIFT]),
        )
        return Looks(*(torch.as_tensor(part.astype(np.float32)) for part in parts))


def advice(teacher: PushNetwork, box: Array, goal: Array) -> tuple[Array, Array]:
    """What the teacher would do: probabilities (k, CHOICES), and its push of each side (k, SIDES, ENDS) [m]."""
    view = BoxView(box, goal)
    preference, numbers = teacher(view.observe(), np.zeros((len(box), HISTORY, SENSED)))
    options = view.pushes(numbers)
    preference = np.where(view.reachable(options), preference, -np.inf)
    likely = np.exp(preference - preference.max(axis=-1, keepdims=True))
    shift = shifted(numbers)
    boxes = np.broadcast_to(box[:, None], (len(box), SIDES, 3))
    first, last = shifted_ends(options, boxes, shift, sags=teacher.latent > 0)
    told = np.concatenate([first, last, shift[..., 2:]], axis=-1)
    side = np.where(half_turned(box[:, 2])[:, None], options.face ^ 1, options.face)  # opposite sides differ by a bit
    chosen, ends = np.zeros((len(box), CHOICES)), np.zeros_like(told)
    np.put_along_axis(chosen, side, likely / likely.sum(axis=-1, keepdims=True), axis=-1)
    np.put_along_axis(ends, side[..., None], told, axis=1)
    distance, turn = errors(box, goal)
    rests = (distance < ARRIVED[0]) & (turn < ARRIVED[1])
    chosen[rests] = np.eye(CHOICES)[SIDES]
    return chosen, ends


def other_goals(box: Array, rng: np.random.Generator) -> Array:
    """Goals (k, 3) around boxes (k, 3), as far and as turned as the task's, and nearer."""
    count = len(box)
    distance, angle = FARTHEST * rng.uniform(0.0, 1.0, count), rng.uniform(-np.pi, np.pi, count)
    way = distance[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return np.column_stack([box[:, :2] + way, box[:, 2] + rng.uniform(-1.0, 1.0, count) * rng.uniform(0.0, YAW, count)])
