"""Position servos: the joints' own controllers, which hold a target with a torque that has a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from retorque.work.array import Array


class PositionLoop(Protocol):
    """What turns a joint's target into its torque, at every physics step."""

    def torque(
        self, target: Array, target_velocity: Array | float, position: Array, velocity: Array, limit: Array
    ) -> tuple[Array, Array]:
        """The torque (..., n) [N·m], and how fast it falls with velocity (..., n) [N·m·s/rad]."""


@dataclass(frozen=True, kw_only=True)
class Servo:
    """stiffness x (target - position) + damping x (target's velocity - velocity), within the torque limits."""

    stiffness: Array
    """(n,) or (trials, n) [N·m/rad]."""
    damping: Array
    """(n,) or (trials, n) [N·m·s/rad]."""

    def torque(
        self, target: Array, target_velocity: Array | float, position: Array, velocity: Array, limit: Array
    ) -> tuple[Array, Array]:
        """The torque (..., n) [N·m], and how fast it falls with velocity (..., n) [N·m·s/rad]."""
        wanted = self.stiffness * (target - position) + self.damping * (target_velocity - velocity)
        return np.clip(wanted, -limit, limit), np.where(np.abs(wanted) < limit, self.damping, 0.0)
