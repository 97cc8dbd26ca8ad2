"""Friction, drive and uncertainty on a card; read-only robots; exports that other programs load."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.friction import PRESETS, Friction, preset
from retorque.physics.parameters import ARRAYS, Parameters
from retorque.robots.card import card_text, read_card
from retorque.robots.formats.mjcf_writer import to_mjmodel, write_mjcf
from retorque.robots.formats.urdf import read_urdf
from retorque.robots.formats.urdf_writer import write_urdf
from retorque.robots.library import load, names
from retorque.robots.losses import Drive, JointFriction, Uncertainty
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


def _lossy(robot: Robot, terms: str = "presliding", seed: int = 0) -> Robot:
    """A robot whose card knows everything."""
    rng = np.random.default_rng(seed)
    n, friction = robot.n, preset(terms)
    shape = (n, friction.count)
    return replace(
        robot,
        friction=JointFriction(
            terms=friction.names, coefficients=rng.uniform(0.1, 1.0, shape), deviation=rng.uniform(0.0, 0.1, shape)
        ),
        drive=Drive(
            gain=rng.uniform(0.9, 1.1, (n, 2)), bias=rng.normal(0.0, 0.1, (n, 2)), dead_zone=np.full((n, 2), 0.1)
        ),
        uncertainty=Uncertainty(
            inertial=rng.uniform(0.0, 0.1, (len(robot.moving_links), 10)), armature=rng.uniform(0.0, 0.1, n)
        ),
    )


def _written(robot: Robot, folder: Path, change: tuple[str, str] | None = None) -> Path:
    text = card_text(robot)
    if change is not None:
        assert change[0] in text
        text = text.replace(*change, 1)
    path = folder / "robot.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ("panda", "z1", "g1"))
def test_a_card_keeps_every_digit(tmp_path: Path, name: str) -> None:
    robot = _lossy(load(name))
    again = read_card(_written(robot, tmp_path))
    for part in ("friction", "drive", "uncertainty"):
        one, two = vars(getattr(robot, part)), vars(getattr(again, part))
        for key, value in one.items():
            np.testing.assert_array_equal(two[key], value, err_msg=key)


@pytest.mark.parametrize("terms", [name for name in PRESETS if name != "none"])
def test_parameters_go_onto_a_card_and_come_back(tmp_path: Path, terms: str) -> None:
    robot = load("panda")
    p = Parameters.of_robot(_lossy(robot, terms))
    assert p.friction == preset(terms)
    again = Parameters.of_robot(read_card(_written(p.on_card(robot), tmp_path)))
    assert again.friction == p.friction
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(again, name), getattr(p, name), atol=1e-12, err_msg=name)


def test_sampled_worlds_go_onto_a_card_too(tmp_path: Path) -> None:
    robot = load("panda")
    p = Parameters.sample(robot, profile_of(robot), 3, 5)[1]
    again = Parameters.of_robot(read_card(_written(p.on_card(robot), tmp_path)), 2)
    np.testing.assert_allclose(again.total_inertial(robot)[1], p.total_inertial(robot), atol=1e-12)
    for name in set(ARRAYS) - {"inertial", "payload"}:
        np.testing.assert_allclose(getattr(again, name)[0], getattr(p, name), atol=1e-15, err_msg=name)
    with pytest.raises(RetorqueError, match="one robot"):
        Parameters.ideal(robot, 2).on_card(robot)
    with pytest.raises(RetorqueError, match="springs"):
        replace(Parameters.ideal(robot), stiffness=np.ones(robot.n)).on_card(robot)


DAMAGE = {
    "huge": (('"panda_joint1" = [', '"panda_joint1" = [1e308, '), "numbers"),
    "unit": (('"N·m·s/rad"', '"N·m"'), "convert the numbers"),
    "family": (('family = "terms"', 'family = "lugre"'), "unknown family of friction 'lugre'"),
    "joint": (('"panda_joint1" = [', '"panda_jointX" = ['), "has no 'panda_joint1'"),
    "limit": (("limit = 0.02", "limit = nan"), "above zero"),
    "section": (("[drive]", "[drive]\nripple = 3"), "unknown key 'ripple'"),
}


def test_a_damaged_section_is_refused_with_one_sentence(tmp_path: Path) -> None:
    robot = _lossy(load("panda"))
    first = robot.joint_names[0]
    for change, message in DAMAGE.values():
        renamed = (change[0].replace("panda_joint1", first), change[1].replace("panda_joint1", first))
        with pytest.raises(RetorqueError, match=message.replace("panda_joint1", first)) as caught:
            read_card(_written(robot, tmp_path, renamed))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", (1e308, np.inf, np.nan, -1.0))
@pytest.mark.parametrize("part", ("friction", "drive", "uncertainty"))
def test_absurd_numbers_are_refused_with_one_sentence(tmp_path: Path, part: str, value: float) -> None:
    robot = _lossy(load("panda"))
    field = {"friction": "coefficients", "drive": "gain", "uncertainty": "inertial"}[part]
    spoilt = np.array(getattr(getattr(robot, part), field))
    spoilt[2, 1] = value
    robot = replace(robot, **{part: replace(getattr(robot, part), **{field: spoilt})})
    with pytest.raises(RetorqueError, match=r"^robot\.toml: [^\n]*$"):
        read_card(_written(robot, tmp_path))


def test_terms_that_no_model_has_are_refused() -> None:
    for terms in (("viscous", "coulomb"), ("stribeck",), ("stribeck x",), ("presliding 0.5",), ("coulomb forward",)):
        with pytest.raises(RetorqueError):
            Friction.of_terms(terms)


@pytest.mark.parametrize("name", names())
def test_exports_load_in_pinocchio_and_mujoco(tmp_path: Path, name: str) -> None:
    robot = _lossy(load(name))
    assert robot.friction is not None
    urdf, mjcf = write_urdf(robot), write_mjcf(robot)
    for ending, text in (("urdf", urdf), ("xml", mjcf)):
        (tmp_path / f"robot.{ending}").write_text(text, encoding="utf-8")
    assert pin.buildModelFromXML(urdf).nv >= robot.n
    assert pin.buildModelFromMJCF(str(tmp_path / "robot.xml")).nv >= robot.n
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "robot.urdf")).nv >= robot.n
    model = mujoco.MjModel.from_xml_string(mjcf)
    index = [model.joint(joint).dofadr[0] for joint in robot.joint_names]
    np.testing.assert_allclose(model.dof_frictionloss[index], robot.friction.coulomb)
    np.testing.assert_allclose(model.dof_damping[index].reshape(robot.n, -1)[:, 0], robot.friction.viscous)
    np.testing.assert_allclose(model.dof_armature[index], robot.armature)


def test_urdf_carries_damping_friction_armature_and_unknown_limits(tmp_path: Path) -> None:
    robot = _lossy(load("arx_x5"))
    assert robot.friction is not None and not np.all(np.isfinite(robot.velocity_limit))
    (tmp_path / "robot.urdf").write_text(write_urdf(robot), encoding="utf-8")
    model = pin.buildModelFromUrdf(str(tmp_path / "robot.urdf"))
    np.testing.assert_allclose(model.damping, robot.friction.viscous)
    np.testing.assert_allclose(
        model.friction if hasattr(model, "friction") else model.upperDryFrictionLimit, robot.friction.coulomb
    )
    again = read_urdf(tmp_path / "robot.urdf")
    np.testing.assert_array_equal(again.velocity_limit, robot.velocity_limit)
    np.testing.assert_array_equal(again.torque_limit, robot.torque_limit)
    np.testing.assert_allclose(again.armature, robot.armature)


def test_what_a_format_with_two_numbers_can_say() -> None:
    coefficients = np.array([[0.2, 0.4, 1.0, 3.0, 0.5]])
    f = JointFriction(terms=Friction(asymmetric=True).names, coefficients=coefficients)
    assert f.coulomb == pytest.approx([0.3]) and f.viscous == pytest.approx([2.0])
    robot = load("panda")
    p = Parameters.sample(robot, profile_of(robot), 1, 0)[0]
    card = p.on_card(robot).friction
    assert card is not None
    np.testing.assert_allclose(card.coulomb, 0.5 * p.friction_amplitude.mean(axis=-1))


def test_a_simulation_model_has_no_friction_of_its_own() -> None:
    model = to_mjmodel(_lossy(load("panda")))
    assert not np.any(model.dof_frictionloss) and not np.any(model.dof_damping)


@pytest.mark.parametrize("name", names())
def test_a_robot_cannot_be_changed_by_accident(name: str) -> None:
    robot = _lossy(load(name))
    arrays = [robot.home, robot.lower, robot.upper, robot.velocity_limit, robot.torque_limit, robot.armature]
    for part in (robot.profile, robot.friction, robot.drive, robot.uncertainty):
        arrays += [value for value in vars(part).values() if isinstance(value, np.ndarray)] if part else []
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(TypeError):
        robot.frames["new"] = robot.end_effector
    again = pickle.loads(pickle.dumps(robot))
    assert not again.home.flags.writeable and dict(again.frames) == dict(robot.frames)
    np.testing.assert_array_equal(again.home, robot.home)
