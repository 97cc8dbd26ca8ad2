"""Friction, drive and uncertainty on a card: any names, any numbers, and nothing by half."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.actuator import effective_torque
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import PRESETS, Friction
from retorque.physics.parameters import Parameters
from retorque.robots.losses import Drive, JointFriction
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")


def again(robot: Robot, folder: Path) -> Robot:
    return Robot.load(robot.save(folder / "robot.toml"))


def with_losses(friction: Friction = PRESETS["stribeck"], seed: int = 0) -> Robot:
    rng = np.random.default_rng(seed)
    n = ARM.n
    return replace(
        ARM,
        friction=JointFriction(
            terms=friction.names, coefficients=rng.uniform(0.0, 1.0, (n, friction.count)), limit=friction.limit
        ),
        drive=Drive(
            gain=rng.uniform(0.8, 1.2, (n, 2)),
            bias=rng.normal(size=(n, 2)),
            dead_zone=rng.uniform(0.0, 0.3, (n, 2)),
        ),
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_robot_read_back_takes_the_same_torque(seed: int, tmp_path: Path) -> None:
    """Not only the same numbers: the same behaviour, down to terms whose velocities have many digits."""
    rng = np.random.default_rng(seed)
    friction = Friction(stribeck=(float(rng.uniform(0.01, 0.2)),), saturating=(float(rng.uniform(0.1, 1.0)),))
    robot = with_losses(friction, seed)
    other = again(robot, tmp_path)
    command, velocity = rng.normal(0.0, 3.0, (2, 50, ARM.n))
    ours, theirs = (effective_torque(command, velocity, Parameters.of_robot(x, 50)) for x in (robot, other))
    np.testing.assert_array_equal(ours, theirs)


@settings(max_examples=25, deadline=None)
@given(name=st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), min_size=1, max_size=12))
def test_joints_may_be_called_anything_or_are_refused(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    robot = with_losses()
    links = list(robot.links)
    index = next(k for k, link in enumerate(links) if link.joint is not None)
    links[index] = replace(links[index], joint=replace(links[index].joint, name=name))
    robot = robot.with_links(tuple(links))
    try:
        path = robot.save(tmp_path_factory.mktemp("card") / "robot.toml")
    except RetorqueError:
        return
    found = Robot.load(path)
    assert found.joint_names == robot.joint_names
    assert found.friction is not None and robot.friction is not None
    np.testing.assert_array_equal(found.friction.coefficients, robot.friction.coefficients)


def test_a_drive_that_is_told_in_part_is_exact_in_the_rest(tmp_path: Path) -> None:
    text = with_losses().save(tmp_path / "whole.toml").read_text()
    head, _, tail = text.partition("[drive.bias]")
    _, _, rest = tail.partition("[drive.dead_zone]")
    (tmp_path / "part.toml").write_text(head + "[drive.dead_zone]" + rest)
    drive = Robot.load(tmp_path / "part.toml").drive
    assert drive is not None
    np.testing.assert_array_equal(drive.bias, 0.0)
    np.testing.assert_array_equal(drive.gain, with_losses().drive.gain)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"N·m·s/rad"', '"N·m·s/deg"', "convert the numbers"),
        ('family = "terms"', 'family = "glue"', "family of friction"),
        ('terms = ["coulomb"', 'terms = ["coloumb"', "did you mean|units"),
        ("limit = 0.02", "limit = -0.02", "above zero"),
        ("limit = 0.02", "limit = nan", "limit"),
        ("[drive.gain]", "[drive.gains]", "gains"),
    ],
)
def test_what_cannot_be_meant_is_refused(old: str, new: str, what: str, tmp_path: Path) -> None:
    text = with_losses().save(tmp_path / "robot.toml").read_text()
    assert old in text
    (tmp_path / "odd.toml").write_text(text.replace(old, new, 1))
    with pytest.raises(RetorqueError, match=what):
        Robot.load(tmp_path / "odd.toml")


def test_what_a_card_cannot_say_is_refused_before_it_is_written() -> None:
    p = Parameters.sample(ARM, profile_of(ARM), 2, 0)
    with pytest.raises(RetorqueError, match="choose a trial"):
        p.on_card(ARM)
    with pytest.raises(RetorqueError, match="springs"):
        replace(p[0], stiffness=np.ones(ARM.n)).on_card(ARM)
    both = replace(p[0], friction=PRESETS["sign"], friction_coefficients=np.ones((ARM.n, 1)))
    with pytest.raises(RetorqueError, match="one family"):
        both.on_card(ARM)


def test_an_exact_drive_and_no_friction_leave_no_section(tmp_path: Path) -> None:
    plain = Parameters.ideal(ARM).on_card(ARM)
    assert plain.friction is None and plain.drive is None
    assert "[drive" not in plain.save(tmp_path / "plain.toml").read_text()


def test_a_payload_becomes_part_of_its_link() -> None:
    loaded = Parameters.ideal(ARM).with_payload(0.7, np.array([0.01, 0.0, 0.05]))
    heavier = loaded.on_card(ARM)
    assert sum(x.mass for x in heavier.links) == pytest.approx(sum(x.mass for x in ARM.links) + 0.7)
    np.testing.assert_allclose(
        Parameters.of_robot(heavier).total_inertial(heavier), loaded.total_inertial(ARM), atol=1e-12
    )
