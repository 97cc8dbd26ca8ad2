"""Shapes of links: in cards, from MJCF files, in the models that are written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from retorque.robots import load
from retorque.robots.card import read_card, write_card
from retorque.robots.formats.mjcf import read_mjcf, to_mjmodel
from retorque.robots.robot import Geom, Robot
from retorque.robots.validate import check
from retorque.work.errors import RetorqueError

FILE = """<mujoco model="arm"><worldbody>
<body name="base"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
 <body name="upper" pos="0 0 0.1"><joint name="a" axis="0 1 0"/>
  <inertial pos="0 0 0.1" mass="1" diaginertia="0.01 0.01 0.01"/>
  <geom type="capsule" size="0.03 0.1" pos="0 0 0.1" friction="0.4"/>
  <geom type="box" size="0.1 0.1 0.1" contype="0" conaffinity="0"/>
  <body name="tool" pos="0 0 0.2" quat="0 1 0 0">
   <inertial pos="0 0 0" mass="0.1" diaginertia="0.001 0.001 0.001"/>
   <geom type="sphere" size="0.02" pos="0 0.01 -0.05"/>
  </body></body></body></worldbody></mujoco>"""


def _with(robot: Robot, **changes: object) -> Robot:
    last = replace(robot.links[-1], geoms=(replace(Geom(shape="box", size=(0.1, 0.1, 0.1)), **changes),))
    return robot.with_links((*robot.links[:-1], last))


def test_cards_keep_shapes_and_end_effectors(tmp_path: Path) -> None:
    for name in ("panda", "leap_hand", "toddlerbot_2xm"):
        robot = load(name)
        write_card(robot, tmp_path / "again.toml")
        again = read_card(tmp_path / "again.toml")
        assert again.links == robot.links and again.end_effectors == robot.end_effectors
        assert any(link.geoms for link in robot.links)
    assert load("toddlerbot_2xm").end_effectors == ("left_hand_centre", "right_hand_centre")
    assert load("leap_hand").frame("thumb_tip").link == "th_ds"
    assert load("panda").frame("end_effector") == load("panda").end_effector
    with pytest.raises(RetorqueError, match="did you mean 'thumb_tip'"):
        load("leap_hand").frame("thumb_tp")


def test_simple_shapes_of_a_file_are_kept_and_fused(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(FILE)
    capsule, sphere = read_mjcf(path).link("upper").geoms
    assert capsule.shape == "capsule" and capsule.size == (0.03, 0.1) and capsule.friction == 0.4
    assert sphere.shape == "sphere"
    np.testing.assert_allclose(sphere.position, [0.0, -0.01, 0.25], atol=1e-12)  # the tool is upside down


def test_links_have_their_own_shapes_or_capsules() -> None:
    robot = load("panda")
    model = to_mjmodel(robot)
    own = [g for g in range(model.ngeom) if model.body(int(model.geom_bodyid[g])).name == "link7"]
    assert len(own) == len(robot.link("link7").geoms) == 3
    assert {model.body(int(b)).name for b in model.geom_bodyid} == {link.name for link in robot.links}
    assert sum(model.geom_type == mujoco.mjtGeom.mjGEOM_BOX) == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shape": "cone"}, "unknown shape 'cone'"),
        ({"size": (0.1,)}, "give 3 positive numbers in m"),
        ({"size": (0.1, 0.1, -0.1)}, "give 3 positive numbers in m"),
        ({"size": (0.1, 0.1, 1e400)}, "give 3 positive numbers in m"),
        ({"quaternion": (2.0, 0.0, 0.0, 0.0)}, "unit quaternion"),
        ({"friction": -1.0}, "zero or more"),
    ],
)
def test_impossible_shapes_are_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(RetorqueError, match=sentence):
        check(_with(load("z1"), **changes), "z1")


def test_a_card_with_a_strange_shape_is_refused(tmp_path: Path) -> None:
    write_card(load("z1"), tmp_path / "z.toml")
    text = (tmp_path / "z.toml").read_text()
    (tmp_path / "bad.toml").write_text(text.replace('shape = "cylinder"', 'shape = "cone"', 1))
    with pytest.raises(RetorqueError, match="use box, sphere, capsule, cylinder"):
        read_card(tmp_path / "bad.toml")
    (tmp_path / "worse.toml").write_text(text.replace("name =", 'end_effectors = ["nose"]\nname =', 1))
    with pytest.raises(RetorqueError, match="unknown frame 'nose'"):
        read_card(tmp_path / "worse.toml")
