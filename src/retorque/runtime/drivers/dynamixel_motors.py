"""The motor cards of Dynamixel servos as a bus needs them, and their rotors in the robot's card."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from retorque.robots.motor import Motor, load_motor, motors_of
from retorque.robots.robot import Link, Robot
from retorque.work.errors import RetorqueError


def servo_motors(robot: Robot, motor: str = "") -> tuple[Motor, ...]:
    """The motor of each joint: the one named, or what the card says; all of one unit of current."""
    motors = (load_motor(motor),) * robot.n if motor else motors_of(robot)
    for one in motors:
        one.require("torque_constant", "current_step")
    if len({one.current_step for one in motors}) > 1:
        raise RetorqueError("servos with different units of current on one bus are not supported; drive them apart")
    return motors


def with_rotors(robot: Robot, motors: Sequence[Motor]) -> Robot:
    """The robot with the motors' rotor inertias where its card has none: they outweigh a finger's links."""
    rotors = iter(motors)

    def one(link: Link) -> Link:
        if link.joint is None or link.joint.kind == "free":
            return link
        motor = next(rotors)
        motor.require("armature")
        armature = link.joint.armature or motor.armature
        return replace(link, joint=replace(link.joint, armature=armature))

    return robot.with_links(tuple(one(link) for link in robot.links))
