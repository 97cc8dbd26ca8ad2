"""Columns are found by name, by order or by a mapping, in any order of the file; what is ambiguous is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.logs.columns import Columns, find_signal, find_time, names_joint, pick, read_map
from retorque.logs.corrections import Corrections
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Z1 = Robot.load("z1")
JOINTS = Z1.joint_names


def header(position: str, velocity: str, effort: str, first: int = 1, time: str = "time") -> list[str]:
    return [time, *(form.format(k + first) for form in (position, velocity, effort) for k in range(6))]


HEADERS = {
    "short": header("q{}", "qd{}", "tau{}"),
    "from zero": header("q{}", "dq{}", "effort{}", first=0),
    "spelt out": header("Joint Position {}", "Joint_Velocity-{}", "joint torque {}", time="Timestamp"),
    "with units": header("pos_{} [rad]", "vel_{} [rad/s]", "torque_{} (Nm)", time="t [s]"),
    "as UR writes": header("actual_q_{}", "actual_qd_{}", "tau_{}", first=0, time="timestamp"),
    "by joint": ["stamp", *(f"{signal}.{joint}" for signal in ("position", "velocity", "effort") for joint in JOINTS)],
    "joint first": ["stamp", *(f"{joint}_{signal}" for signal in ("pos", "vel", "tau") for joint in JOINTS)],
}


@pytest.mark.parametrize("names", HEADERS.values(), ids=HEADERS.keys())
@settings(max_examples=8, deadline=None)
@given(shuffle=st.randoms(use_true_random=False), more=st.booleans())
def test_a_header_is_understood_in_any_order(names: list[str], shuffle, more: bool) -> None:
    mixed = [*names, *(["comment", "mode"] if more else [])]
    shuffle.shuffle(mixed)
    found = pick(None, tuple(mixed), len(mixed), Z1, "a.csv")
    assert found.time is not None and found.velocity is not None and not found.is_current
    assert [mixed[k] for k in (found.time, *found.position, *found.velocity, *found.effort)] == names


def test_currents_are_taken_where_drive_gains_are_known_and_torques_where_not() -> None:
    both = (*header("q{}", "qd{}", "tau{}"), *(f"current{k + 1}" for k in range(6)))
    assert pick(None, both, len(both), Z1, "a").effort == tuple(range(13, 19))
    preferred = pick(None, both, len(both), Z1, "a", prefer_current=True)
    assert preferred.is_current and preferred.effort == tuple(range(19, 25))


def test_without_names_the_order_decides() -> None:
    found = pick(None, None, 19, Z1, "a")
    assert (found.time, found.position, found.effort) == (0, tuple(range(1, 7)), tuple(range(13, 19)))
    assert pick(None, None, 25, Z1, "a") == found  # a further group is left alone
    for width in (18, 20, 13):
        with pytest.raises(RetorqueError, match="is it a log of another robot"):
            pick(None, None, width, Z1, "a")


def test_a_mapping_by_name_pattern_and_number_is_one_mapping() -> None:
    names = tuple(HEADERS["short"])
    forms = (
        Columns(time="time", position="q{}", velocity="qd{}", torque="tau{}"),
        Columns(time=0, position="1:7", velocity="7:13", torque="13:19"),
        Columns(time=0, position=names[1:7], velocity=tuple(range(7, 13)), torque=(13, "tau2", 15, "tau4", 17, 18)),
    )
    assert len({pick(form, names, 19, Z1, "a") for form in forms}) == 1


@pytest.mark.parametrize(
    ("columns", "says"),
    (
        (Columns(position="q{}"), "either 'torque' or 'current'"),
        (Columns(position="q{}", torque="tau{}", current="tau{}", time=0), "either 'torque' or 'current'"),
        (Columns(time=0, torque="tau{}"), "names no 'position' columns"),
        (Columns(position="q{}", torque="tau{}"), "name the 'time' column or give the sampling 'rate'"),
        (Columns(time=19, position="q{}", torque="tau{}"), "no column number 19"),
        (Columns(time=-1, position="q{}", torque="tau{}"), "no column number -1"),
        (Columns(time="tim", position="q{}", torque="tau{}"), "did you mean 'time'"),
        (Columns(time=0, position="q", torque="tau{}"), "unknown column"),
        (Columns(time=0, position=(1, 2), torque="tau{}"), "'position' names 2 columns"),
    ),
    ids=str,
)
def test_mappings_that_do_not_fit_are_refused(columns: Columns, says: str) -> None:
    with pytest.raises(RetorqueError, match=says):
        pick(columns, tuple(HEADERS["short"]), 19, Z1, "a.csv")


def test_another_robots_header_is_refused_with_both_counts() -> None:
    seven = ("time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "tau") for k in range(7)))
    with pytest.raises(RetorqueError, match="7 'q' columns and robot 'z1' has 6"):
        pick(None, seven, len(seven), Z1, "a")
    with pytest.raises(RetorqueError, match="no columns for position"):
        pick(None, tuple(HEADERS["short"]), 19, Robot.load("panda"), "a")


def test_the_columns_of_two_robots_are_told_apart() -> None:
    """The sentence says what to type, and that works."""
    robot = Robot.load("z1")
    signals = [f"{stem}{k}" for stem in ("q", "qd", "tau") for k in range(1, 7)]
    names = ("time", *(f"/left/{name}" for name in signals), *(f"/right/{name}" for name in signals))
    with pytest.raises(RetorqueError, match="the columns of 2 robots") as refused:
        pick(None, names, len(names), robot, "two.csv")
    said = str(refused.value)
    assert 'time = "time", position = "/left/q{}", velocity = "/left/qd{}", torque = "/left/tau{}"' in said
    typed = Columns(time="time", position="/right/q{}", velocity="/right/qd{}", torque="/right/tau{}")
    assert pick(typed, names, len(names), robot, "two.csv").position == tuple(range(19, 25))


def test_parts_of_a_header() -> None:
    names = tuple(HEADERS["by joint"])
    assert find_time(names) == 0 and find_time(("a", "b")) is None
    assert find_signal(names, "velocity", Z1, "a") == tuple(range(7, 13))
    assert find_signal(names, "effort", Z1, "a") == tuple(range(13, 19))
    assert names_joint(names, JOINTS[2]) and not names_joint(names, "elbow")
    with pytest.raises(RetorqueError, match="no columns for current"):
        find_signal(names[:13], "current", Z1, "a")


@pytest.mark.parametrize(
    ("content", "says"),
    (
        ("time = ", "cannot be read"),
        ("positoin = 3", "did you mean 'position'"),
        ("position = 3", "must be a list of columns"),
        ("rate = 0", "above zero"),
        ('rate = "fast"', "above zero"),
        ('effort = "a{}"\ntorque = "b{}"', "keep one of them"),
        ("degrees = 1", "true or false"),
        ('drive_gains = ["a"]', "must be numbers"),
        ("files = 3", "one file for each signal"),
        ("[files]\nposition = 3", "one file for each signal"),
    ),
)
def test_mapping_files_are_checked_when_they_are_read(content: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "map.toml"
    path.write_text(content)
    with pytest.raises(RetorqueError, match=says):
        read_map(path)


def test_a_mapping_file_that_is_missing_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    for name in ("none.toml", "bytes.toml", "."):
        with pytest.raises(RetorqueError, match="cannot be read"):
            read_map(tmp_path / name)


SCALE = st.floats(0.1, 10.0) | st.floats(-10.0, -0.1)


@settings(max_examples=30, deadline=None)
@given(
    coupling=st.lists(st.floats(-0.12, 0.12), min_size=36, max_size=36).map(
        lambda v: np.eye(6) + np.reshape(v, (6, 6))
    ),
    scale=st.lists(SCALE, min_size=6, max_size=6),
    seed=st.integers(0, 2**31),
)
def test_motors_and_joints_have_the_same_power(coupling: np.ndarray, scale: list[float], seed: int) -> None:
    """Effort scales are units; a coupling and a sign must leave the power as it is."""
    rng = np.random.default_rng(seed)
    motor_speed, motor_effort = rng.standard_normal((2, 9, 6))
    units = np.array(scale)
    said = Columns(
        coupling=tuple(map(tuple, coupling)),
        position_scale=tuple(units),
        effort_scale=tuple(1.0 / units),
    )
    _, _, speed, effort = Corrections.of(said, Z1).apply(np.zeros(9), motor_speed, motor_speed, motor_effort)
    assert speed is not None
    np.testing.assert_allclose(np.sum(speed * effort, axis=1), np.sum(motor_speed * motor_effort, axis=1), atol=1e-9)


def test_units_of_a_mapping() -> None:
    time, one = np.array([2000.0]), np.full((1, 6), 180.0)
    fixed = Corrections.of(Columns(time_unit="ms", degrees=True, position_offset=0.5, effort_scale=1e-3), Z1)
    seconds, position, velocity, effort = fixed.apply(time, one, one, one)
    assert seconds == 2.0 and velocity is not None
    np.testing.assert_allclose([position[0, 0], velocity[0, 0], effort[0, 0]], [np.pi + 0.5, np.pi, 0.18])
    assert Corrections.of(Columns(time_scale=0.25), Z1).apply(time, one, None, one)[0] == 500.0
    plain = Corrections.of(None, Z1).apply(time, one, None, one)
    assert plain[0] == 2000.0 and plain[2] is None and np.array_equal(plain[1], one)


def test_slides_are_never_in_degrees(tmp_path: Path) -> None:
    path = tmp_path / "cart.xml"
    body = '<inertial pos="0 0 0.1" mass="1" diaginertia="0.1 0.1 0.1"/>'
    path.write_text(
        f'<mujoco><worldbody><body name="cart"><joint name="rail" type="slide" axis="1 0 0"/>{body}'
        f'<body name="pole"><joint name="hinge" axis="0 1 0"/>{body}</body></body></worldbody></mujoco>'
    )
    moved = Corrections.of(Columns(degrees=True), Robot.load(path)).apply(
        np.zeros(1), np.full((1, 2), 90.0), None, np.zeros((1, 2))
    )[1]
    np.testing.assert_allclose(moved[0], [90.0, np.pi / 2.0])


@pytest.mark.parametrize("wrong", ({"time_scale": 0.0}, {"time_scale": -1.0}, {"time_scale": float("nan")}))
def test_clocks_that_do_not_go_forward_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(RetorqueError, match="above zero"):
        Corrections.of(Columns(**wrong), Z1)


@pytest.mark.parametrize("name", ("position_scale", "velocity_scale", "effort_scale"))
@pytest.mark.parametrize("value", (0.0, float("nan"), (1.0, 0.0, 1.0, 1.0, 1.0, 1.0), (1.0,) * 5))
def test_scales_that_lose_a_signal_are_refused(name: str, value: float | tuple[float, ...]) -> None:
    with pytest.raises(RetorqueError, match=name):
        Corrections.of(Columns(**{name: value}), Z1)
