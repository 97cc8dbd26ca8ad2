"""URDF: what is read moves as Pinocchio reads it, what is written comes back, and bad files are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots import load, names
from retorque.robots.formats.mjcf import to_mjmodel
from retorque.robots.formats.urdf import read_urdf, write_urdf
from retorque.work.errors import RetorqueError

INERTIAL = """<inertial><origin xyz="0.01 0.02 0.03" rpy="0.1 0.2 0.3"/><mass value="1.5"/>
<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.002" ixz="-0.001" iyz="0.003"/></inertial>"""
ODD = f"""<?xml version="1.0"?>
<robot name="odd">
  <link name="world"/>
  <link name="stand">{INERTIAL}
    <visual><geometry><mesh filename="package://none/a.dae"/></geometry></visual></link>
  <link name="upper">{INERTIAL}</link>
  <link name="plate">{INERTIAL}</link>
  <link name="finger">{INERTIAL}</link>
  <link name="hand">{INERTIAL}</link>
  <link name="tool"/>
  <joint name="mount" type="fixed"><parent link="world"/><child link="stand"/>
    <origin xyz="0 0 1" rpy="0.3 0 0"/></joint>
  <joint name="turn" type="continuous"><parent link="stand"/><child link="upper"/><origin xyz="0 0.1 0" rpy="0 0.5 1"/>
    <axis xyz="0 0 2"/><limit effort="12" velocity="3"/><dynamics damping="3" friction="2"/></joint>
  <joint name="glue" type="fixed"><parent link="upper"/><child link="plate"/>
    <origin xyz="0.1 0 0.1" rpy="1 0 0"/></joint>
  <joint name="grip" type="prismatic"><parent link="plate"/><child link="finger"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.04" effort="5" velocity="1"/><mimic joint="slide"/></joint>
  <joint name="slide" type="prismatic"><parent link="plate"/><child link="hand"/><origin xyz="0 0.2 0"/>
    <limit lower="-0.5" upper="1.5" effort="5" velocity="0.2"/></joint>
  <joint name="end" type="fixed"><parent link="hand"/><child link="tool"/><origin xyz="0 0 0.2" rpy="0 0 1.5"/></joint>
</robot>
"""


def write(folder: Path, text: str, name: str = "odd.urdf") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_moves_as_pinocchio_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path, ODD)
    robot = read_urdf(path)
    assert robot.joint_names == ("turn", "slide")
    assert [link.name for link in robot.links] == ["stand", "upper", "hand"]
    assert robot.torque_limit.tolist() == [12.0, 5.0] and robot.velocity_limit.tolist() == [3.0, 0.2]
    assert robot.lower.tolist() == [-np.inf, -0.5] and robot.upper.tolist() == [np.inf, 1.5]
    assert robot.home == pytest.approx([0.0, 0.1])  # 0.6 inside the lower limit
    assert "mimic joints welded at zero: grip" in robot.notes
    assert robot.end_effector == robot.frames["tool"]
    whole = pin.buildModelFromUrdf(str(path))
    model = pin.buildReducedModel(whole, [whole.getJointId("grip")], pin.neutral(whole))
    data, ours = model.createData(), RigidBody(robot)
    rng = np.random.default_rng(0)
    for _ in range(50):
        q, qd = rng.uniform(-1, 1, 2), rng.normal(size=2)
        theirs = np.array([np.cos(q[0]), np.sin(q[0]), q[1]])  # Pinocchio's continuous joints are on a circle
        mass = pin.crba(model, data, theirs).copy()
        mass = np.triu(mass) + np.triu(mass, 1).T
        assert np.allclose(ours.mass_matrix(q), mass, rtol=0, atol=1e-12)
        assert np.allclose(ours.bias(q, qd), pin.nonLinearEffects(model, data, theirs, qd), rtol=0, atol=1e-12)
        pin.framesForwardKinematics(model, data, theirs)
        pose = data.oMf[model.getFrameId("tool")]
        position, turn = ours.frame_pose(robot.end_effector, q)
        assert np.allclose(position, pose.translation, atol=1e-12) and np.allclose(turn, pose.rotation, atol=1e-12)


def test_cut_to_named_joints(tmp_path: Path) -> None:
    path = write(tmp_path, ODD)
    assert read_urdf(path, ("slide",)).joint_names == ("slide",)
    with pytest.raises(RetorqueError, match="joint 'grip' follows another joint"):
        read_urdf(path, ("grip",))
    with pytest.raises(RetorqueError, match="did you mean 'slide'"):
        read_urdf(path, ("slid",))


