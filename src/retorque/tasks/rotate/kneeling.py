"""A robot on its knees with a free base: legs that hold their pose, and hips that keep the torso as it began."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.comply.balance import pitch_and_yaw
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.state import Base, State
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class KneelingSettings:
    """Settings of the hips' feedback."""

    gain: float = 1.0
    """Turn of the hips against pitch since the start [rad/rad]."""
    damping: float = 0.05
    """... against pitch rate [s]."""
    most: float = 0.15
    """[rad]"""


class Kneeling:
    """The `Posture` of a robot whose knees stay where they are: the base is found from them and the IMU's orientation.

    Args:
        robot: with a free base.
        knees: frames on the floor that do not move.
        hips: joints that pitch the torso, left and right.
        trials: robots served at once.
        settings: gains.
    """

    def __init__(
        self,
        robot: Robot,
        knees: tuple[str, str],
        hips: tuple[str, str],
        trials: int = 1,
        settings: KneelingSettings | None = None,
    ):
        self.settings, self.trials, self._n = settings or KneelingSettings(), trials, robot.n
        self.tree = CompiledTree(robot, tuple(robot.frame(name) for name in knees), trials)
        self._hips = [robot.joint_names.index(name) for name in hips]
        self._planted, self._pitch = np.zeros((trials, 2, 3)), np.zeros(trials)
        self.codes = np.zeros(trials, dtype=np.int64)
        """(trials,) `ComplyCode`s; it has none of its own."""

    def reset(self, state: State, q: Array) -> None:
        """Kneel here."""
        assert state.base is not None
        pose = np.reshape(state.base.pose, (self.trials, 7))
        self.tree.update(q, pose)
        self._planted[:] = self.tree.position
        self._pitch = pitch_and_yaw(pose[:, 3:])[0]

    def locate(self, state: State) -> Base | None:
        """Base pose from the IMU's orientation and knees that stay."""
        assert state.base is not None
        pose = np.reshape(state.base.pose, (self.trials, 7)).copy()
        pose[:, :3] = 0.0
        self.tree.update(np.reshape(state.position, (self.trials, self._n)), pose)
        pose[:, :3] = np.mean(self._planted - self.tree.position, axis=1)
        return Base(pose.reshape(state.base.pose.shape), state.base.twist)

    def feel(self, force: Array) -> None:
        """What the hands feel changes nothing here."""

    def limit(self, action: ComplianceAction) -> ComplianceAction:
        """Hands that press on a ball carry weight; nothing is capped."""
        return action

    def adjust(self, state: State, action: ComplianceAction, q: Array) -> None:
        """Turn the hips against what the torso has pitched since the start; the right hip's axis is the other way."""
        assert state.base is not None
        s = self.settings
        pitch = pitch_and_yaw(np.reshape(state.base.pose, (self.trials, 7))[:, 3:])[0] - self._pitch
        rate = np.reshape(state.base.twist, (self.trials, 6))[:, 4]
        turn = np.clip(np.nan_to_num(s.gain * pitch + s.damping * rate), -s.most, s.most)
        q[:, self._hips[0]] += turn
        q[:, self._hips[1]] -= turn
