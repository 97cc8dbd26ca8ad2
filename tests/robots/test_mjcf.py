"""MJCF: what is read moves as MuJoCo moves it, what is written comes back, and bad files are refused."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import mujoco
import numpy as np
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots import Frame, Joint, Link, Robot, load, names
from retorque.robots.formats.mjcf import read_menagerie, read_mjcf, to_mjmodel, write_mjcf
from retorque.robots.validate import check
from retorque.work.errors import RetorqueError

# Everything a file can do to a joint: anchors off the origin, reference positions, two joints on one body, slides,
# bodies without joints, an inertia off its axes, and gravity that is not vertical.
ODD = """
<mujoco model="odd">
  <compiler angle="radian"/>
  <option gravity="1 -2 -9"/>
  <worldbody>
    <body name="stand" pos="0.1 0.2 0.3" quat="0.9 0.1 0.2 0.3">
      <geom type="box" size="0.1 0.1 0.1" mass="3"/>
      <body name="tower" pos="0 0 0.4" quat="0.8 0 0.6 0" gravcomp="1">
        <joint name="turn" axis="0 0 2" pos="0.05 0 0.02" range="-1 2" ref="0.4" armature="0.03"/>
        <joint name="tilt" axis="1 1 0" pos="0 0.03 0" range="-1.5 1.5" ref="-0.2" damping="3" frictionloss="1"/>
        <inertial pos="0.01 0.02 0.1" mass="1.5" fullinertia="0.02 0.03 0.025 0.002 -0.001 0.003"/>
        <body name="plate" pos="0.1 0 0.1" quat="0.7 0.7 0 0">
          <inertial pos="0 0 0.02" mass="0.4" diaginertia="0.002 0.001 0.0015"/>
          <body name="rail" pos="0 0.1 0" quat="0.5 0.5 0.5 0.5">
            <joint name="slide" type="slide" axis="0 1 0" pos="0.3 0 0" range="-0.2 0.3" ref="0.1" stiffness="5"/>
            <inertial pos="0.03 0 0" mass="0.7" diaginertia="0.001 0.002 0.002"/>
            <body name="tip" pos="0.2 0 0.1"><site name="nose" pos="0 0 0.05"/></body>
          </body>
        </body>
        <body name="tail" pos="-0.2 0 0">
          <joint name="wag" axis="0 1 0"/>
          <geom type="capsule" size="0.02" fromto="0 0 0 -0.2 0 0" mass="0.2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="turn" gear="5" ctrlrange="-3 2"/>
    <position joint="tilt" kp="10" forcerange="-7 7"/>
    <position joint="tilt" kp="10" forcerange="-1 1" gear="2"/>
    <motor joint="wag"/>
  </actuator>
  <keyframe><key name="far" qpos="0 0 5 0"/><key name="home" qpos="0.5 0.1 0.2 0.3"/></keyframe>
