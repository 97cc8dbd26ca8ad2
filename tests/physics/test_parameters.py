"""The one parameter object: draws, payloads, files, vectors."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.default_profile import profile_of
from retorque.physics.friction import preset
from retorque.physics.inertia import from_vector, pseudo_inertia, robot_inertia, to_vector
from retorque.physics.parameters import ARRAYS, SLOPE_OF_WIDTH, Parameters, mount
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")


def _equal(a: Parameters, b: Parameters) -> None:
    assert a.friction == b.friction
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


@pytest.mark.parametrize("name", (*SEVEN, "ur10e", "arx_x5"))
def test_samples_stay_within_bounds_and_are_feasible(name: str) -> None:
    robot = Robot.load(name)
    p = Parameters.sample(robot, profile_of(robot), 500, 0)
    chosen = Selection(robot, DRAWN, profile=profile_of(robot))
    vector = chosen.to_vector(p)
    slack = 1e-9 * (chosen.upper - chosen.lower)
    for column, title in enumerate(chosen.names):
        assert np.all(vector[:, column] >= chosen.lower[column] - slack[column]), title
        assert np.all(vector[:, column] <= chosen.upper[column] + slack[column]), title
    np.testing.assert_allclose(chosen.clip(p).flatten(), p.flatten(), rtol=1e-9, atol=1e-12)
    assert np.linalg.eigvalsh(pseudo_inertia(p.total_inertial(robot)))[..., 0].min() > -1e-12


def _drawn_as_before(
    robot: Robot, profile: Profile, trials: int, seed: int
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The order of draws that the published figures rest on, and the links with their payload as they followed."""
    rng = np.random.default_rng(seed)
    links, n = len(robot.moving_links), robot.n
    bias = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max
    difference = rng.uniform(-1.0, 1.0, (trials, n)) * profile.bias_max * profile.bias_difference
    width = rng.uniform(*profile.friction_width, (trials, n))
    skew = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_asymmetry
    shift = rng.uniform(-1.0, 1.0, (trials, n)) * profile.friction_shift
    scale = rng.uniform(*profile.mass_scale, (trials, links))
    offset = rng.uniform(-1.0, 1.0, (trials, links, 3)) * profile.centre_offset
    armature = rng.uniform(profile.armature_min, profile.armature_max, (trials, n))
    payload = rng.uniform(*profile.payload_mass, trials)
    centre = rng.uniform(-1.0, 1.0, (trials, 3)) * profile.payload_centre
    gain = rng.uniform(*profile.torque_scale, (trials, n, 2))
    dead = rng.uniform(0.0, 1.0, (trials, n, 2)) * profile.dead_zone_max[:, None]
    viscous = rng.uniform(0.0, 1.0, (trials, n, 2)) * profile.viscous_max[:, None]
    slope = SLOPE_OF_WIDTH / width
    mass, own, inertia = from_vector(robot_inertia(robot))
    vector = to_vector(scale * mass, own + offset, scale[..., None, None] * inertia)
    where = mount(robot)
    assert where is not None
    index, rotation, origin = where
    vector[..., index, :] += to_vector(payload, origin + centre @ rotation.T, np.zeros((trials, 3, 3)))
    fields = {
        "armature": armature,
        "torque_scale": gain,
        "dead_zone": dead,
        "viscous": viscous,
        "torque_bias": np.stack([bias, bias + difference], axis=-1),
        "friction_slope": np.stack([slope * 10.0**skew, slope * 10.0**-skew], axis=-1),
    }
    assert shift.shape == (trials, n)
    return vector, fields


@pytest.mark.parametrize("name", (*SEVEN, "ur10e"))
def test_the_worlds_are_those_of_the_published_figures(name: str) -> None:
    robot = Robot.load(name)
    p = Parameters.sample(robot, profile_of(robot), 20, 11)
    links, fields = _drawn_as_before(robot, profile_of(robot), 20, 11)
    np.testing.assert_allclose(p.total_inertial(robot), links, rtol=0.0, atol=1e-12)
    for field, values in fields.items():
        np.testing.assert_array_equal(getattr(p, field), values, err_msg=field)


def test_the_same_seed_gives_the_same_targets_and_another_seed_others() -> None:
    robot = Robot.load("panda")
    profile = profile_of(robot)
    first = Parameters.sample(robot, profile, 5, 3)
    _equal(first, Parameters.sample(robot, profile, 5, 3))
    assert not np.array_equal(first.flatten(), Parameters.sample(robot, profile, 5, 4).flatten())


def test_ideal_parameters_are_the_robot_itself() -> None:
    robot = Robot.load("panda")
    np.testing.assert_allclose(Parameters.ideal(robot).total_inertial(robot), robot_inertia(robot), atol=1e-14)


@pytest.mark.parametrize("friction", ("none", "presliding"))
def test_flatten_save_and_slices_round_trip(tmp_path, friction: str) -> None:
    robot = Robot.load("z1")
    p = Parameters.sample(robot, profile_of(robot), 4, 0)
    terms = preset(friction)
    coefficients = np.random.default_rng(1).uniform(0.0, 1.0, (4, robot.n, terms.count))
    p = replace(p, friction=terms, friction_coefficients=coefficients)
    _equal(Parameters.unflatten(robot, p.flatten(), terms), p)
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
    np.testing.assert_array_equal(ideal.with_payload(1.0).total_inertial(hand), ideal.total_inertial(hand))


def test_a_payload_can_be_any_body() -> None:
    robot = Robot.load("panda")
    centre, inertia = np.array([0.01, -0.02, 0.05]), np.diag([0.01, 0.02, 0.015])
    p = Parameters.ideal(robot, 3).with_payload(np.array([1.0, 2.0, 0.5]), centre, inertia)
    np.testing.assert_allclose(p.payload_mass, [1.0, 2.0, 0.5])
    np.testing.assert_allclose(p.payload_centre, np.tile(centre, (3, 1)), atol=1e-15)
    where = mount(robot)
    assert where is not None
    index, rotation, origin = where
    felt = (p.total_inertial(robot) - p.inertial)[:, index]
    mass, at, about = from_vector(felt)
    np.testing.assert_allclose(mass, p.payload_mass, atol=1e-12)
    np.testing.assert_allclose(at, np.tile(origin + rotation @ centre, (3, 1)), atol=1e-12)
    np.testing.assert_allclose(about, np.tile(rotation @ inertia @ rotation.T, (3, 1, 1)), atol=1e-12)
    heavier = p.with_payload(p.payload_mass + 0.5)  # the centre stays
    np.testing.assert_allclose(heavier.payload_centre, p.payload_centre, atol=1e-15)
