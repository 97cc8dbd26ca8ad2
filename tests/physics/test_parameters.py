"""The one parameter object: ranges, files, vectors."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.inertia import pseudo_inertia, robot_inertia
from retorque.physics.parameters import Parameters, bounds
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")


def _equal(a: Parameters, b: Parameters) -> None:
    for f in fields(Parameters):
        np.testing.assert_array_equal(getattr(a, f.name), getattr(b, f.name))


@pytest.mark.parametrize("name", (*SEVEN, "ur10e", "arx_x5"))
def test_samples_stay_within_bounds_and_are_feasible(name: str) -> None:
    robot = Robot.load(name)
    profile = profile_of(robot)
    p = Parameters.sample(robot, profile, 500, 0)
    low, high = bounds(robot, profile)
    for f in fields(Parameters):
        values = getattr(p, f.name)
        assert np.all(values >= getattr(low, f.name) - 1e-12), f.name
        assert np.all(values <= getattr(high, f.name) + 1e-12), f.name
    _equal(p.clip(robot, profile), p)
    assert np.linalg.eigvalsh(pseudo_inertia(p.inertial(robot)))[..., 0].min() > -1e-12


def test_the_same_seed_gives_the_same_targets_and_another_seed_others() -> None:
    robot = Robot.load("panda")
    profile = profile_of(robot)
    first = Parameters.sample(robot, profile, 5, 3)
    _equal(first, Parameters.sample(robot, profile, 5, 3))
    assert not np.array_equal(first.flatten(), Parameters.sample(robot, profile, 5, 4).flatten())


def test_ideal_parameters_are_the_robot_itself() -> None:
    robot = Robot.load("panda")
    np.testing.assert_allclose(Parameters.ideal(robot).inertial(robot), robot_inertia(robot), atol=1e-14)


def test_flatten_save_and_slices_round_trip(tmp_path) -> None:
    robot = Robot.load("z1")
    p = Parameters.sample(robot, profile_of(robot), 4, 0)
    _equal(Parameters.unflatten(robot, p.flatten()), p)
    _equal(p[1:3][0], p[1])
    p.save(tmp_path / "p.json", robot)
    _equal(Parameters.load(tmp_path / "p.json", robot), p)


@pytest.mark.parametrize("damage", ("missing", "truncated", "another robot", "shape", "not finite", "field", "binary"))
def test_damaged_files_are_refused(tmp_path, damage: str) -> None:
    robot = Robot.load("panda")
    path = tmp_path / "p.json"
    Parameters.ideal(robot, 2).save(path, robot)
    content = json.loads(path.read_text())
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_text(path.read_text()[:200])
    elif damage == "another robot":
        robot = Robot.load("z1")
    elif damage == "shape":
        content["parameters"]["armature"] = content["parameters"]["armature"][:1]
    elif damage == "not finite":
        content["parameters"]["viscous"][0][0][0] = float("nan")
    elif damage == "field":
        del content["parameters"]["dead_zone"]
    else:
        path.write_bytes(b"\xff\xfe\x00\x80")
    if damage in ("shape", "not finite", "field"):
        path.write_text(json.dumps(content))
    with pytest.raises(RetorqueError):
        Parameters.load(path, robot)


def test_a_payload_on_a_link_that_does_not_move_is_not_felt() -> None:
    hand = Robot.load("leap_hand")  # its palm is fixed
    ideal = Parameters.ideal(hand)
    loaded = replace(ideal, payload_mass=np.array(1.0))
    np.testing.assert_array_equal(loaded.inertial(hand), ideal.inertial(hand))
