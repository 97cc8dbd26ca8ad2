"""ACT as a policy: overlapping chunks, averaged over time."""

from __future__ import annotations

import numpy as np

from retorque.control.action import JointAction
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.cameras.ray_camera import RayCamera
from retorque.tasks.flip.act_network import ActNetwork
from retorque.tasks.flip.gripper import CLOSED, OPEN
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

AGEING = 0.01
"""How much less each newer chunk counts: weights exp(-AGEING k), oldest first, as in ACT."""


class ActPolicy:
    """Joint targets and the gripper's at 20 Hz: every chunk that speaks of now, the oldest with the most weight.

    Args:
        robot: the arm it was trained for.
        network: what predicts chunks.
    """

    period = 0.05

    def __init__(self, robot: Robot, network: ActNetwork):
        if network.shape.joints != robot.n:
            raise RetorqueError(f"this ACT moves {network.shape.joints} joints, robot '{robot.name}' has {robot.n}")
        self.robot, self.network = robot, network
        self.eyes: RayCamera | None = None
        """The camera of a network that sees pictures; `sight.open_eyes` gives it."""

    def reset(self, state: State) -> None:
        if self.network.shape.sees and self.eyes is None:
            raise RetorqueError("this ACT sees pictures and has no camera; give it one by `sight.open_eyes` first")
        self._chunks: list[Array] = []

    def act(self, state: State) -> JointAction:
        n, joints = self.robot.n, np.atleast_2d(state.position)
        self._chunks.insert(0, self.network(joints, self._seen(state)))
        del self._chunks[self.network.shape.chunk :]
        told = np.stack([chunk[:, age] for age, chunk in enumerate(self._chunks)])  # newest first
        weight = np.exp(-AGEING * np.arange(len(told)))[::-1]
        mean = np.tensordot(weight / weight.sum(), told, axes=1)
        target, width = mean[:, :n], np.clip(mean[:, n], CLOSED, OPEN)
        if not np.all(np.isfinite(target)):
            target = np.where(np.isfinite(target), target, joints)
        target = np.clip(target, self.robot.lower, self.robot.upper).reshape(state.position.shape)
        return JointAction(target, np.zeros_like(target), gripper=width.reshape(target.shape[:-1]))

    def _seen(self, state: State) -> Array:
        """What the network looks at: pictures, or the cube's pose (trials, 7)."""
        if self.network.shape.sees:
            assert self.eyes is not None
            return self.eyes.pictures()
        assert state.objects is not None
        return state.objects[..., 0, :7].reshape(-1, 7)
