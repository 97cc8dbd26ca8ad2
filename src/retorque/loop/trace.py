"""What happened in a run."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(frozen=True)
class Trace:
    """One row for every tick that was kept."""

    time: Array
    """(ticks,) after each of them, from the start of the run [s]."""
    position: Array
    """(ticks, ..., n) joint positions after each: true ones of a simulation, reported ones of a robot [rad]."""
    torque: Array
    """(ticks, ..., n) commands; zero where the robot takes positions [N·m]."""
