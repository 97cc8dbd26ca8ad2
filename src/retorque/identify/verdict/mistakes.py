"""Mistakes that strangers make with logs, beside those of `damage`: two at once, one joint's unit, a load."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.signal import butter, filtfilt

from retorque.identify.verdict.damage import Damage, RawLog
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

LOAD = 0.03
"""Mass of the load that appears over the largest torque limit: 2.6 kg on a Panda [kg/(N·m)]."""
SMOOTH = 4.0
"""Cut-off of the accelerations that the load feels [Hz]."""


def _sized(log: RawLog, size: dict[int, float]) -> RawLog:
    """Some joints' torques as multiples of themselves."""
    factor = np.ones(log.torque.shape[1])
    factor[list(size)] = list(size.values())
    return replace(log, torque=log.torque * factor)


def _in_degrees(log: RawLog, joint: int) -> RawLog:
    """One joint in degrees, its velocity as well."""
    factor = np.ones(log.torque.shape[1])
    factor[joint] = np.rad2deg(1.0)
    velocity = None if log.velocity is None else log.velocity * factor
    return replace(log, position=log.position * factor, velocity=velocity)


def _halfway(log: RawLog, joint: int) -> RawLog:
    """An encoder that freezes in the middle."""
    half, position = len(log.time) // 2, log.position.copy()
    position[half:, joint] = position[half, joint]
    return replace(log, position=position)


def _all_frozen(log: RawLog) -> RawLog:
    """A logger that repeats its last row from the middle on."""
    rows = np.minimum(np.arange(len(log.time)), len(log.time) // 2)
    velocity = None if log.velocity is None else log.velocity[rows]
    return replace(log, position=log.position[rows], velocity=velocity, torque=log.torque[rows])


def _moved_on(log: RawLog, what: str) -> RawLog:
    """Every joint's columns under the next joint's name."""
    torque = np.roll(log.torque, 1, axis=1)
    if what == "torque":
        return replace(log, torque=torque)
    velocity = None if log.velocity is None else np.roll(log.velocity, 1, axis=1)
    return replace(log, position=np.roll(log.position, 1, axis=1), velocity=velocity, torque=torque)


def _late(log: RawLog, seconds: float) -> RawLog:
    rows = round(seconds * log.rate)
    torque = np.roll(log.torque, rows, axis=0)
    torque[:rows] = log.torque[0]
    return replace(log, torque=torque)


def _weight(robot: Robot, position: Array) -> Array:
    """(rows, n) torque that holds the arm [N·m]."""
    still = np.zeros_like(position)
    return RigidBody(robot).inverse_dynamics(position, still, still)


def _loaded(robot: Robot, log: RawLog) -> RawLog:
    """A load 10 cm before the last joint that is picked up halfway, its inertia as well as its weight."""
    limits = robot.torque_limit[np.isfinite(robot.torque_limit)]
    mass = LOAD * (float(np.max(limits)) if len(limits) else 50.0)
    hidden = Parameters.ideal(robot).with_payload(mass, np.array([0.0, 0.0, 0.1]), mass * 0.05**2 * np.eye(3))
    heavy = RigidBody(robot, hidden.total_inertial(robot), robot.armature)
    b, a = butter(2, SMOOTH, fs=log.rate)
    velocity = np.gradient(log.position, 1.0 / log.rate, axis=0) if log.velocity is None else log.velocity
    velocity = filtfilt(b, a, velocity, axis=0)
    state = (log.position, velocity, np.gradient(velocity, 1.0 / log.rate, axis=0))
    extra = heavy.inverse_dynamics(*state) - RigidBody(robot).inverse_dynamics(*state)
    extra[: len(extra) // 2] = 0.0
    return replace(log, torque=log.torque + extra)


def mistakes(robot: Robot) -> list[Damage]:
    """The list, for one robot's logs."""

    def case(name: str, cause: str, spoil: Callable[[RawLog], RawLog]) -> Damage:
        return Damage(name=name, cause=cause, spoil=spoil)

    def no_weight(log: RawLog) -> RawLog:
        return replace(log, torque=log.torque - _weight(robot, log.position))

    return [
        case("torques of joints 2 and 3 reversed", "sign", lambda log: _sized(log, {1: -1.0, 2: -1.0})),
        case(
            "joint 2 reversed, all 80 ms late",
            "sign",
            lambda log: _late(_sized(log, {1: -1.0}), 0.08),
        ),
        case("torque of joint 3 x 3", "scale", lambda log: _sized(log, {2: 3.0})),
        case("torque of joint 2 x 0.4", "scale", lambda log: _sized(log, {1: 0.4})),
        case("torque of joint 2 x 1000 (mA for A)", "scale", lambda log: _sized(log, {1: 1e3})),
        case("joint 2 in degrees", "scale", lambda log: _in_degrees(log, 1)),
        case("encoder freezes halfway", "frozen channel", lambda log: _halfway(log, 1)),
        case("everything freezes halfway", "frozen channel", _all_frozen),
        case("joints moved on by one", "permutation", lambda log: _moved_on(log, "all")),
        case("torques moved on by one", "permutation", lambda log: _moved_on(log, "torque")),
        case("weight left out", "gravity", no_weight),
        case("load picked up halfway", "load", lambda log: _loaded(robot, log)),
    ]
