"""Which motor reports are left out: missing, frozen while the joint moves, at the end of the voltage, sagging bus."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.comply.comply_code import ComplyCode
from retorque.physics.motor_torque import JointMotors, MotorTorque
from retorque.robots.robot import Robot
from retorque.robots.state import MotorReport, State
from retorque.sense.report_checks import FROZEN_AFTER, FULL, LOW, MOVED, ReportChecks

TIMESTEP, TRIALS = 0.02, 2
PATIENCE = round(FROZEN_AFTER / TIMESTEP)
LEAP = Robot.load("leap_hand")
MOTORS = JointMotors.of(LEAP)


def checks(used: np.ndarray | None = None) -> ReportChecks:
    return ReportChecks(MotorTorque(MOTORS), TRIALS, TIMESTEP, np.ones(LEAP.n, dtype=bool) if used is None else used)


def report(
    current: np.ndarray | float,
    *,
    position: np.ndarray | float = 0.0,
    pwm: np.ndarray | float = 0.1,
    volts: np.ndarray | float = 1.0,
) -> State:
    """A batch whose bus has so many times its nominal voltage."""
    shape = (TRIALS, LEAP.n)
    full = [np.broadcast_to(np.asarray(x, dtype=float), shape).copy() for x in (current, pwm, position)]
    motor = MotorReport(current=full[0], pwm=full[1], voltage=np.asarray(volts) * MOTORS.bus_voltage * np.ones(shape))
    return State(0.0, full[2], np.zeros(shape), np.zeros(shape), motor=motor)


def one(value: float, trial: int = 0, joint: int = 3, rest: float = 0.0) -> np.ndarray:
    """Numbers of which one is different."""
    array = np.full((TRIALS, LEAP.n), rest)
    array[trial, joint] = value
    return array


def test_sound_reports_have_no_code() -> None:
    made = checks()
    for tick in range(3 * PATIENCE):
        left_out, codes = made.check(report(0.01 * tick, position=0.05 * tick))
        assert not left_out.any() and not codes.any() and not made.found


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_missing_leaves_out_one_joint_of_one_trial(value: float) -> None:
    left_out, codes = (made := checks()).check(report(one(value, trial=1, joint=5)))
    assert made.found
    np.testing.assert_array_equal(np.argwhere(left_out), [[1, 5]])
    np.testing.assert_array_equal(codes, [0, ComplyCode.MISSING])
    left_out, codes = made.check(report(0.2))  # it is back
    assert not left_out.any() and not codes.any()


def test_a_report_that_stands_still_while_its_joint_moves_has_stopped() -> None:
    made, when = checks(), None
    for tick in range(2 * PATIENCE):
        moving = one(0.01 * tick)  # the joint of trial 0 turns, its current never changes
        current = np.where(np.arange(LEAP.n) == 3, 0.3, 0.001 * tick)
        left_out, codes = made.check(report(current, position=moving))
        if when is None and left_out.any():
            when = tick
            np.testing.assert_array_equal(np.argwhere(left_out), [[0, 3]])
            np.testing.assert_array_equal(codes, [ComplyCode.FROZEN, 0])
    assert when == PATIENCE
    left_out, _ = made.check(report(0.5, position=moving))
    assert not left_out.any()


def test_a_joint_at_rest_may_report_the_same_for_ever() -> None:
    made = checks()
    for _ in range(4 * PATIENCE):
        left_out, codes = made.check(report(0.3, position=0.5 * MOVED))
    assert not left_out.any() and not codes.any()


def test_the_end_of_the_voltage_and_a_sagging_bus_are_said_but_the_joint_is_kept() -> None:
    made = checks()
    left_out, codes = made.check(report(0.1, pwm=one(-FULL, trial=1, rest=0.2)))
    np.testing.assert_array_equal(codes, [0, ComplyCode.SATURATED])
    assert not left_out.any()
    left_out, codes = made.check(report(0.2, volts=one(0.99 * LOW, trial=0, rest=1.0)))
    np.testing.assert_array_equal(codes, [ComplyCode.SAG, 0])
    assert not left_out.any()


def test_several_reasons_stand_in_one_code() -> None:
    _, codes = checks().check(report(one(np.nan), pwm=one(1.0), volts=one(0.5, rest=1.0)))
    assert codes[0] == ComplyCode.MISSING | ComplyCode.SATURATED | ComplyCode.SAG
    assert ComplyCode.names(int(codes[0])) == ["missing", "saturated", "sag"]
    assert codes[1] == 0


def test_joints_that_do_not_matter_are_not_looked_at() -> None:
    used = np.ones(LEAP.n, dtype=bool)
    used[3] = False
    left_out, codes = checks(used).check(report(one(np.nan)))
    assert not left_out.any() and not codes.any()


def test_a_robot_without_motor_reports_has_nothing_to_be_checked() -> None:
    made = checks()
    made.check(report(np.nan))
    bare = State(0.0, *(np.zeros((TRIALS, LEAP.n)) for _ in range(3)))
    left_out, codes = made.check(bare)
    assert not made.found and not left_out.any() and not codes.any()


def test_a_reset_forgets_how_long_a_report_has_stood() -> None:
    made = checks()
    for tick in range(PATIENCE):
        made.check(report(0.3, position=0.01 * tick))
    made.reset()
    left_out, codes = made.check(report(0.3, position=1.0))
    assert not left_out.any() and not codes.any()
