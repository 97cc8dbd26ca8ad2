"""Joint targets as they are, for robots with position servos."""

from __future__ import annotations

from typing import Literal

from retorque.control.action import JointAction
from retorque.control.controller import Controller
from retorque.robots.command import Command
from retorque.robots.state import State


class JointTargets(Controller[JointAction]):
    """The action's positions go to the servos, which damp every motion on the way there."""

    gives: Literal["torque", "position"] = "position"

    def command(self, state: State, action: JointAction) -> Command:
        return Command(position=action.position)
