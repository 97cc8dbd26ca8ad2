"""What turns an action into the torque that the ideal robot would need."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from retorque.robots.state import State
from retorque.work.array import Array


class Controller(ABC):
    """A controller knows the ideal robot only; it works on one state (n,) or a batch (trials, n)."""

    @abstractmethod
    def torque(self, state: State, action: Any) -> Array:
        """Nominal torque for an action at a state, (..., n) [N·m], gravity included."""
