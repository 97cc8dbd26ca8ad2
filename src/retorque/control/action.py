"""What policies ask of controllers."""

from __future__ import annotations

from dataclasses import dataclass

from retorque.work.array import Array


class Action:
    """What a policy asks for; each controller says which kind it takes."""

    __slots__ = ()


@dataclass(slots=True)
class JointAction(Action):
    """Where the joints should be."""

    position: Array
    """(..., n) [rad]"""
    velocity: Array
    """(..., n) [rad/s]"""
    acceleration: Array | None = None
    """(..., n) [rad/s²], for controllers that feed it forward."""
    gripper: Array | None = None
    """(...) between the fingers, where a policy moves them too [m]."""


@dataclass(slots=True)
class PoseAction(Action):
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
class TorqueAction(Action):
    """The torque itself."""

    torque: Array
    """(..., n) [N·m]"""
