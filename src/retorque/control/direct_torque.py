"""Direct torque: the policy speaks torque, and nothing is added."""

from __future__ import annotations

from retorque.control.action import TorqueAction
from retorque.control.controller import Controller
from retorque.robots.state import State
from retorque.work.array import Array


class DirectTorque(Controller):
    """τ = the action."""

    def torque(self, state: State, action: TorqueAction) -> Array:
        return action.torque
