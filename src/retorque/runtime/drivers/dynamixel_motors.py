"""What is known of Dynamixel servos: torque per current, the unit of current, and the rotor's inertia at the joint."""

from __future__ import annotations

from dataclasses import dataclass, replace

from retorque.robots.robot import Link, Robot
from retorque.work.errors import unknown


@dataclass(frozen=True, kw_only=True)
class ServoMotor:
    """One type of servo; measured by the makers of ToddlerBot, units of current from the manual."""

    torque_constant: float
    """Torque at the joint per current [N·m/A]."""
    current_unit: float
    """[A]"""
    armature: float
    """Rotor inertia seen at the joint [kg·m²]."""


MOTORS = {
    "XC330": ServoMotor(torque_constant=0.8, current_unit=0.001, armature=0.0048),
    "XM430-W210": ServoMotor(torque_constant=1.054, current_unit=0.00269, armature=0.0022),
    "XM430-W350": ServoMotor(torque_constant=1.667, current_unit=0.00269, armature=0.0025),
}
"""Servos that can be driven by current, by name."""


def motors_of(robot: Robot, motor: str = "") -> list[ServoMotor]:
    """The motor of each joint: the one named, or what the card says."""
    names = [motor or joint.motor for joint in robot.joints]
    for name in names:
        if name not in MOTORS:
            raise unknown(f"motor of '{robot.name}' (name it in the wiring)", name, MOTORS)
    return [MOTORS[name] for name in names]


def with_rotors(robot: Robot, motors: list[ServoMotor]) -> Robot:
    """The robot with the motors' rotor inertias where its card has none: they outweigh a finger's links."""
    rotors = iter(motors)

    def one(link: Link) -> Link:
        if link.joint is None or link.joint.kind == "free":
            return link
        motor = next(rotors)
        armature = link.joint.armature or motor.armature
        return replace(link, joint=replace(link.joint, armature=armature))

    return robot.with_links(tuple(one(link) for link in robot.links))
