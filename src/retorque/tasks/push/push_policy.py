"""A learnt network as a policy: the hand comes down beside the box by script, then the network drives it."""

from __future__ import annotations

import numpy as np

from retorque.control.action import PoseAction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.push.box_task import errors, planar
from retorque.tasks.push.hand_drive import DECISION, SENSED, BoxView, HandDrive, approach_place, sense
from retorque.tasks.push.legs import Legs
from retorque.tasks.push.push_network import HISTORY, PushNetwork
from retorque.tasks.push.push_planner import ARRIVED, HEIGHT, SAFE
from retorque.work.array import Array

UP, OVER, DOWN = 1.1, 0.5, 0.5
"""Times of the approach [s]."""


class NetworkPush:
    """Decides ten times a second where the hand goes; sees joints and box, knows the goal.

    Args:
        robot: the ideal robot.
        goal: (trials, 3) x, y [m] and yaw [rad].
        network: what decides.
        any_yaw: whether only the place counts.
    """

    period = 0.02

    def __init__(self, robot: Robot, goal: Array, network: PushNetwork, *, any_yaw: bool = False):
        self.goal, self.any_yaw, self.network = goal, any_yaw, network
        self._robot, self._body = robot, RigidBody(robot)

    def reset(self, state: State) -> None:
        assert state.objects is not None
        hand, _ = self._body.frame_pose(self._robot.end_effector, state.position)
        rotation = self._body.frame_pose(self._robot.end_effector, self._robot.home)[1]
        box = planar(state.objects[:, 0])
        seen = np.isfinite(box).all(axis=-1, keepdims=True)
        place = approach_place(np.where(seen, box, self.goal), self.goal)
        heights = (np.full((len(hand), 1), z) for z in (SAFE, SAFE, HEIGHT))
        points = [np.concatenate([xy, z], axis=1) for xy, z in zip((hand[:, :2], place, place), heights, strict=True)]
        self._legs = Legs(len(hand), rotation)
        times = np.tile([UP, OVER, DOWN], (len(hand), 1))
        self._legs.begin(np.ones(len(hand), dtype=bool), state.time, np.stack([hand, *points], axis=1), times)
        self._next = state.time + UP + OVER + DOWN
        self._drive = HandDrive(self._legs.last, rotation)
        self._history = np.zeros((len(hand), HISTORY, SENSED))

    def act(self, state: State) -> PoseAction:
        if state.time >= self._next - 1e-9:
            self._next += DECISION
            self._decide(state)
        elif not self._legs.over(state.time).all():
            return self._legs.at(state.time)
        return self._drive.at(state.time)

    def _decide(self, state: State) -> None:
        assert state.objects is not None
        hand, _ = self._body.frame_pose(self._robot.end_effector, state.position)
        jacobian = self._body.jacobian(self._robot.end_effector, state.position)
        velocity = np.matmul(jacobian[:, :3], state.velocity[..., None])[..., 0]
        self._history = np.roll(self._history, -1, axis=1)
        self._history[:, -1] = sense(state.position, state.velocity, hand, self._drive)
        view = BoxView(state.objects[:, 0], self.goal, self.any_yaw)
        action = view.to_world(self.network(view.observe(hand, velocity, self._drive), self._history))
        distance, turn = errors(view.box, self.goal)
        rest = (distance < ARRIVED[0]) & (self.any_yaw | (turn < ARRIVED[1]))
        rest |= ~np.isfinite(view.box).all(axis=-1)  # a box that is not seen is not pushed
        action[rest] = self._drive.action[rest] * [0.0, 0.0, 1.0]
        self._drive.tell(state.time, action, hand)
