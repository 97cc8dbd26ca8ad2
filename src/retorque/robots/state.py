"""What a robot reports each tick."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(slots=True)
class Base:
    """Where a free base is and how it moves, in world axes; `physics.rigid_body` turns it for Pinocchio."""

    pose: Array
    """(..., 7) position [m], then the quaternion (w, x, y, z)."""
    twist: Array
    """(..., 6) linear [m/s], then angular velocity [rad/s]."""


@dataclass(slots=True)
class MotorReport:
    """What the motors themselves say; what a drive does not report is None."""

    current: Array | None = None
    """(..., n) [A]"""
    pwm: Array | None = None
    """(..., n) share of the bus voltage, -1 to 1."""
    voltage: Array | None = None
    """(..., n) of the bus [V]."""
    temperature: Array | None = None
    """(..., n) [°C]"""


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
    base: Base | None = None
    """Of a robot whose base is free."""
    motor: MotorReport | None = None
    """Where the drives report more than torque."""
    objects: Array | None = None
    """(..., k, 13) poses (position, quaternion) and twists (linear, angular) of the scene's movable bodies."""
