"""Compliance on a robot that takes torques: joint impedance follows the positions that compliance asks for."""

from __future__ import annotations

from typing import Literal

import numpy as np

from retorque.control.action import JointAction
from retorque.control.comply.compliance import Compliance, PositionOnly
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.controller import Controller
from retorque.control.joint_impedance import JointImpedance
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.work.array import Array

SMOOTH = 0.02
"""Time constant of the targets' velocity [s]."""


class TorqueCompliance(Controller[ComplianceAction]):
    """The same compliant command, driven as torques.

    Args:
        compliance: gives joint positions.
        impedance: follows them.
        timestep: control period [s].
    """

    gives: Literal["torque", "position"] = "torque"

    def __init__(self, compliance: Compliance | PositionOnly, impedance: JointImpedance, timestep: float = 1e-3):
        self.compliance, self.impedance = compliance, impedance
        self._share, self._timestep = min(1.0, timestep / SMOOTH), timestep
        self._before: Array | None = None
        self._velocity: Array = np.zeros(0)

    @property
    def codes(self) -> Array:
        """(trials,) `ComplyCode`s of the last tick."""
        return self.compliance.codes

    def reset(self, state: State) -> None:
        self.compliance.reset(state)
        self._before, self._velocity = None, np.zeros_like(state.position)

    def command(self, state: State, action: ComplianceAction) -> Command:
        target = self.compliance.command(state, action).position
        assert target is not None
        if self._before is not None:
            self._velocity = self._velocity + self._share * ((target - self._before) / self._timestep - self._velocity)
        self._before = target
        return self.impedance.command(state, JointAction(target, self._velocity))
