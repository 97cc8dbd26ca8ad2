"""What turns an action into a command for the ideal robot."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Literal, TypeVar

from retorque.control.action import Action
from retorque.robots.command import Command
from retorque.robots.state import State

A = TypeVar("A", bound=Action, contravariant=True)


class Controller(ABC, Generic[A]):
    """A controller knows the ideal robot only; it works on one state (n,) or a batch (trials, n)."""

    gives: Literal["torque", "position"] = "torque"
    """What its commands hold."""

    def reset(self, state: State) -> None:
        """A run, or a stretch of it, begins here."""

    @abstractmethod
    def command(self, state: State, action: A) -> Command:
        """What the ideal robot should be told for an action at a state; torques include gravity."""
