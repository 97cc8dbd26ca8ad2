"""Robots behind `Plant`, by name."""

from __future__ import annotations

from collections.abc import Mapping

DRIVERS: Mapping[str, tuple[str, str]] = {
    "franka": ("retorque.runtime.drivers.franka:Franka", "Franka arms over libfranka, joint torques at 1 kHz"),
    "dynamixel": ("retorque.runtime.drivers.dynamixel:Dynamixel", "Dynamixel servos, goal current at 200 Hz"),
    "ros2": ("retorque.runtime.drivers.ros2:Ros2", "robots on ROS 2: joint states and efforts over DDS"),
    "ur": ("retorque.runtime.drivers.ur:UniversalRobot", "Universal Robots over RTDE, direct torque at 500 Hz"),
}
"""Every driver on board: where its class is, and what it drives."""

__all__ = ["DRIVERS"]
