"""The motor-level plant: windings, reports, gear friction and stiction."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.motor_torque import JointMotors, MotorTorque, winding_current
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.motor_target import MotorTarget, MotorTruth, ReportSettings

QUIET = ReportSettings(current_noise=0.0, pwm_noise=0.0, torque_noise=0.0, delay=0, quantised=False)


def _leap(truth: MotorTruth, reports: ReportSettings = QUIET) -> MotorTarget:
    robot = Robot.load("leap_hand")
    return MotorTarget(robot, truth, np.full(robot.n, 6.0), np.zeros(robot.n), reports=reports)


def _hold(target: MotorTarget, ticks: int, position: np.ndarray) -> None:
    for _ in range(ticks):
        target.write(Command(position=position))


def test_without_friction_the_current_holds_gravity_and_pushes() -> None:
    robot = Robot.load("leap_hand")
    target = _leap(MotorTruth.frictionless(robot))
    target.push_frame("index_tip", np.array([0.0, 0.5, -1.0]))
    _hold(target, 150, robot.home)
    state = target.read()
    body = RigidBody(robot)
    felt = body.jacobian(robot.frame("index_tip"), state.position)[:3].T @ np.array([0.0, 0.5, -1.0])
    torque = MotorTorque(JointMotors.of(robot), "current").read(state)
    np.testing.assert_allclose(torque, body.gravity(state.position) - felt, atol=2e-3)
    by_pwm = MotorTorque(JointMotors.of(robot), "pwm").read(state)
    np.testing.assert_allclose(by_pwm, torque, atol=1e-6)


def test_reports_come_in_steps_with_noise_and_late() -> None:
    robot = Robot.load("leap_hand")
    target = _leap(MotorTruth.frictionless(robot), ReportSettings(delay=3))
    _hold(target, 3, robot.home + 0.1)
    state = target.read()
    assert state.motor is not None and state.motor.current is not None and state.motor.pwm is not None
    steps = state.motor.current / 0.001
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)
    assert not np.allclose(state.motor.current, target.servo.current, atol=1e-3)
    turns = state.position / (2 * np.pi / 4096)
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-3)


def test_motors_without_a_sensor_do_not_report() -> None:
    robot = Robot.load("toddlerbot_2xm")
    truth = MotorTruth.of_card(robot)
    target = MotorTarget(robot, truth, np.full(robot.n, 10.0), np.zeros(robot.n))
    report = target.read().motor
    assert report is not None and report.current is not None
    elbow, shoulder = robot.joint_names.index("right_elbow_roll"), robot.joint_names.index("right_shoulder_pitch")
    assert np.isnan(report.current[elbow]) and np.isfinite(report.current[shoulder])


def test_stiction_hides_a_small_push_and_a_large_one_moves() -> None:
    robot = Robot.load("arx_x5")
    truth = MotorTruth(
        coulomb=np.full(robot.n, 0.5),
        static_ratio=np.full(robot.n, 1.3),
        viscous=np.zeros(robot.n),
        efficiency=np.ones(robot.n),
    )
    target = MotorTarget(robot, truth, np.full(robot.n, 60.0), np.full(robot.n, 2.0), reports=QUIET)
    _hold(target, 60, robot.home)
    rest = target.position.copy()
    target.push(np.array([0.4, 0, 0, 0, 0, 0]))
    _hold(target, 50, robot.home)
    assert abs(target.position[0] - rest[0]) < 2e-4  # below the static level it hardly creeps
    target.push(np.array([1.2, 0, 0, 0, 0, 0]))
    _hold(target, 50, robot.home)
    slipped = target.position[0] - rest[0]
    assert (1.2 - 0.65) / 60.0 < slipped < 1.2 / 60.0  # as far as friction and a little overshoot let it
    target.push(0.0)
    _hold(target, 50, robot.home)
    assert target.position[0] - rest[0] > 0.2 * slipped  # it does not come back all the way


def test_gear_friction_grows_with_the_load_and_differs_by_direction() -> None:
    robot = Robot.load("arx_x5")
    eta = 0.8
    none = np.zeros(robot.n)
    truth = MotorTruth(coulomb=none, static_ratio=none + 1, viscous=none, efficiency=none + eta)
    target = MotorTarget(robot, truth, np.full(robot.n, 200.0), np.full(robot.n, 2.0), reports=QUIET)
    ratio = []
    for rate in (0.4, -0.4):  # lifting joint 3 against gravity, and letting it down
        target.reset(robot.home)
        q = np.array(robot.home)
        for _ in range(40):
            q[2] += rate * target.timestep
            target.write(Command(position=q))
        weight = RigidBody(robot).gravity(target.position)[2]
        ratio.append(target.command[2] / weight)
    lifting, lowering = ratio if RigidBody(robot).gravity(robot.home)[2] > 0 else ratio[::-1]
    assert lifting == pytest.approx(1 / eta, rel=0.05)
    assert lowering == pytest.approx(eta, rel=0.05)


def test_a_sagging_bus_weakens_a_servo_and_is_reported() -> None:
    robot = Robot.load("leap_hand")
    target = _leap(MotorTruth.frictionless(robot))
    target.servo.bus = 0.6
    report = target.read().motor
    assert report is not None and report.voltage is not None
    np.testing.assert_allclose(report.voltage, 3.0)
    j = JointMotors.of(robot)
    position = np.zeros(robot.n)
    torque, _ = target.servo.torque(position + 0.02, 0.0, position, position, np.full(robot.n, 9.0))
    current = winding_current(target.servo.pwm, 3.0 + position, position, j.velocity_constant, j.winding_resistance)
    np.testing.assert_allclose(torque, j.torque_constant * current)
    assert np.all(torque < 0.62 * 6.0 * 0.02)
