"""UniFP and FACET as controllers: a network moves the right arm, balance moves the rest."""

from __future__ import annotations

from typing import Literal

import numpy as np

from retorque.control.comply.compliance import Posture
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.controller import Controller
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.robots.state import State
from retorque.tasks.force_policies.force_arm import force_arm
from retorque.tasks.force_policies.force_network import ForceNetwork, load_force_policy
from retorque.tasks.force_policies.force_view import ForceView
from retorque.work.array import Array


class LearnedForce(Controller[ComplianceAction]):
    """Joint targets of the right arm from a network that was trained on a held torso; the others stay.

    Args:
        method: unifp or facet.
        robot: the whole one, with the pen among its frames.
        start: (n,) where it stands [rad].
        trials: robots served at once.
        posture: of legs and waist; it is told UniFP's own estimate of the force.
        network: default: the one on board.
    """

    gives: Literal["torque", "position"] = "position"

    def __init__(
        self,
        method: str,
        robot: Robot,
        start: Array,
        trials: int,
        posture: Posture | None = None,
        network: ForceNetwork | None = None,
    ):
        self.robot, self.posture, self.trials = robot, posture, trials
        self._arm, self._joints = force_arm(robot, start)
        self.view = ForceView(self._arm, trials)
        self._torso = np.array(robot.links[0].position)
        self.network = network or load_force_policy(method, robot, self.view.size, self._arm.n)
        self._start = np.asarray(start, dtype=float)
        self.codes = np.zeros(trials, dtype=np.int64)
        """(trials,) `ComplyCode`s; it has none of its own."""

    def reset(self, state: State) -> None:
        self.view.reset()
        if self.posture is not None:
            self.posture.reset(state, np.reshape(state.position, (self.trials, -1)))

    def command(self, state: State, action: ComplianceAction) -> Command:
        trials, n = self.trials, self.robot.n
        q = np.reshape(state.position, (trials, n))[:, self._joints]
        v = np.reshape(state.velocity, (trials, n))[:, self._joints]
        base = state.base if self.posture is None else self.posture.locate(state)
        assert base is not None
        pose = np.reshape(base.pose, (trials, 7))
        turn = np.stack([from_quaternion(quaternion) for quaternion in pose[:, 3:]])
        place = np.broadcast_to(action.position, (trials, *np.shape(action.position)[-2:]))[:, -1]
        rotation = np.broadcast_to(action.rotation, (trials, *np.shape(action.rotation)[-3:]))[:, -1]
        place = np.einsum("tji,tj->ti", turn, place - pose[:, :3]) + self._torso
        rotation = np.einsum("tji,tjk->tik", turn, rotation)
        force = np.zeros((trials, 3))
        if action.wrench is not None:
            wrench = np.broadcast_to(action.wrench, (trials, *np.shape(action.wrench)[-2:]))
            force = np.einsum("tji,tj->ti", turn, wrench[:, -1, :3])
        matrix = np.broadcast_to(action.stiffness, (trials, *np.shape(action.stiffness)[-3:]))[:, -1]
        stiffness = np.diagonal(matrix, axis1=-2, axis2=-1)[:, [0, 1, 2, 3]]
        share, felt = self.network(self.view.observe(q, v, place, rotation, force, stiffness))
        told = np.tile(self._start, (trials, 1))
        told[:, self._joints] = self.view.targets(share)
        if self.posture is not None:
            hands = np.zeros((trials, np.shape(action.position)[-2], 3))
            hands[:, -1] = np.einsum("tij,tj->ti", turn, felt)
            self.posture.feel(hands)
            action = self.posture.limit(action)
            self.posture.adjust(state, action, told)
        return Command(position=told.reshape(state.position.shape))
