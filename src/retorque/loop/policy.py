"""Anything that acts."""

from __future__ import annotations

from typing import Protocol

from retorque.control.action import Action
from retorque.robots.state import State


class Policy(Protocol):
    """A reference, a learned policy or a planner; it acts at its own rate and sees the state."""

    period: float
    """Time between two actions [s]; 0: one every tick."""

    def reset(self, state: State) -> None:
        """A run, or a stretch of it, begins at this state."""

    def act(self, state: State) -> Action:
        """The action from here on, until the next one."""
