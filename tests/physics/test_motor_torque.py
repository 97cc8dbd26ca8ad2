"""Torque from current or PWM, and the two directions of drive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from retorque.physics.motor_torque import DriveDirection, JointMotors, MotorTorque, friction_level, winding_current
from retorque.robots.robot import Robot
from retorque.robots.state import MotorReport, State
from retorque.work.errors import RetorqueError


def test_pwm_and_current_agree_on_a_motor_that_obeys_the_winding_equation() -> None:
    robot = Robot.load("leap_hand")
    joints = JointMotors.of(robot)
    rng = np.random.default_rng(0)
    velocity, current = rng.uniform(-1, 1, robot.n), rng.uniform(-0.5, 0.5, robot.n)
    volts = current * joints.winding_resistance + velocity / joints.velocity_constant  # equations 2 to 4, backwards
    report = MotorReport(current=current, pwm=volts / joints.bus_voltage)
    state = State(0.0, np.array(robot.home), velocity, np.zeros(robot.n), motor=report)
    by_current = MotorTorque(joints, "current").read(state)
    by_pwm = MotorTorque(joints, "pwm").read(state)
    np.testing.assert_allclose(by_current, joints.torque_constant * current)
    np.testing.assert_allclose(by_pwm, by_current, atol=1e-12)


def test_a_sagging_bus_that_is_reported_does_no_harm() -> None:
    current = winding_current(np.array(0.5), np.array(9.0), np.array(1.0), np.array(0.6), np.array(8.0))
    assert current == pytest.approx((4.5 - 1 / 0.6) / 8.0)
    robot = Robot.load("leap_hand")
    joints = JointMotors.of(robot)
    zero = np.zeros(robot.n)
    full = State(0.0, zero, zero, zero, motor=MotorReport(pwm=zero + 0.4))
    sagged = State(0.0, zero, zero, zero, motor=MotorReport(pwm=zero + 0.5, voltage=0.8 * joints.bus_voltage))
    reader = MotorTorque(joints, "pwm")
    np.testing.assert_allclose(reader.read(full), reader.read(sagged))


def test_the_best_signal_is_chosen_joint_by_joint() -> None:
    robot = Robot.load("toddlerbot_2xm")
    reader = MotorTorque(JointMotors.of(robot))
    source = dict(zip(robot.joint_names, reader.source, strict=True))
    assert source["right_shoulder_pitch"] == 1  # XM430: current
    assert source["right_elbow_roll"] == 2  # 2XC430: PWM
    assert set(MotorTorque(JointMotors.of(Robot.load("g1"))).source) == {3}  # their own torque


def test_missing_constants_matter_only_where_a_joint_does() -> None:
    robot = Robot.load("toddlerbot")  # its arms have 2XL430
    joints = JointMotors.of(robot)
    with pytest.raises(RetorqueError, match=r"2XL430.*calibrate-motor"):
        MotorTorque(joints)
    legs = np.array([any(part in name for part in ("hip", "knee", "ankle")) for name in robot.joint_names])
    MotorTorque(joints, used=legs)
    signal: Any = "voltage"
    with pytest.raises(RetorqueError, match="unknown signal"):
        MotorTorque(joints, signal)


def test_missing_reports_are_not_a_number() -> None:
    robot = Robot.load("leap_hand")
    zero = np.zeros(robot.n)
    assert np.all(np.isnan(MotorTorque(JointMotors.of(robot)).read(State(0.0, zero, zero, zero))))


def test_drive_direction_keeps_its_side_below_the_threshold() -> None:
    direction = DriveDirection((1,), threshold=0.1)
    torque = np.array([1.0])
    assert direction.load_torque(torque, np.array([0.0]), np.array([0.8])) == pytest.approx(0.8)  # begins forward
    assert direction.load_torque(torque, np.array([-0.5]), np.array([0.8])) == pytest.approx(1.25)
    assert direction.load_torque(torque, np.array([0.05]), np.array([0.8])) == pytest.approx(1.25)
    assert direction.load_torque(torque, np.array([0.5]), np.array([0.8])) == pytest.approx(0.8)


def test_friction_level_is_equation_7_where_there_is_no_coulomb_friction() -> None:
    torque, eta = np.array([-2.0]), np.array([0.8])
    for forward, load in ((True, 0.8 * 2.0), (False, 2.0 / 0.8)):
        level = friction_level(torque, np.array(forward), np.zeros(1), eta)
        lost = level if forward else -level
        assert 2.0 - lost == pytest.approx(load)
