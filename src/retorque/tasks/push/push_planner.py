"""A planner that pushes the box greedily, by a forward model of single pushes."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.push.box_task import errors, planar
from retorque.tasks.push.legs import Legs
from retorque.tasks.push.push_choice import REACH
from retorque.tasks.push.push_model import PushModel, load_push_model
from retorque.tasks.push.pushes import Pushes, moved_box
from retorque.work.array import Array

HEIGHT, SAFE = 0.068, 0.17
"""Heights of the end-effector [m]: pushing, where the hand clears the box, and above the box."""
SPEED = 0.12
"""Of a push [m/s]."""
WAIT = 0.25
"""Soft joints catch up with the end of a push [s]."""
CANDIDATES = 600
ARRIVED = (0.012, np.deg2rad(6.0))
"""Nearer than this to the goal, nothing is pushed any more [m, rad]."""
WEIGHT = 0.11
"""Metres of distance that a radian of turn counts as."""


class PushPlanner:
    """Chooses one push after the other for the ideal robot; sees the box, knows its goal.

    Args:
        robot: the ideal robot.
        goal: (trials, 3) x, y [m] and yaw [rad].
        model: what pushes do; default: the one on board.
        seed: of the pushes that are considered.
        any_yaw: whether only the place counts.
    """

    period = 0.01

    def __init__(
        self, robot: Robot, goal: Array, model: PushModel | None = None, *, seed: int = 0, any_yaw: bool = False
    ):
        self.goal, self.any_yaw = goal, any_yaw
        self._robot, self._model = robot, model or load_push_model()
        self._body = RigidBody(robot)
        self._rng = np.random.default_rng(seed)

    def reset(self, state: State) -> None:
        hand, _ = self._body.frame_pose(self._robot.end_effector, state.position)
        self._legs = Legs(len(self.goal), self._body.frame_pose(self._robot.end_effector, self._robot.home)[1])
        everyone = np.ones(len(self.goal), dtype=bool)
        up = hand.copy()
        up[:, 2] = SAFE
        self._legs.begin(everyone, state.time, *push_legs(hand, up[:, :2], up[:, :2], np.zeros(len(hand)), stay=True))

    def act(self, state: State) -> PoseAction:
        assert state.objects is not None
        idle = self._legs.over(state.time)
        if idle.any():
            self._plan(idle, state.time, planar(state.objects[..., 0, :]))
        return self._legs.at(state.time)

    def _wanted(self, idle: Array, box: Array) -> tuple[Array, Array]:
        """(trials,) which boxes are to be pushed now, and which are seen at all."""
        seen = np.isfinite(box).all(axis=-1)
        distance, turn = errors(box, self.goal)
        return idle & seen & ~((distance < ARRIVED[0]) & (self.any_yaw | (turn < ARRIVED[1]))), seen

    def _plan(self, idle: Array, time: float, box: Array) -> None:
        push, seen = self._wanted(idle, box)
        chosen = self._choose(np.where(seen[:, None], box, self.goal))
        first, last = chosen.ends(box)
        hand = self._legs.last
        self._legs.begin(push, time, *push_legs(hand, first, last, chosen.length))

    def _choose(self, box: Array) -> Pushes:
        """The push after which each box is expected to be nearest to its goal."""
        options = Pushes.sample((len(box), CANDIDATES), self._rng)
        after = moved_box(box[:, None], self._model(options))
        distance, turn = errors(after, self.goal[:, None])
        cost = distance if self.any_yaw else np.hypot(distance, WEIGHT * turn)
        for point in options.ends(np.broadcast_to(box[:, None], after.shape)):
            away = np.linalg.norm(point, axis=-1)
            cost = cost + 10.0 * ((away < REACH[0]) | (away > REACH[1]))
        return options.take(np.argmin(cost, axis=-1))


def push_legs(
    hand: Array, first: Array, last: Array, length: Array, *, stay: bool = False, up: Array | float = 0.0
) -> tuple[Array, Array]:
    """Points (trials, 7, 3) and times (trials, 6) of a push: up, over, down, along, wait, up.

    Args:
        hand: where the hand is (trials, 3) [m].
        first: where the fingertips begin (trials, 2) [m].
        last: where they stop (trials, 2) [m].
        length: of the push (trials,) [m].
        stay: do not come down.
        up: how much higher than usual the push is (trials,) [m].
    """
    low = SAFE if stay else HEIGHT + up

    def at(place: Array, height: Array | float) -> Array:
        return np.column_stack([place, np.broadcast_to(height, len(place))])

    lifted = at(hand[:, :2], SAFE)
    points = [hand, lifted, at(first, SAFE), at(first, low), at(last, low), at(last, low), at(last, SAFE)]
    climb = np.abs(hand[:, 2] - SAFE)
    across = np.linalg.norm(first - hand[:, :2], axis=-1)
    times = [
        np.clip(climb / 0.3, 1e-3, 1.5),
        np.clip(across / 0.4, 1e-3, 1.0),
        np.full(len(hand), 1e-3 if stay else 0.45),
        np.clip((length + 0.03) / SPEED, 1e-3, 2.0) if not stay else np.full(len(hand), 1e-3),
        np.full(len(hand), 1e-3 if stay else WAIT),
        np.full(len(hand), 1e-3 if stay else 0.3),
    ]
    return np.stack(points, axis=1), np.stack(times, axis=1)
