"""Boxes that are pushed to goals, each begun anew when it is over: what a pushing policy learns in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.robots.robot import Robot
from retorque.tasks.push.box_task import NEAR, TURNED, BoxTask, errors
from retorque.tasks.push.push_choice import SENSED, BoxView, shifted
from retorque.tasks.push.push_network import HISTORY
from retorque.tasks.push.push_planner import WEIGHT
from retorque.tasks.push.pushes import Pushes
from retorque.tasks.push.training.push_worlds import PushWorld
from retorque.work.array import Array

LONGEST = 6
"""Pushes of an episode: about what 15 s allow."""
MARGIN = 0.7
"""Share of the task's tolerance at which an episode ends well."""
LOST = 0.3
"""A box this far from its goal is given up [m]."""
POOL = 4096
"""Starts and goals to draw from."""


@dataclass(frozen=True, kw_only=True)
class PushReward:
    """What a push is worth."""

    nearer: float = 20.0
    """A metre nearer to the goal; a radian of turn counts as 0.11 m."""
    arrived: float = 3.0
    """Once, at the goal."""
    lost: float = -3.0
    """Once, where the box is given up or falls."""
    push: float = -0.3
    """Every push."""
    shifted: float = -1.0
    """Square of the share by which the hand is shifted."""


class PushEnv:
    """A batch of episodes.

    Args:
        robot: the arm.
        world: where pushes are done.
        seed: of starts and goals, at least 1000 where anything is tuned.
        reward: what a push is worth.
    """

    def __init__(self, robot: Robot, world: PushWorld, seed: int, reward: PushReward | None = None):
        self.world, self.reward, self.trials = world, reward or PushReward(), world.trials
        self.any_yaw, self.yaw_share = False, 1.0
        """Whether only the place counts, and the share of the task's turns that goals have."""
        self._pool = BoxTask(robot, POOL, seed)
        self.restart(seed)

    def restart(self, seed: int) -> None:
        """Every episode anew."""
        self._rng = np.random.default_rng(seed)
        self._box, self._goal = np.zeros((self.trials, 3)), np.zeros((self.trials, 3))
        self._age = np.zeros(self.trials, dtype=int)
        self.history = np.zeros((self.trials, HISTORY, SENSED))
        """(trials, HISTORY, SENSED) oldest first."""
        self.begin(np.ones(self.trials, dtype=bool))
        self._age = self._rng.integers(0, LONGEST, self.trials)  # not all over at once

    @property
    def view(self) -> BoxView:
        """What the policy sees of the boxes."""
        return BoxView(self._box, self._goal, self.any_yaw)

    def push(self, pushes: Pushes, numbers: Array) -> tuple[Array, Array, Array, Array]:
        """One push each: reward, over for good, over by time, arrived, (trials,) each.

        Args:
            pushes: (trials,).
            numbers: of the network that it was made from (trials, NUMBERS).
        """
        r, before = self.reward, self._cost()
        after, sensed = self.world.push(self._box, pushes, shifted(numbers))
        fallen = ~np.isfinite(after).all(axis=-1)
        self._box = np.where(fallen[:, None], self._box, after)
        self.history = np.concatenate([self.history[:, 1:], sensed[:, None]], axis=1)
        self._age += 1
        distance, turn = errors(self._box, self._goal)
        arrived = ~fallen & (distance < MARGIN * NEAR) & (self.any_yaw | (turn < MARGIN * TURNED))
        lost = fallen | (distance > LOST)
        gained = r.nearer * (before - self._cost()) + r.arrived * arrived + r.push
        gained = np.where(lost, r.lost, gained) + r.shifted * np.sum(
            np.square(np.clip(numbers[:, 3:], -1.0, 1.0)), axis=-1
        )
        return gained, arrived | lost, self._age >= LONGEST, arrived

    def begin(self, which: Array) -> None:
        """New episodes in some trials, (trials,) of bool."""
        count = int(which.sum())
        rows = self._rng.integers(0, POOL, count)
        start, goal = self._pool.start[rows], self._pool.goal[rows].copy()
        goal[:, 2] = start[:, 2] + self.yaw_share * (goal[:, 2] - start[:, 2])
        self._box[which], self._goal[which], self._age[which], self.history[which] = start, goal, 0, 0.0

    def _cost(self) -> Array:
        """(trials,) how far boxes are from their goals [m]."""
        distance, turn = errors(self._box, self._goal)
        return np.minimum(distance + (0.0 if self.any_yaw else WEIGHT) * turn, 0.5)
