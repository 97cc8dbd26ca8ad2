"""What a joint can be told."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(slots=True)
class Command:
    """Torques, or targets of the robot's own servos; exactly one of torque and position is given."""

    torque: Array | None = None
    """(..., n) gravity included [N·m]."""
    position: Array | None = None
    """(..., n) [rad]"""
    velocity: Array | None = None
    """(..., n) that goes with a position [rad/s]."""
    gripper: Array | None = None
    """(...) between the fingers of a plant that has some; any other leaves it alone [m]."""