@pytest.mark.parametrize("name", names())
def test_cards_come_back(name: str, tmp_path: Path, dynamics) -> None:
    robot = load(name)
    again = read_urdf(write(tmp_path, write_urdf(robot)))
    assert again.name == name and again.joint_names == robot.joint_names and again.floating == robot.floating
    assert [link.name for link in again.links] == [link.name for link in robot.links]
    assert np.array_equal(again.home, robot.home) and np.array_equal(again.armature, robot.armature)
    assert np.array_equal(again.lower, robot.lower) and np.array_equal(again.upper, robot.upper)
    assert np.array_equal(again.torque_limit, robot.torque_limit)
    assert np.array_equal(again.velocity_limit, robot.velocity_limit)
    assert again.end_effector.link == robot.end_effector.link and set(again.frames) == set(robot.frames)
    assert again.payload_mount.link == robot.payload_mount.link
    first, second = to_mjmodel(robot), to_mjmodel(again)
    data, more = mujoco.MjData(first), mujoco.MjData(second)
    rng = np.random.default_rng(2)
    for _ in range(10):
        qpos, qvel = first.qpos0 + 0.3 * rng.normal(size=first.nq), rng.normal(size=first.nv)
        mass, bias = dynamics(first, data, qpos, qvel)
        our_mass, our_bias = dynamics(second, more, qpos, qvel)
        assert np.abs(our_mass - mass).max() <= 1e-9 * np.abs(mass).max()
        assert np.abs(our_bias - bias).max() <= 1e-9 * np.abs(bias).max()


def test_pinocchio_reads_what_is_written(tmp_path: Path) -> None:
    robot = load("panda")
    model = pin.buildModelFromUrdf(str(write(tmp_path, write_urdf(robot))))
    model.armature = robot.armature
    q = robot.home
    mass = pin.crba(model, model.createData(), q).copy()
    mass = np.triu(mass) + np.triu(mass, 1).T
    assert np.allclose(mass, RigidBody(robot).mass_matrix(q), rtol=0, atol=1e-9)


def test_a_frame_named_like_a_link_is_renamed(tmp_path: Path) -> None:
    robot = load("panda")
    both = replace(robot, frames={"link7": robot.end_effector})
    assert set(read_urdf(write(tmp_path, write_urdf(both))).frames) == {"link7_frame"}


BAD = {
    "broken": (("</robot>", ""), "not an XML file"),
    "other root": (("robot", "model"), "starts with <model>; a URDF file starts with <robot>"),
    "no inertias": ((INERTIAL, ""), "no link has an <inertial>; add masses and inertias"),
    "no inertia of the last link": (
        (f'"hand">{INERTIAL}', '"hand">'),
        "link 'hand' moves but has no mass or no inertia",
    ),
    "no mass": (('<mass value="1.5"/>', ""), "the <inertial> of link 'stand' needs both <mass> and <inertia>"),
    "negative mass": (('value="1.5"', 'value="-1.5"'), "the mass of 'stand' is -1.5; give it a positive mass"),
    "NaN mass": (('value="1.5"', 'value="nan"'), "the mass of 'stand' is nan"),
    "mass as text": (('value="1.5"', 'value="heavy"'), 'value="heavy" is not a number'),
    "inertia": (('izz="0.025"', 'izz="-0.9"'), "not positive definite"),
    "triangle": (('izz="0.025"', 'izz="0.9"'), "breaks the triangle inequality"),
    "NaN inertia": (('izz="0.025"', 'izz="nan"'), "is not finite"),
    "unknown parent": (
        ('parent link="upper"', 'parent link="lower"'),
        "joint 'glue' names link 'lower', which does not",
    ),
    "no parent": (('<parent link="upper"/>', ""), "joint 'glue' has no <parent link=...>"),
    "two parents": (('child link="finger"', 'child link="hand"'), "a link is the child of two joints"),
    "circle": (('parent link="world"', 'parent link="upper"'), "some joints form a circle"),
    "two roots": (('<joint name="end"', '<link name="lost"/><joint name="end"'), "several root links: world, lost"),
    "same link": (('name="tool"/>', 'name="hand"/>'), "two links have the same name"),
    "planar": (('type="continuous"', 'type="planar"'), "joint 'turn' has the type 'planar'; use one of: revolute"),
    "axis": (('xyz="0 0 2"', 'xyz="0 0 0"'), "the axis of joint 'turn' is zero"),
    "origin": (('xyz="0 0.1 0"', 'xyz="0 0.1"'), "is not 3 finite numbers"),
    "limits": (('lower="-0.5" upper="1.5"', 'lower="1.5" upper="-0.5"'), "the lower one must be smaller"),
    "no name": (('<joint name="turn"', "<joint"), "a <joint> has no name"),
    "only fixed": (('type="continuous"', 'type="fixed"'), None),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case: str, tmp_path: Path) -> None:
    (old, new), sentence = BAD[case]
    assert old in ODD
    text = ODD.replace(old, new)
    if sentence is None:
        text, sentence = text.replace('type="prismatic"', 'type="fixed"'), "no joint that moves"
    with pytest.raises(RetorqueError) as caught:
        read_urdf(write(tmp_path, text))
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("odd.urdf: ") and "\n" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="there is no file"):
        read_urdf(tmp_path / "none.urdf")
