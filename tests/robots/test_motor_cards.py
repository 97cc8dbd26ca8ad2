"""Motor cards that a calibration writes: whatever is found is read back, and what was written last counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.motor_torque import DriveDirection, JointMotors, friction_level
from retorque.robots.motor import NUMBERS, load_motor, motor_names, motors_of, transmissions, write_motor
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

WITH_MOTORS = ("toddlerbot_2xm", "leap_hand", "arx_x5", "toddlerbot")


@pytest.mark.parametrize("name", motor_names())
def test_every_motor_on_board_is_written_and_read_back_to_the_last_digit(name: str, tmp_path: Path) -> None:
    motor = load_motor(name)
    again = load_motor(write_motor(motor, tmp_path / "card.toml"))
    for key in (*NUMBERS, "name", "title", "notes", "drive"):
        np.testing.assert_equal(getattr(again, key), getattr(motor, key))
    assert dict(again.sources) == dict(motor.sources)


@settings(max_examples=30, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=30))
def test_any_text_comes_back(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Quotes and backslashes of a note, say."""
    motor = replace(load_motor("XC430"), name=text, notes=f'"{text}" \\', sources=(("torque_constant", text),))
    again = load_motor(write_motor(motor, tmp_path_factory.mktemp("motor") / "card.toml"))
    assert (again.name, again.notes) == (motor.name, motor.notes)
    assert dict(again.sources)["torque_constant"] == text


@pytest.mark.parametrize("field", ["coulomb", "viscous", "armature"])
def test_a_motor_found_without_friction_is_a_motor(field: str, tmp_path: Path) -> None:
    found = replace(load_motor("XC430"), **{field: np.float64(0.0)})
    assert getattr(load_motor(write_motor(found, tmp_path / "card.toml")), field) == 0.0


@pytest.mark.parametrize("field", ["torque_constant", "winding_resistance", "bus_voltage", "efficiency"])
@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_constants_that_are_divided_by_are_above_zero(field: str, bad: float, tmp_path: Path) -> None:
    path = write_motor(replace(load_motor("XC430"), **{field: bad}), tmp_path / "card.toml")
    with pytest.raises(RetorqueError, match=f"{field} must be"):
        load_motor(path)


def test_a_card_that_is_written_again_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    for constant in (0.8, 0.9):
        write_motor(replace(load_motor("XC430"), name="mine", torque_constant=constant), path)
        assert load_motor(path).torque_constant == constant


@pytest.mark.parametrize("content", [b"", b"name = ", b"\xff\xfe\x00", b"[motor]\nname = 'x'\n"])
def test_what_is_no_motor_card_is_refused_with_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "odd.toml"
    path.write_bytes(content)
    with pytest.raises(RetorqueError, match=r"odd\.toml"):
        load_motor(path)


def test_a_card_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match=motor_names()[0]):
        load_motor(tmp_path / "none.toml")


@pytest.mark.parametrize("name", WITH_MOTORS)
def test_gears_scale_torque_up_and_speed_down(name: str) -> None:
    """Power does not change in a gear."""
    robot = Robot.load(name)
    motors, ratio, joints = motors_of(robot), transmissions(robot), JointMotors.of(robot)
    own = np.array([[m.torque_constant, m.velocity_constant, m.coulomb, m.viscous] for m in motors]).T
    assert np.all(ratio > 0.0)
    geared = ratio >= 1.0
    for found, want in ((joints.torque_constant, ratio * own[0]), (joints.velocity_constant, own[1] / ratio)):
        known = np.isfinite(want) & geared
        np.testing.assert_allclose(found[known], want[known])
    np.testing.assert_allclose(joints.coulomb, np.nan_to_num(ratio * own[2]))
    assert not any(array.flags.writeable for array in (joints.torque_constant, joints.coulomb, joints.armature))


def test_motors_of_ones_own_are_one_a_joint() -> None:
    robot = Robot.load("leap_hand")
    with pytest.raises(RetorqueError, match="a motor for each"):
        JointMotors.of(robot, motors_of(robot)[1:])


@settings(max_examples=60, deadline=None)
@given(
    torque=st.floats(-20.0, 20.0),
    velocity=st.floats(-10.0, 10.0),
    efficiency=st.floats(0.2, 1.0),
    coulomb=st.floats(0.0, 1.0),
)
def test_no_gear_makes_power(torque: float, velocity: float, efficiency: float, coulomb: float) -> None:
    """What reaches the load is less than the motor gives; what reaches the motor is less than the load gives."""
    way = DriveDirection((1,), threshold=0.0)
    load = way.load_torque(np.array([torque]), np.array([velocity]), np.array([efficiency]))
    motor_power, load_power = torque * velocity, float(load[0]) * velocity
    assert load_power <= motor_power + 1e-9
    level = friction_level(np.array([torque]), way.direction > 0.0, np.array([coulomb]), np.array([efficiency]))
    np.testing.assert_allclose(level - coulomb, np.abs(load - torque), atol=1e-9)