</mujoco>
"""


def write(folder: Path, text: str, name: str = "odd.xml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_odd_joints_move_as_in_mujoco(tmp_path: Path, dynamics) -> None:
    path = write(tmp_path, ODD)
    robot = read_mjcf(path)
    assert robot.joint_names == ("turn", "tilt", "slide", "wag")
    assert [link.name for link in robot.links] == ["stand", "tower/turn", "tower", "rail", "tail"]
    assert robot.name == "odd" and robot.gravity == (1.0, -2.0, -9.0)
    assert robot.end_effector == robot.frames["nose"] and robot.end_effector.link == "rail"
    source = mujoco.MjModel.from_xml_path(str(path))
    source.body_gravcomp[:] = 0.0
    written = to_mjmodel(robot)
    again = read_mjcf(write(tmp_path, write_mjcf(robot), "again.xml"))
    ours, second = RigidBody(robot), RigidBody(again)
    their_data, data = mujoco.MjData(source), mujoco.MjData(written)
    rng = np.random.default_rng(0)
    for _ in range(50):
        q, qd = rng.uniform(-1, 1, 4), rng.normal(size=4)
        mass, bias = dynamics(source, their_data, q, qd)
        for our_mass, our_bias in (
            dynamics(written, data, q, qd),
            (ours.mass_matrix(q), ours.bias(q, qd)),
            (second.mass_matrix(q), second.bias(q, qd)),
        ):
            assert np.allclose(our_mass, mass, rtol=0, atol=1e-9)
            assert np.allclose(our_bias, bias, rtol=0, atol=1e-9)
        mujoco.mj_kinematics(source, their_data)
        position, turn = ours.frame_pose(robot.end_effector, q)
        assert np.allclose(position, their_data.site("nose").xpos, atol=1e-12)
        assert np.allclose(turn, their_data.site("nose").xmat.reshape(3, 3), atol=1e-12)


def test_limits_and_home(tmp_path: Path) -> None:
    robot = read_mjcf(write(tmp_path, ODD))
    assert robot.torque_limit.tolist() == [15.0, 9.0, np.inf, np.inf]
    assert robot.lower.tolist() == [-1.0, -1.5, -0.2, -np.inf]
    assert robot.upper.tolist() == [2.0, 1.5, 0.3, np.inf]
    assert robot.armature.tolist() == [0.03, 0.0, 0.0, 0.0]
    assert robot.home.tolist() == [0.5, 0.1, 0.2, 0.3]
    assert "gravity compensation" in robot.notes
    # Without a keyframe inside the limits: zero, 0.6 inside the limits, or the middle of a narrow range.
    text = ODD.replace('<key name="home" qpos="0.5 0.1 0.2 0.3"/>', "").replace('range="-1 2"', 'range="0.5 2.5"')
    assert read_mjcf(write(tmp_path, text)).home == pytest.approx([1.1, 0.0, 0.05, 0.0])
    text = text.replace('<motor joint="turn" gear="5" ctrlrange="-3 2"/>', "").replace(
        'range="0.5 2.5"', 'range="0.5 2.5" actuatorfrcrange="-4 4"'
    )
    assert read_mjcf(write(tmp_path, text)).torque_limit[0] == 4.0


def test_cut_to_named_joints(tmp_path: Path, dynamics) -> None:
    path = write(tmp_path, ODD)
    robot = read_mjcf(path, joints=("wag", "tilt"))
    assert robot.joint_names == ("tilt", "wag")
    assert "welded at their reference position: turn, slide" in robot.notes
    source = mujoco.MjModel.from_xml_path(str(path))
    source.body_gravcomp[:] = 0.0
    data, ours = mujoco.MjData(source), RigidBody(robot)
    rng = np.random.default_rng(1)
    for _ in range(20):
        q, qd = rng.uniform(-1, 1, 2), rng.normal(size=2)
        qpos, qvel = source.qpos0.copy(), np.zeros(4)
        qpos[[1, 3]], qvel[[1, 3]] = q, qd
        mass, bias = dynamics(source, data, qpos, qvel)
        assert np.allclose(ours.mass_matrix(q), mass[np.ix_([1, 3], [1, 3])], rtol=0, atol=1e-10)
        assert np.allclose(ours.bias(q, qd), bias[[1, 3]], rtol=0, atol=1e-10)
    with pytest.raises(RetorqueError, match=r"odd\.xml: unknown joint 'tillt'; did you mean 'tilt'\?"):
        read_mjcf(path, ("tillt",))
    with pytest.raises(RetorqueError, match="no joint that moves"):
        read_mjcf(path, ())


@pytest.mark.parametrize("name", names())
def test_cards_come_back(name: str, tmp_path: Path, dynamics) -> None:
    robot = load(name)
    again = read_mjcf(write(tmp_path, write_mjcf(robot)))
    assert again.name == name and again.joint_names == robot.joint_names and again.floating == robot.floating
    assert [link.name for link in again.links] == [link.name for link in robot.links]
    assert np.array_equal(again.home, robot.home) and np.array_equal(again.armature, robot.armature)
    assert np.array_equal(again.lower, robot.lower) and np.array_equal(again.upper, robot.upper)
    assert np.array_equal(again.torque_limit, robot.torque_limit)
    assert again.end_effector.link == robot.end_effector.link and set(again.frames) == set(robot.frames)
    assert again.payload_mount.link == robot.payload_mount.link
    assert np.allclose(again.end_effector.position, robot.end_effector.position, rtol=0, atol=1e-12)
    first, second = to_mjmodel(robot), to_mjmodel(again)
    data, more = mujoco.MjData(first), mujoco.MjData(second)
    rng = np.random.default_rng(2)
    for _ in range(10):
        qpos, qvel = first.qpos0 + 0.3 * rng.normal(size=first.nq), rng.normal(size=first.nv)
        mass, bias = dynamics(first, data, qpos, qvel)
        our_mass, our_bias = dynamics(second, more, qpos, qvel)
        assert np.abs(our_mass - mass).max() <= 1e-9 * np.abs(mass).max()
        assert np.abs(our_bias - bias).max() <= 1e-9 * np.abs(bias).max()


@pytest.mark.parametrize("name", names())
def test_the_model_is_the_ideal_robot(name: str) -> None:
    robot = load(name)
    model = to_mjmodel(robot, timestep=0.002)
    assert model.opt.timestep == 0.002 and model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
    assert model.nu == 0 and model.neq == 0 and not model.jnt_limited.any()
    assert not model.dof_damping.any() and not model.dof_frictionloss.any() and not model.body_gravcomp.any()
    assert np.array_equal(model.dof_armature[-robot.n :], robot.armature)
    assert [model.joint(j).name for j in range(model.njnt)][-robot.n :] == list(robot.joint_names)
    assert model.body_mass.sum() == pytest.approx(sum(link.mass for link in robot.links))


def test_a_frame_on_a_massless_link_is_refused(tmp_path: Path) -> None:
    robot = read_mjcf(write(tmp_path, ODD))
    with pytest.raises(RetorqueError, match="frame on a massless link"):
        write_mjcf(replace(robot, end_effector=Frame(link="tower/turn")))


def test_missing_meshes_are_dropped(tmp_path: Path) -> None:
    text = ODD.replace("<worldbody>", '<asset><mesh name="m" file="none.stl"/></asset><worldbody>').replace(
        '<body name="plate"', '<geom type="mesh" mesh="m"/><body name="plate"'
    )
    assert read_mjcf(write(tmp_path, text)).n == 4
    assert read_mjcf(write(tmp_path, text, "odd.mjcf")).n == 4
    # A body whose inertia was to come from the missing mesh cannot move.
    text = text.replace(
        '<geom type="capsule" size="0.02" fromto="0 0 0 -0.2 0 0" mass="0.2"/>', '<geom type="mesh" mesh="m"/>'
    )
    with pytest.raises(RetorqueError, match=r"odd\.xml: MuJoCo cannot load this file \(.*none\.stl.*\); correct it"):
        read_mjcf(write(tmp_path, text))


BAD = {
    "broken": ("<mujoco", r"MuJoCo cannot load this file"),
    "no joints": ('<mujoco><worldbody><body><geom size="1"/></body></worldbody></mujoco>', "no joint that moves"),
    "no bodies": ("<mujoco/>", "no joint that moves"),
    "ball": (
        '<mujoco><worldbody><body><joint name="b" type="ball"/><geom size="1"/></body></worldbody></mujoco>',
        "'b' is a ball joint",
    ),
    "two free bodies": (
        '<mujoco><worldbody><body name="a"><freejoint/><geom size="1"/><body name="c"><joint/>'
        '<geom size="1"/></body></body><body name="b"><freejoint/><geom size="1"/></body></worldbody></mujoco>',
        "'a' and 'b' are both bases",
    ),
    "unknown element": ("<mujoco><nonsense/></mujoco>", "MuJoCo cannot load this file"),
    "no mass": ("<mujoco><worldbody><body><joint/></body></worldbody></mujoco>", "MuJoCo cannot load this file"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case: str, tmp_path: Path) -> None:
    text, sentence = BAD[case]
    with pytest.raises(RetorqueError, match=sentence) as caught:
        read_mjcf(write(tmp_path, text, "bad.xml"))
    assert str(caught.value).startswith("bad.xml: ") and "\n" not in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="there is no file"):
        read_mjcf(tmp_path / "none.xml")


def test_unnamed_bodies_get_names(tmp_path: Path) -> None:
    ball = '<joint/><geom size="1"/>'
    text = f"<mujoco><worldbody><body>{ball}<body>{ball}</body></body></worldbody></mujoco>"
    robot = read_mjcf(write(tmp_path, text, "plain.xml"))
    assert robot.name == "plain" and robot.joint_names == ("joint0", "joint1")
    assert [link.name for link in robot.links] == ["body1", "body2"]


def test_a_ball_joint_may_be_welded(tmp_path: Path) -> None:
    text = (
        '<mujoco><worldbody><body name="a"><joint name="h"/><geom size="1"/><body name="c">'
        '<joint name="b" type="ball"/><geom size="1"/></body></body></worldbody></mujoco>'
    )
    assert read_mjcf(write(tmp_path, text), ("h",)).joint_names == ("h",)


def test_menagerie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, ODD)

    class MenagerieError(Exception):
        pass

    def offline(entry: str) -> Path:
        raise MenagerieError("no network\nat all")

    robots = {
        "odd_robot": SimpleNamespace(default_model="odd", xml=lambda entry: path),
        "far_robot": SimpleNamespace(default_model="far", xml=offline),
    }
    fake = ModuleType("mujoco_menagerie")
    fake.__dict__.update(names=lambda: sorted(robots), get=robots.__getitem__, MenagerieError=MenagerieError)
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", fake)
    assert read_menagerie("odd_robot", ("turn",)).joint_names == ("turn",)
    assert "turn" in Robot.load("menagerie:odd_robot").joint_names
    with pytest.raises(RetorqueError, match=r"unknown Menagerie robot 'od_robot'; did you mean 'odd_robot'\?"):
        read_menagerie("od_robot")
    with pytest.raises(RetorqueError, match=r"could not be fetched \(no network at all\); check the network"):
        read_menagerie("far_robot")
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    with pytest.raises(RetorqueError, match=r"pip install 'retorque\[menagerie\]'"):
        read_menagerie("odd_robot")


def test_a_massless_link_between_two_joints() -> None:
    inertia = (0.01, 0.01, 0.01, 0.0, 0.0, 0.0)
    links = (
        Link(name="a", parent="world", joint=Joint(name="j"), mass=0.0, position=(0.0, 0.0, 0.1)),
        Link(name="b", parent="a", joint=Joint(name="k", axis=(1.0, 0.0, 0.0)), mass=1.0, inertia=inertia),
    )
    end = Frame(link="b")
    robot = Robot(name="two", links=links, home=np.zeros(2), end_effector=end, payload_mount=end)
    assert check(robot, "two") is robot
    model = to_mjmodel(robot)
    assert (model.nbody, model.nv) == (2, 2)
    branch = Link(name="c", parent="a", joint=Joint(name="l"), mass=1.0, inertia=inertia)
    with pytest.raises(RetorqueError, match="two: link 'a' moves but has no mass or no inertia"):
        check(replace(robot, links=(*links, branch), home=np.zeros(3)), "two")
