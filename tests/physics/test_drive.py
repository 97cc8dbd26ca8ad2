"""The drive alone: from a command to a torque and back, and what a stranger would assume of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.actuator import (
    PreparedDrive,
    PreparedLosses,
    command_for,
    drive,
    effective_torque,
    inverse_drive,
    losses,
)
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot

ARM = Robot.load("piper")
DRAWN = Parameters.sample(ARM, profile_of(ARM), 30, 1000)


def test_more_command_is_more_torque() -> None:
    """Also through the dead zone, or the command for a torque would not be one."""
    command = np.linspace(-8.0, 8.0, 4001)[:, None, None]
    assert np.all(np.diff(drive(np.broadcast_to(command, (4001, 30, ARM.n)), DRAWN), axis=0) > 0.0)


def test_the_drive_has_no_steps() -> None:
    width = DRAWN.dead_zone / DRAWN.torque_scale
    for side, sign in ((0, 1.0), (1, -1.0)):
        edge = sign * width[..., side]
        below, above = drive(edge * (1.0 - 1e-9), DRAWN), drive(edge * (1.0 + 1e-9), DRAWN)
        np.testing.assert_allclose(below, above, atol=1e-7)
    np.testing.assert_array_equal(drive(np.zeros((30, ARM.n)), DRAWN), 0.0)


@settings(max_examples=60, deadline=None)
@given(
    torque=st.lists(st.floats(-200.0, 200.0), min_size=ARM.n, max_size=ARM.n).map(np.array), trial=st.integers(0, 29)
)
def test_the_inverse_is_one_from_both_sides(torque: np.ndarray, trial: int) -> None:
    p = DRAWN[trial]
    np.testing.assert_allclose(drive(inverse_drive(torque, p), p), torque, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(inverse_drive(drive(torque, p), p), torque, rtol=1e-9, atol=1e-9)


def test_a_robot_with_its_directions_exchanged_is_the_mirror_image() -> None:
    swapped = {
        name: getattr(DRAWN, name)[..., ::-1]
        for name in ("torque_scale", "dead_zone", "viscous", "friction_amplitude", "friction_slope")
    }
    mirrored = replace(
        DRAWN, **swapped, friction_shift=-DRAWN.friction_shift[..., ::-1], torque_bias=-DRAWN.torque_bias[..., ::-1]
    )
    rng = np.random.default_rng(2)
    command, velocity = rng.normal(0.0, 5.0, (2, 30, ARM.n))
    there, back = effective_torque(command, velocity, DRAWN), effective_torque(-command, -velocity, mirrored)
    np.testing.assert_allclose(back, -there, atol=1e-12)


def test_a_batch_is_each_of_its_robots() -> None:
    rng = np.random.default_rng(3)
    torque, velocity, position = rng.normal(0.0, 2.0, (3, 30, ARM.n))
    stiff = replace(DRAWN, stiffness=np.full((30, ARM.n), 2.0))
    whole = command_for(torque, velocity, stiff, position)
    prepared, slopes = PreparedLosses(stiff)(velocity, position)
    for k in range(30):
        np.testing.assert_array_equal(command_for(torque[k], velocity[k], stiff[k], position[k]), whole[k])
        one, slope = PreparedLosses(stiff[k])(velocity[k], position[k])
        np.testing.assert_array_equal(one, prepared[k])
        np.testing.assert_array_equal(slope, slopes[k])


def test_a_spring_without_a_position_is_slack_and_at_rest_pulls_nothing() -> None:
    p = replace(Parameters.ideal(ARM), stiffness=np.full(ARM.n, 3.0), rest_position=np.linspace(-1.0, 1.0, ARM.n))
    still = np.zeros(ARM.n)
    np.testing.assert_array_equal(losses(still, p), 0.0)
    np.testing.assert_array_equal(losses(still, p, p.rest_position), 0.0)
    np.testing.assert_allclose(losses(still, p, p.rest_position + 0.1), 0.3)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_torque_that_is_not_finite_has_no_finite_command(bad: float) -> None:
    torque = np.zeros(ARM.n)
    torque[1] = bad
    command = command_for(torque, np.zeros(ARM.n), DRAWN[0])
    np.testing.assert_array_equal(np.isfinite(command), np.arange(ARM.n) != 1)


def test_what_is_prepared_is_not_changed_by_its_use() -> None:
    prepared = PreparedLosses(DRAWN)
    velocity = np.random.default_rng(4).normal(size=(30, ARM.n))
    before = prepared(velocity, velocity)[0].copy()
    prepared(-3.0 * velocity, velocity)[0][...] = 0.0
    np.testing.assert_array_equal(prepared(velocity, velocity)[0], before)


@pytest.mark.parametrize("part", ["all", "no dead zone", "no scale", "ideal"])
def test_a_prepared_drive_is_the_drive_to_the_bit(part: str) -> None:
    ideal = Parameters.ideal(ARM, 30)
    kept = {"all": (), "no dead zone": ("dead_zone",), "no scale": ("torque_scale",)}.get(
        part, ("dead_zone", "torque_scale")
    )
    p = replace(DRAWN, **{name: getattr(ideal, name) for name in kept})
    command = np.random.default_rng(5).normal(0.0, 2.0, (30, ARM.n))
    command[0, :5] = [0.0, -0.0, np.nan, np.inf, -np.inf]
    np.testing.assert_array_equal(PreparedDrive(p)(command), drive(command, p))
    np.testing.assert_array_equal(PreparedDrive(p[3])(command[3]), drive(command[3], p[3]))


def test_an_ideal_robot_loses_nothing() -> None:
    p = Parameters.ideal(ARM, 4)
    velocity, position = np.random.default_rng(6).normal(size=(2, 4, ARM.n))
    lost, slope = PreparedLosses(p)(velocity, position)
    np.testing.assert_array_equal(lost, losses(velocity, p, position))
    assert not slope.any() and lost.shape == slope.shape == velocity.shape
