"""Robots by name and by path."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import retorque.robots
from retorque.robots import Robot, load, names
from retorque.robots.card import write_card
from retorque.robots.formats.mjcf import write_mjcf
from retorque.robots.formats.urdf import write_urdf
from retorque.work.errors import RetorqueError

ON_BOARD = {
    "panda": 7,
    "piper": 6,
    "iiwa14": 7,
    "rizon4": 7,
    "rby1": 7,
    "google_robot": 7,
    "z1": 6,
    "ur10e": 6,
    "xmate3": 7,
    "arx_x5": 6,
    "leap_hand": 16,
    "leap_hand_left": 16,
    "toddlerbot": 30,
    "toddlerbot_2xm": 30,
    "g1": 29,
}


def test_names() -> None:
    assert names() == tuple(sorted(ON_BOARD))
    assert set(retorque.robots.__all__) <= set(dir(retorque.robots))


@pytest.mark.parametrize("name", ON_BOARD)
def test_load(name: str) -> None:
    robot = load(name)
    assert robot.name == name and robot.n == ON_BOARD[name]
    assert robot.floating == (name in ("toddlerbot", "toddlerbot_2xm", "g1"))
    assert robot.title and robot.source and robot.notes
    assert np.all(robot.torque_limit < np.inf)
    assert load(name) is robot  # read once
    assert Robot.load(name) is robot


def test_by_path(tmp_path: Path) -> None:
    robot = load("z1")
    write_card(robot, tmp_path / "z.toml")
    (tmp_path / "z.xml").write_text(write_mjcf(robot))
    (tmp_path / "z.mjcf").write_text(write_mjcf(robot))
    (tmp_path / "z.urdf").write_text(write_urdf(robot))
    (tmp_path / "urdf_in.xml").write_text(write_urdf(robot))
    for path in tmp_path.iterdir():
        for form in (path, str(path)):
            assert load(form).joint_names == robot.joint_names


def test_unknown_name() -> None:
    with pytest.raises(RetorqueError, match=r"unknown robot 'pandda'; did you mean 'panda'\? on board: arx_x5, g1"):
        load("pandda")


def test_bad_paths(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match=r"there is no file 'my_robot\.xml'; give the path"):
        load("my_robot.xml")
    with pytest.raises(RetorqueError, match="there is no file"):
        load(tmp_path / "nothing")
    with pytest.raises(RetorqueError, match="there is no file"):
        load(tmp_path)
    for name, text, sentence in (
        ("a.xml", "<sdf/>", "starts with <sdf>; a robot's file starts with <mujoco> or <robot>"),
        ("b.xml", "no xml", "b.xml: this is not an XML file"),
        ("c.xml", "", "c.xml: this is not an XML file"),
        ("d.txt", "<mujoco/>", "neither a robot on board nor a file ending in .toml"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(RetorqueError) as caught:
            load(tmp_path / name)
        assert sentence in str(caught.value)


def test_link_by_name() -> None:
    assert load("panda").link("link3").mass == 3.2286
    with pytest.raises(RetorqueError, match="robot 'panda' has no link 'nose'; it has: link0, link1"):
        load("panda").link("nose")
