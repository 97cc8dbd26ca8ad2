"""What a robot reports each tick."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(slots=True)
class State:
    """One tick's report, from one robot (n,) or a batch (trials, n)."""

    time: float
    """Seconds since the start [s]."""
    position: Array
    """(..., n) [rad]"""
    velocity: Array
    """(..., n) [rad/s]"""
    torque: Array
    """(..., n) commanded torque of the tick that led here, as the robot reports it [N·m]."""
