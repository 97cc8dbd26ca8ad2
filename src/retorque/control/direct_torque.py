"""Direct torque: the policy speaks torque, and nothing is added."""

from __future__ import annotations

from retorque.control.action import TorqueAction
from retorque.control.controller import Controller
from retorque.robots.command import Command
from retorque.robots.state import State


class DirectTorque(Controller[TorqueAction]):
    """τ = the action."""

    def command(self, state: State, action: TorqueAction) -> Command:
        return Command(torque=action.torque)
