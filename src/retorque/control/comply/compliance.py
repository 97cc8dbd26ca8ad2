"""Compliance control: what is felt moves virtual masses, and the joints follow them; for servos and for torques."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Protocol

import numpy as np

from retorque.control.comply.admittance import Admittance
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.comply_code import ComplyCode
from retorque.control.comply.servo_feed_forward import ServoFeedForward
from retorque.control.comply.site_kinematics import SiteKinematics
from retorque.control.controller import Controller
from retorque.physics.kernels.compiled import all_finite, all_true
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.command import Command
from retorque.robots.state import Base, State
from retorque.work.array import Array


class FeltWrench(Protocol):
    """What a wrench source says at a tick."""

    wrench: Array
    """(trials, sites, 6) on the robot, world axes [N, N·m]."""
    trusted: Array
    """(trials, sites)"""
    codes: Array
    """(trials,) `ComplyCode`s."""


class WrenchSource(Protocol):
    """Estimates wrenches at the sites from reports; `sense.WrenchEstimator` is one."""

    tree: CompiledTree
    """At the last report."""

    def reset(self, state: State) -> None:
        """A run begins here."""

    def update(self, state: State) -> FeltWrench:
        """The wrenches at a report; once a tick."""


class Posture(Protocol):
    """What moves the joints that no site owns: balance, for one."""

    codes: Array
    """(trials,) `ComplyCode`s."""

    def reset(self, state: State, q: Array) -> None:
        """A run begins here."""

    def locate(self, state: State) -> Base | None:
        """Where the free base is thought to be, from what a real robot has."""

    def feel(self, force: Array) -> None:
        """Take in the forces at the sites (trials, sites, 3) [N]."""

    def limit(self, action: ComplianceAction) -> ComplianceAction:
        """The same action with a wrench that the posture can bear."""

    def adjust(self, state: State, action: ComplianceAction, q: Array) -> None:
        """Change the targets (trials, n) of its joints in place."""


class Compliance(Controller[ComplianceAction]):
    """Felt wrench, admittance, inverse kinematics: joint targets for a position-controlled robot.

    Args:
        source: what feels; its tree gives the poses to begin at.
        admittance: the virtual masses.
        kinematics: from site poses to joints.
        posture: of the other joints; default: they stay where they are.
        feed_forward: what soft servos are told on top, so that their joints arrive.
        blind: leave the felt wrench out (the paper's ablation without f_ext).
    """

    gives: Literal["torque", "position"] = "position"

    def __init__(
        self,
        source: WrenchSource,
        admittance: Admittance,
        kinematics: SiteKinematics,
        posture: Posture | None = None,
        *,
        feed_forward: ServoFeedForward | None = None,
        blind: bool = False,
    ):
        self.source, self.admittance, self.kinematics, self.posture = source, admittance, kinematics, posture
        self.blind = blind
        self.feed_forward = feed_forward
        trials = admittance.trials
        self.codes = np.zeros(trials, dtype=np.int64)
        """(trials,) `ComplyCode`s of the last tick."""
        self.felt: FeltWrench | None = None
        self._zero = np.zeros((trials, admittance.sites, 6))
        self._shape: tuple[int, ...] = ()

    def reset(self, state: State) -> None:
        self._shape = state.position.shape
        seen = self._located(state)
        self.source.reset(seen)
        tree = self.source.tree
        tree.at(seen)
        self.admittance.reset(tree.position, tree.rotation)
        q = np.reshape(state.position, (self.admittance.trials, -1))
        self.kinematics.reset(q)
        if self.feed_forward is not None:
            self.feed_forward.reset(q)
        if self.posture is not None:
            self.posture.reset(state, q)

    def command(self, state: State, action: ComplianceAction) -> Command:
        kinematics = self.kinematics
        if not all_finite(state.position.ravel(), state.velocity.ravel()):
            self.codes = np.full(len(self.codes), int(ComplyCode.BAD_STATE))
            return Command(position=kinematics.q.reshape(self._shape).copy())
        seen = self._located(state)
        felt = self.felt = self.source.update(seen)
        wrench = felt.wrench
        wary: Array | None = None
        if self.blind:
            wrench = self._zero
        elif not all_true(felt.trusted.ravel()):
            wrench = np.where(felt.trusted[..., None], felt.wrench, 0.0)
            wary = np.asarray(~felt.trusted.all(axis=-1))
            if action.wrench is not None:  # what cannot be felt is not pressed either
                pressed = np.where(felt.trusted[..., None], action.wrench, 0.0)
                action = replace(action, wrench=pressed)
        if self.posture is not None:
            self.posture.feel(felt.wrench[..., :3])
            action = self.posture.limit(action)
        self.admittance.step(action, wrench, state.time, wary)
        base = None if seen.base is None else np.reshape(seen.base.pose, (len(self.codes), 7))
        q = kinematics.step(self.admittance.position, self.admittance.rotation, base)
        codes: Array = felt.codes | self.admittance.codes | kinematics.codes
        told = None if self.blind else wrench
        q = q.copy() if self.feed_forward is None else q + self.feed_forward.offsets(self.source.tree, q, told)
        if self.posture is not None:
            self.posture.adjust(state, action, q)
            codes |= self.posture.codes
        self.codes = codes
        return Command(position=q.reshape(self._shape))

    def _located(self, state: State) -> State:
        if self.posture is None or state.base is None:
            return state
        base = self.posture.locate(state)
        return State(state.time, state.position, state.velocity, state.torque, base, state.motor, state.objects)


class PositionOnly(Controller[ComplianceAction]):
    """The position-control baseline: inverse kinematics of the desired poses, nothing felt.

    Args:
        tree: of the robot and its sites.
        kinematics: from site poses to joints.
        posture: of the other joints.
        feed_forward: as in `Compliance`, but nothing is felt.
    """

    gives: Literal["torque", "position"] = "position"

    def __init__(
        self,
        tree: CompiledTree,
        kinematics: SiteKinematics,
        posture: Posture | None = None,
        *,
        feed_forward: ServoFeedForward | None = None,
    ):
        self.feed_forward = feed_forward
        self.tree, self.kinematics, self.posture = tree, kinematics, posture
        self.codes = np.zeros(tree.trials, dtype=np.int64)
        self._shape: tuple[int, ...] = ()

    def reset(self, state: State) -> None:
        self._shape = state.position.shape
        q = np.reshape(state.position, (self.tree.trials, -1))
        self.kinematics.reset(q)
        if self.feed_forward is not None:
            self.feed_forward.reset(q)
        if self.posture is not None:
            self.posture.reset(state, q)

    def command(self, state: State, action: ComplianceAction) -> Command:
        base = state.base if self.posture is None or state.base is None else self.posture.locate(state)
        pose = None if base is None else np.reshape(base.pose, (self.tree.trials, 7))
        lead = (self.tree.trials, len(self.tree.frames))
        position = np.broadcast_to(action.position, (*lead, 3)).copy()
        rotation = np.broadcast_to(action.rotation, (*lead, 3, 3)).copy()
        q = self.kinematics.step(position, rotation, pose).copy()
        if self.feed_forward is not None:
            self.tree.update(np.reshape(state.position, q.shape), pose)
            q += self.feed_forward.offsets(self.tree, q, None)
        if self.posture is not None:
            self.posture.adjust(state, action, q)
        return Command(position=q.reshape(self._shape))
