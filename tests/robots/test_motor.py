"""Motor cards: every number has a source, what is missing is refused with the calibration to run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.robots.motor import NUMBERS, Motor, load_motor, motor_names, motors_of, transmissions, write_motor
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


def test_every_motor_of_the_issue_is_on_board_with_sources() -> None:
    wanted = {"XC330", "XC430", "2XC430", "XM430-W210", "XM430-W350", "2XL430", "EC-A4310", "DM-J4310", "G1-5020"}
    assert wanted <= set(motor_names())
    for name in motor_names():
        motor = load_motor(name)
        told = dict(motor.sources)
        for key in NUMBERS:
            assert np.isfinite(getattr(motor, key)) == (key in told)
            assert np.isnan(getattr(motor, key)) or len(told[key]) > 5
        assert 0.0 < motor.efficiency <= 1.0


@pytest.mark.parametrize("robot", ("arx_x5", "leap_hand", "toddlerbot_2xm", "g1", "toddlerbot", "leap_hand_left"))
def test_robots_name_a_motor_for_each_joint(robot: str) -> None:
    model = Robot.load(robot)
    assert len(motors_of(model)) == model.n
    assert np.all(transmissions(model) >= 0.99)


def test_gears_behind_the_motor_are_seen_in_the_limits() -> None:
    robot = Robot.load("toddlerbot_2xm")
    ratio = dict(zip(robot.joint_names, transmissions(robot), strict=True))
    assert ratio["waist_yaw"] == pytest.approx(2 / 0.41666667, rel=1e-3)  # two motors through 0.208333 each
    assert ratio["right_elbow_roll"] == pytest.approx(1.0)


def test_a_motor_without_constants_names_the_calibration() -> None:
    motor = load_motor("2XL430")
    with pytest.raises(RetorqueError, match="torque constant of motor 2XL430; calibrate it first: retorque calibrate-"):
        motor.require("torque_constant")
    load_motor("XC430").require("torque_constant", "velocity_constant", "winding_resistance")


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(RetorqueError, match="did you mean"):
        load_motor("XC433")
    robot = Robot.load("panda")
    with pytest.raises(RetorqueError, match="names no motor"):
        motors_of(robot)


def test_cards_written_are_read_back(tmp_path: Path) -> None:
    motor = replace(load_motor("2XL430"), name="mine", torque_constant=0.9, sources=(("torque_constant", "bench"),))
    again = load_motor(write_motor(motor, tmp_path / "mine.toml"))
    assert isinstance(again, Motor)
    for key in NUMBERS:
        assert getattr(again, key) == pytest.approx(getattr(motor, key), nan_ok=True)


@pytest.mark.parametrize(
    ("line", "says"),
    (
        ("efficiency = 0.5", "efficiency must be"),
        ('efficiency = { value = 1.5, source = "x" }', "at most 1"),
        ('efficiency = { value = -1, source = "x" }', "efficiency must be"),
        ("efficiency = { value = 0.5 }", "efficiency must be"),
        ('colour = "red"', "has no 'colour'"),
    ),
)
def test_bad_cards_are_refused(tmp_path: Path, line: str, says: str) -> None:
    path = write_motor(load_motor("XC430"), tmp_path / "bad.toml")
    kept = [text for text in path.read_text().splitlines() if not text.startswith(line.split(" ")[0])]
    (tmp_path / "worse.toml").write_text("\n".join([*kept, line]) + "\n")
    with pytest.raises(RetorqueError, match=says):
        load_motor(tmp_path / "worse.toml")
