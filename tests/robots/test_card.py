"""Cards: they come back as they were written, and wrong ones are refused with a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.robots import load, names
from retorque.robots.card import UNITS, card_text, read_card, write_card
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = f"""
name = "arm"
units = "{UNITS}"
source = "a test"
home = [0.1, 0.2]

[end_effector]
link = "hand"
position = [0.0, 0.0, 0.3]

[[link]]
name = "base"
parent = "world"
mass = 0.0

[[link]]
name = "upper"
parent = "base"
position = [0.0, 0.0, 0.2]
mass = 2.0
centre = [0.0, 0.0, 0.1]
inertia = [0.02, 0.02, 0.01, 0.0, 0.0, 0.0]
[link.joint]
name = "shoulder"
axis = [0.0, 1.0, 0.0]
lower = -1.0
upper = 1.0
torque_limit = 20.0

[[link]]
name = "hand"
parent = "upper"
position = [0.0, 0.0, 0.3]
mass = 1.0
inertia = [0.01, 0.01, 0.01, 0.0, 0.0, 0.0]
[link.joint]
name = "elbow"
kind = "prismatic"
axis = [1.0, 0.0, 0.0]
lower = -1.0
upper = 1.0
"""
PROFILE = """
[profile]
armature_min = [0.1, 0.1]
armature_max = [0.2, 0.2]
stiffness = [10.0, 10.0]
tracking_stiffness = [10.0, 10.0]
tracking_amplitude = [0.1, 0.1]
waypoint_delta = [0.1, 0.1]
command_noise_white = [0.1, 0.1]
command_noise_walk = [0.1, 0.1]
friction_max = [0.1, 0.1]
viscous_max = [0.1, 0.1]
bias_max = [0.1, 0.1]
dead_zone_max = [0.1, 0.1]
payload_mass = [0.0, 0.5]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "arm.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_reads_what_it_says(tmp_path: Path) -> None:
    robot = read_card(write(tmp_path, ARM + PROFILE))
    assert (robot.n, robot.floating, robot.joint_names) == (2, False, ("shoulder", "elbow"))
    assert robot.home.tolist() == [0.1, 0.2]
    assert robot.torque_limit.tolist() == [20.0, np.inf]
    assert robot.payload_mount == robot.end_effector
    assert robot.gravity == (0.0, 0.0, -9.81)
    assert robot.profile is not None and robot.profile.payload_mass == (0.0, 0.5)
    assert robot.profile.tracking_damping is None


@pytest.mark.parametrize("name", names())
def test_comes_back_as_written(name: str, tmp_path: Path) -> None:
    robot = load(name)
    path = tmp_path / "copy.toml"
    assert robot.save(path) == path
    copy = Robot.load(path)
    assert copy.links == robot.links and copy.frames == robot.frames
    assert np.array_equal(copy.home, robot.home)
    assert card_text(copy) == card_text(robot)
    assert [p.name for p in tmp_path.iterdir()] == ["copy.toml"]


def test_texts_with_quotes_come_back(tmp_path: Path) -> None:
    robot = replace(read_card(write(tmp_path, ARM)), title='The "arm" \\ of\nan\tarm', notes="ü")
    write_card(robot, tmp_path / "copy.toml")
    copy = read_card(tmp_path / "copy.toml")
    assert (copy.title, copy.notes) == (robot.title, robot.notes)
    with pytest.raises(RetorqueError, match="control characters"):
        card_text(replace(robot, title="a\x00b"))


def test_an_almost_unit_axis_is_scaled(tmp_path: Path) -> None:
    robot = read_card(write(tmp_path, ARM.replace("axis = [0.0, 1.0, 0.0]", "axis = [0.0, 1.0000005, 0.0]")))
    assert robot.joints[0].axis == (0.0, 1.0, 0.0)


