"""A learnt network in the planner's place: it chooses each push at once instead of comparing many."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.push.push_choice import SENSED, BoxView, sense, shifted, shifted_ends
from retorque.tasks.push.push_network import HISTORY, PushNetwork
from retorque.tasks.push.push_planner import PushPlanner, push_legs
from retorque.tasks.push.pushes import CLEARANCE, Pushes, change_of
from retorque.work.array import Array


class NetworkPush(PushPlanner):
    """One push after the other; keeps what became of the last ones, for a network that reads it.

    Args:
        robot: the ideal robot.
        goal: (trials, 3) x, y [m] and yaw [rad].
        network: what chooses.
        any_yaw: whether only the place counts.
    """

    def __init__(self, robot: Robot, goal: Array, network: PushNetwork, *, any_yaw: bool = False):
        super().__init__(robot, goal, any_yaw=any_yaw)
        self.network, self._sags = network, network.latent > 0

    def reset(self, state: State) -> None:
        super().reset(state)
        trials = len(self.goal)
        self._history = np.zeros((trials, HISTORY, SENSED))
        self._box = np.full((trials, 3), np.nan)
        self._did = Pushes(*(np.zeros(trials, dtype=kind) for kind in (int, float, float, float)))
        self._shift = np.zeros((trials, 3))
        self._state = state

    def act(self, state: State) -> PoseAction:
        self._state = state
        return super().act(state)

    def _plan(self, idle: Array, time: float, box: Array) -> None:
        self._remember(idle, box)
        push, seen = self._wanted(idle, box)
        view = BoxView(np.where(seen[:, None], box, self.goal), self.goal, self.any_yaw)
        preference, numbers = self.network(view.observe(), self._history)
        options = view.pushes(numbers)
        best = np.argmax(np.where(view.reachable(options), np.nan_to_num(preference, nan=-1e9), -np.inf), axis=-1)
        chosen, shift = options.take(best), shifted(numbers)[np.arange(len(best)), best]
        first, last = shifted_ends(chosen, view.box, shift, sags=self._sags)
        length = np.linalg.norm(last - first, axis=-1) - CLEARANCE
        self._legs.begin(push, time, *push_legs(self._legs.last, first, last, length, up=shift[:, 2]))
        self._box = np.where(push[:, None], box, np.where(idle[:, None], np.nan, self._box))
        for mine, new in ((self._did.face, chosen.face), (self._did.offset, chosen.offset)):
            mine[push] = new[push]
        for mine, new in ((self._did.length, chosen.length), (self._did.tilt, chosen.tilt), (self._shift, shift)):
            mine[push] = new[push]

    def _remember(self, idle: Array, box: Array) -> None:
        """Keep what became of the pushes that are over."""
        over = idle & np.isfinite(self._box).all(axis=-1) & np.isfinite(box).all(axis=-1)
        if not over.any():
            return
        joints = self._state.position
        hand, _ = self._body.frame_pose(self._robot.end_effector, joints)
        became = sense(hand - self._legs.last, change_of(self._box, box), self._did, self._shift, joints)
        rolled = np.concatenate([self._history[:, 1:], became[:, None]], axis=1)
        self._history = np.where(over[:, None, None], rolled, self._history)
