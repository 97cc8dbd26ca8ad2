"""What policies ask of controllers."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


@dataclass(slots=True)
class JointAction:
    """Where the joints should be."""

    position: Array
    """(..., n) [rad]"""
    velocity: Array
    """(..., n) [rad/s]"""


@dataclass(slots=True)
class PoseAction:
    """Where a frame should be."""

    position: Array
    """(..., 3) [m]"""
    rotation: Array
    """(..., 3, 3)"""
    velocity: Array
    """(..., 3) [m/s]"""
    angular_velocity: Array
    """(..., 3) [rad/s]"""


@dataclass(slots=True)
class TorqueAction:
    """The torque itself."""

    torque: Array
    """(..., n) [N·m]"""