UPPER_INERTIA = "inertia = [0.02, 0.02, 0.01, 0.0, 0.0, 0.0]"
REFUSED = {
    "missing mass": (("mass = 2.0\n", ""), "link 'upper' has no 'mass'; add it"),
    "negative mass": (("mass = 2.0", "mass = -2.0"), "the mass of link 'upper' is -2.0"),
    "NaN mass": (("mass = 2.0", "mass = nan"), "the mass of link 'upper' is nan"),
    "mass as text": (("mass = 2.0", 'mass = "2"'), "'mass' of link 'upper' must be a number"),
    "mass as truth": (("mass = 2.0", "mass = true"), "'mass' of link 'upper' must be a number"),
    "no mass at the end": (("mass = 1.0", "mass = 0.0"), "'hand' moves but has no mass or no inertia"),
    "missing inertia": ((UPPER_INERTIA, ""), "link 'upper' is not positive definite"),
    "negative inertia": ((UPPER_INERTIA, UPPER_INERTIA.replace("0.01", "-0.01")), "'upper' is not positive definite"),
    "NaN inertia": ((UPPER_INERTIA, UPPER_INERTIA.replace("0.01", "nan")), "inertia of link 'upper' is not finite"),
    "triangle": ((UPPER_INERTIA, UPPER_INERTIA.replace("0.01", "0.05")), "link 'upper' breaks the triangle inequality"),
    "off-diagonal": ((UPPER_INERTIA, UPPER_INERTIA.replace("0.0,", "0.3,", 1)), "not positive definite"),
    "short inertia": ((UPPER_INERTIA, "inertia = [0.02, 0.02, 0.01]"), "'inertia' of link 'upper' must be 6 numbers"),
    "unknown parent": (('parent = "upper"', 'parent = "lower"'), "link 'hand' hangs on 'lower', which does not exist"),
    "circle": (('parent = "base"', 'parent = "hand"'), "form a circle"),
    "axis": (("axis = [0.0, 1.0, 0.0]", "axis = [0.0, 1.1, 0.0]"), "of the joint of link 'upper' has length 1.1"),
    "NaN axis": (("axis = [0.0, 1.0, 0.0]", "axis = [0.0, nan, 0.0]"), "has length nan"),
    "limits": (("upper = 1.0\ntorque", "upper = -1.0\ntorque"), "joint 'shoulder' has lower limit -1.0"),
    "torque limit": (("torque_limit = 20.0", "torque_limit = -1.0"), "torque limit of joint 'shoulder' is -1.0"),
    "velocity limit": (("torque_limit = 20.0", "velocity_limit = -1.0"), "velocity limit of joint 'shoulder' is -1.0"),
    "armature": (("torque_limit = 20.0", "armature = -1.0"), "armature of joint 'shoulder' is -1.0"),
    "same link": (('name = "hand"', 'name = "upper"'), "link name 'upper' is used more than once"),
    "same joint": (('name = "elbow"', 'name = "shoulder"'), "joint name 'shoulder' is used more than once"),
    "link called world": (('name = "hand"', 'name = "world"'), "cannot be called 'world'"),
    "short home": (("home = [0.1, 0.2]", "home = [0.1]"), "home has 1 values, but the robot has 2 joints"),
    "home outside": (("home = [0.1, 0.2]", "home = [0.1, 2.0]"), "home puts joint 'elbow' at 2.0"),
    "NaN home": (("home = [0.1, 0.2]", "home = [0.1, nan]"), "home puts joint 'elbow' at nan"),
    "no home": (("home = [0.1, 0.2]", ""), "the card has no 'home'; add it"),
    "no source": (('source = "a test"', ""), "the card has no 'source'; add it"),
    "empty name": (('name = "arm"', 'name = ""'), "'name' of the card must be a text"),
    "units": ((UNITS, "inches"), "units must be"),
    "no units": ((f'units = "{UNITS}"', ""), "the card has no 'units'"),
    "unknown key": (("torque_limit", "torque_limits"), "unknown key 'torque_limits'; remove it or use one of"),
    "unknown key above": (("home =", "colour = 1\nhome ="), "unknown key 'colour'"),
    "kind": (('kind = "prismatic"', 'kind = "ball"'), "is 'ball'; use revolute, prismatic or free"),
    "end-effector": (('link = "hand"', 'link = "foot"'), "frame 'end_effector' is on link 'foot'"),
    "gravity": (("home =", "gravity = [0.0, nan, 0.0]\nhome ="), "gravity must be three finite numbers"),
    "flag": (("home =", "hardware_adds_gravity = 1\nhome ="), "must be true or false"),
    "quaternion": (("position = [0.0, 0.0, 0.2]", "quaternion = [2.0, 0.0, 0.0, 0.0]"), "has length 2"),
    "position": (("position = [0.0, 0.0, 0.2]", "position = [0.0, 0.0, inf]"), "the pose of link 'upper' needs"),
    "second base": ((ARM[ARM.rindex("[link.joint]") :], ""), "both bases"),
    "broken": (("[end_effector]", "[end_effector"), "not a TOML file that can be read"),
    "frames": (("home =", "frames = 3\nhome ="), "frames must be a table"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    (old, new), sentence = REFUSED[case]
    assert old in ARM
    with pytest.raises(RetorqueError) as caught:
        read_card(write(tmp_path, ARM.replace(old, new)))
    message = str(caught.value)
    assert sentence in message and message.startswith("arm.toml: ") and "\n" not in message


BAD_PROFILES = {
    "length": (("stiffness = [10.0, 10.0]\ntracking", "stiffness = [10.0]\ntracking"), "must be 2 numbers"),
    "missing": (("bias_max = [0.1, 0.1]\n", ""), "profile has no 'bias_max'"),
    "unknown": (("bias_max", "bias_top = 1.0\nbias_max"), "unknown key 'bias_top'"),
    "negative": (("viscous_max = [0.1", "viscous_max = [-0.1"), "'viscous_max' of profile must be finite"),
    "range": (("payload_mass = [0.0, 0.5]", "payload_mass = [0.5, 0.0]"), "low <= high"),
    "armature": (("armature_min = [0.1", "armature_min = [0.9"), "exceeds 'armature_max'"),
}


@pytest.mark.parametrize("case", BAD_PROFILES)
def test_refused_profile(case: str, tmp_path: Path) -> None:
    (old, new), sentence = BAD_PROFILES[case]
    assert old in PROFILE
    with pytest.raises(RetorqueError, match=r"^arm\.toml: ") as caught:
        read_card(write(tmp_path, ARM + PROFILE.replace(old, new)))
    assert sentence in str(caught.value)


def test_links_out_of_order_are_refused(tmp_path: Path) -> None:
    head, base, upper, hand = ARM.split("[[link]]")
    side = (
        hand.replace('"hand"', '"side"')
        .replace('"elbow"', '"side_joint"')
        .replace('parent = "upper"', 'parent = "base"')
    )
    text = "[[link]]".join([head.replace("[0.1, 0.2]", "[0.1, 0.2, 0.3]"), base, upper, side, hand])
    with pytest.raises(RetorqueError, match="link 'hand' is out of order; list links depth first"):
        read_card(write(tmp_path, text))


def test_missing_file_and_garbage(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="there is no card"):
        read_card(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RetorqueError, match="not a TOML file"):
        read_card(tmp_path / "bytes.toml")
