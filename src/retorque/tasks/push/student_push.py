"""The student as a policy: it looks at the table through two cameras before every push."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.push.box_clouds import BoxClouds, box_vertices, hand_points
from retorque.tasks.push.push_choice import REACH, SIDES
from retorque.tasks.push.push_planner import PushPlanner, push_legs
from retorque.tasks.push.pushes import CLEARANCE
from retorque.tasks.push.student_network import StudentNetwork
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PAUSE = 0.5
"""Between two looks of a student that rests [s]."""


class StudentPush(PushPlanner):
    """One push after the other, by clouds instead of the box's pose.

    Args:
        robot: the ideal robot.
        goal: (trials, 3) x, y [m] and yaw [rad].
        network: what chooses.
    """

    def __init__(self, robot: Robot, goal: Array, network: StudentNetwork):
        super().__init__(robot, goal)
        self.network = network
        self.eyes: BoxClouds | None = None
        """The cameras; `sight.open_eyes` gives them."""
        self._wanted_corners = box_vertices(goal)

    def reset(self, state: State) -> None:
        if self.eyes is None:
            raise RetorqueError("the student of the push sees nothing; give it cameras by `sight.open_eyes` first")
        super().reset(state)
        self._memory = np.zeros((len(self.goal), self.network.shape.memory))
        self._rests_until = np.full(len(self.goal), -np.inf)

    def act(self, state: State) -> PoseAction:
        due = self._legs.over(state.time) & self._rested(state.time)
        if due.any():
            self._look(np.flatnonzero(due), state)
        return self._legs.at(state.time)

    def _rested(self, time: float) -> Array:
        """(trials,) whether a table at which there was nothing to push is looked at again."""
        return time >= self._rests_until - 1e-9

    def _look(self, rows: Array, state: State) -> None:
        """Look at some tables, and push there or rest."""
        assert self.eyes is not None
        points, there = self.eyes.look(rows)
        hand = hand_points(*self._body.frame_pose(self._robot.end_effector, state.position[rows]))
        seen = there.any(axis=-1) & np.isfinite(hand).all(axis=(-1, -2))
        made = self.network(points, there, np.nan_to_num(hand), self._wanted_corners[rows], self._memory[rows])
        best = np.argmax(np.nan_to_num(made.preference, nan=-np.inf), axis=-1)
        side, each = np.minimum(best, SIDES - 1), np.arange(len(rows))
        first, last, up = made.first[each, side], made.last[each, side], made.up[each, side]
        finite = np.isfinite(np.concatenate([first, last, up[:, None], made.memory], axis=-1)).all(axis=-1)
        push = seen & finite & (best < SIDES)
        self._memory[rows[seen & finite]] = made.memory[seen & finite]
        self._rests_until[rows[~push]] = state.time + PAUSE
        which = np.zeros(len(self.goal), dtype=bool)
        which[rows[push]] = True
        begin, end, higher = (np.zeros((len(self.goal), *x.shape[1:])) for x in (first, last, up))
        begin[rows], end[rows], higher[rows] = within_reach(first), within_reach(last), up
        length = np.maximum(np.linalg.norm(end - begin, axis=-1) - CLEARANCE, 0.0)
        self._legs.begin(which, state.time, *push_legs(self._legs.last, begin, end, length, up=higher))


def within_reach(point: Array) -> Array:
    """Points (..., 2), those beyond the hand's reach moved to its edge; what is not finite, too [m]."""
    point = np.nan_to_num(point, nan=REACH[0], posinf=1e3, neginf=-1e3)
    away = np.maximum(np.linalg.norm(point, axis=-1, keepdims=True), 1e-9)
    return point * np.clip(away, *REACH) / away
