"""Ranges and gains for robots whose cards give none: stable, possible, and fit to the robot's size."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from retorque.physics.default_profile import AMPLITUDE, SAMPLING, critical_damping, damping_rate, profile_of
from retorque.physics.inertia import pseudo_inertia, robot_inertia, with_inertias
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import names
from retorque.robots.robot import Robot

FIXED = tuple(name for name in names() if not Robot.load(name).floating)


def bare(name: str) -> Robot:
    """A robot as a file without a profile has it."""
    return replace(Robot.load(name), profile=None)


@pytest.mark.parametrize("name", FIXED)
def test_ranges_are_numbers_in_order(name: str) -> None:
    robot = bare(name)
    profile = profile_of(robot)
    for field in fields(profile):
        value = getattr(profile, field.name)
        if value is None:
            continue
        assert np.all(np.isfinite(value)) and np.all(np.asarray(value) >= 0.0), field.name
        if isinstance(value, tuple):
            assert value[0] <= value[1], field.name
    assert np.all(profile.armature_min <= profile.armature_max)
    reach = profile.tracking_amplitude
    assert np.all(robot.home - reach >= robot.lower) and np.all(robot.home + reach <= robot.upper)


@pytest.mark.parametrize("name", FIXED)
def test_what_is_drawn_from_them_could_exist(name: str) -> None:
    robot = bare(name)
    drawn = Parameters.sample(robot, profile_of(robot), 3, 1000)
    loaded = drawn.total_inertial(robot)
    heavy = robot_inertia(robot)[:, 0] > 1e-6
    assert np.linalg.eigvalsh(pseudo_inertia(loaded[:, heavy])).min() > -1e-9
    for k in range(3):
        matrix = RigidBody(robot, loaded[k], drawn.armature[k]).mass_matrix(robot.home)
        assert np.linalg.eigvalsh(matrix).min() > 0.0


@pytest.mark.parametrize("name", FIXED)
def test_critical_damping_never_shakes_within_the_motion(name: str) -> None:
    """Sampled at 1 kHz, a velocity loop of rate 2 / dt and more is unstable."""
    robot = bare(name)
    profile = profile_of(robot)
    damping = critical_damping(robot, profile.tracking_stiffness, profile.tracking_amplitude)
    offsets = np.random.default_rng(1000).uniform(-1.0, 1.0, (30, robot.n)) * profile.tracking_amplitude
    assert damping_rate(robot, damping, robot.home + offsets) * SAMPLING < 1.0
    ideal = 2.0 * np.sqrt(profile.tracking_stiffness * np.diagonal(RigidBody(robot).mass_matrix(robot.home)))
    assert np.all(damping > 0.0) and np.all(damping <= ideal * (1.0 + 1e-12))


def test_damping_of_a_batch_is_that_of_each() -> None:
    robot = Robot.load("panda")
    stiffness = np.random.default_rng(0).uniform(10.0, 2000.0, (4, robot.n))
    whole = critical_damping(robot, stiffness)
    for row, found in zip(stiffness, whole, strict=True):
        np.testing.assert_allclose(critical_damping(robot, row), found, rtol=1e-12)


def test_a_heavier_robot_gets_stiffer_gains_and_the_same_frequency() -> None:
    light = bare("z1")
    heavy = with_inertias(light, 4.0 * robot_inertia(light), 4.0 * light.armature)
    ours, theirs = profile_of(light).tracking_stiffness, profile_of(heavy).tracking_stiffness
    assert np.all(theirs >= ours)
    assert np.all(profile_of(heavy).armature_max >= profile_of(light).armature_max)


def test_the_cards_own_profile_is_taken_as_it_is() -> None:
    robot = Robot.load("panda")
    assert robot.profile is not None and profile_of(robot) is robot.profile


@pytest.mark.parametrize("name", ["z1", "leap_hand"])
def test_unknown_limits_are_replaced_by_what_the_robot_needs(name: str) -> None:
    robot = bare(name)
    links = tuple(
        x if x.joint is None else replace(x, joint=replace(x.joint, torque_limit=np.inf, lower=-np.inf, upper=np.inf))
        for x in robot.links
    )
    profile = profile_of(robot.with_links(links))
    assert np.all(np.isfinite(profile.friction_max)) and np.all(profile.friction_max > 0.0)
    assert np.all(profile.tracking_amplitude == pytest.approx(AMPLITUDE))
