"""Joints that ring are told from noisy ones, and are fed back less."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.adapt.default.velocity_feedback import STIFF, VelocityFeedback
from retorque.adapt.default.vibration import LONGEST, Vibration
from retorque.adapt.tam.context import torque_unit
from retorque.robots.robot import Robot

FLOOR = np.full(3, 0.01)
DT = 1e-3
NOISE = 0.01
"""Of a velocity [rad/s]."""


def quiet(hertz: float, size: float, seconds: float = 2.0, *, use: bool = True) -> np.ndarray:
    """How little three joints ring of which the first swings, the second is noisy and the third noisier."""
    vibration, rng = Vibration((1, 3), DT, FLOOR), np.random.default_rng(4)
    for tick in range(round(seconds / DT)):
        swing = np.array([size * np.sin(2.0 * np.pi * hertz * tick * DT), 0.0, 0.0])
        velocity = swing + np.array([1.0, 1.0, 5.0]) * NOISE * rng.standard_normal(3)
        found = vibration.take(velocity[None], np.full((1, 3), use))
    return found[0]


@pytest.mark.parametrize("hertz", [15.0, 30.0, 60.0])
def test_a_joint_that_swings_quickly_rings_and_one_with_noise_does_not(hertz: float) -> None:
    found = quiet(hertz, 0.06)
    assert found[0] == 0.0 and (found[1:] > 0.6).all()


def test_what_is_lacking_along_a_motion_is_no_vibration() -> None:
    assert (quiet(1.0, 0.05) > 0.6).all()


def test_nothing_is_seen_where_nothing_is_counted() -> None:
    np.testing.assert_array_equal(quiet(30.0, 0.06, use=False), 0.0)  # as at the start: it may ring


@pytest.mark.parametrize(("timestep", "more"), [(DT, STIFF - 1.0), (LONGEST, STIFF - 1.0), (5e-3, 0.0)])
def test_where_vibration_cannot_be_seen_the_gain_stays_low(timestep: float, more: float) -> None:
    robot = Robot.load("z1")
    assert VelocityFeedback(robot, 1, timestep, torque_unit(robot)).more == more
