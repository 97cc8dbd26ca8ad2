"""The ROS 2 messages that carry joint states and efforts, as DDS has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyclonedds.idl import make_idl_struct
from cyclonedds.idl.types import float64, int32, sequence, uint32


def _message(package: str, title: str, /, **fields: Any) -> Any:
    """A message type under the name that ROS 2 gives it on DDS."""
    return make_idl_struct(title, f"{package}.msg.dds_.{title}_", fields)


def _many(kind: Any) -> Any:
    """The type of any number of something."""
    return sequence.__class_getitem__(kind)


Time = _message("builtin_interfaces", "Time", sec=int32, nanosec=uint32)
Header = _message("std_msgs", "Header", stamp=Time, frame_id=str)
JointState = _message(
    "sensor_msgs",
    "JointState",
    header=Header,
    name=_many(str),
    position=_many(float64),
    velocity=_many(float64),
    effort=_many(float64),
)
"""Positions [rad], velocities [rad/s] and efforts [N·m] beside the joints' names."""
MultiArrayDimension = _message("std_msgs", "MultiArrayDimension", label=str, size=uint32, stride=uint32)
MultiArrayLayout = _message("std_msgs", "MultiArrayLayout", dim=_many(MultiArrayDimension), data_offset=uint32)
Float64MultiArray = _message("std_msgs", "Float64MultiArray", layout=MultiArrayLayout, data=_many(float64))
"""What ros2_control's effort controllers listen to."""


def joint_state(
    time: float, names: list[str], position: list[float], velocity: list[float], effort: list[float]
) -> Any:
    """A JointState at a time [s]."""
    stamp = Time(sec=int(time), nanosec=round(1e9 * (time % 1.0)) % 10**9)
    return JointState(
        header=Header(stamp=stamp, frame_id=""), name=names, position=position, velocity=velocity, effort=effort
    )


def efforts(values: Sequence[float]) -> Any:
    """A Float64MultiArray of efforts [N·m]."""
    return Float64MultiArray(layout=MultiArrayLayout(dim=[], data_offset=0), data=list(values))
