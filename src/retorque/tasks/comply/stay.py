"""A policy that always asks for the same."""

from __future__ import annotations

from retorque.control.comply.compliance_action import ComplianceAction
from retorque.robots.state import State


class Stay:
    """Holds one compliant command.

    Args:
        action: what is asked for at every tick.
    """

    period = 0.0

    def __init__(self, action: ComplianceAction):
        self._action = action

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> ComplianceAction:
        return self._action
