"""Direct torque: the policy speaks torque, and nothing is added."""

from __future__ import annotations

import numpy as np

from retorque.control.action import TorqueAction
from retorque.control.controller import Controller
from retorque.robots.state import State

Array = np.ndarray


class DirectTorque(Controller):
    """τ = the action."""

    def torque(self, state: State, action: TorqueAction) -> Array:
        return action.torque
