"""Capsules: every robot can be seen and collided."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from retorque.robots import load, names
from retorque.robots.formats.mjcf import to_mjmodel
from retorque.robots.shapes import capsules


@pytest.mark.parametrize("name", names())
def test_every_link_has_a_shape(name: str) -> None:
    robot = load(name)
    shapes = capsules(robot)
    assert {shape.link for shape in shapes} == {link.name for link in robot.links}
    for shape in shapes:
        assert 0.004 <= shape.radius < 0.5
        assert np.linalg.norm(shape.end - shape.start) > 1e-4


def test_a_chain_is_joined_up() -> None:
    robot = load("panda")
    ends = {shape.link: shape.end for shape in capsules(robot)}
    assert np.array_equal(ends["link3"], robot.link("link4").position)
    assert np.array_equal(ends["link7"], robot.end_effector.position)


@pytest.mark.parametrize("name", names())
def test_nothing_touches_at_home(name: str) -> None:
    model = to_mjmodel(load(name), contact=True)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    assert model.ngeom > 0 and data.ncon == 0


def test_an_arm_folded_into_itself_collides() -> None:
    robot = load("z1")
    model = to_mjmodel(robot, contact=True)
    data = mujoco.MjData(model)
    found = 0
    for q in np.random.default_rng(0).uniform(robot.lower, robot.upper, (200, robot.n)):
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        found += data.ncon > 0
    assert 0 < found < 200


def test_without_contact_nothing_collides() -> None:
    model = to_mjmodel(load("z1"))
    assert model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert not model.geom_contype.any() and not model.geom_conaffinity.any()
