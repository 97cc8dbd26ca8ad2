"""Conversions between the forms of inertial parameters."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.inertia import (
    from_pseudo_inertia,
    from_vector,
    nearest_feasible,
    pseudo_inertia,
    robot_inertia,
    to_vector,
)
from retorque.robots.library import names
from retorque.robots.robot import Robot


@pytest.mark.parametrize("name", names())
def test_round_trips(name: str) -> None:
    vector = robot_inertia(Robot.load(name))
    np.testing.assert_allclose(to_vector(*from_vector(vector)), vector, atol=1e-14)
    np.testing.assert_allclose(from_pseudo_inertia(pseudo_inertia(vector)), vector, atol=1e-14)


@pytest.mark.parametrize("name", names())
def test_every_robot_on_board_is_feasible_and_left_as_it_is(name: str) -> None:
    vector = robot_inertia(Robot.load(name))
    assert np.linalg.eigvalsh(pseudo_inertia(vector))[:, 0].min() > -1e-12
    np.testing.assert_array_equal(nearest_feasible(vector, floor=-1e-12), vector)


def test_a_point_mass_turns_about_the_origin_as_the_parallel_axis_theorem_says() -> None:
    vector = to_vector(np.array(2.0), np.array([0.3, 0.0, 0.0]), np.zeros((3, 3)))
    np.testing.assert_allclose(vector, [2.0, 0.6, 0.0, 0.0, 0.0, 0.0, 0.18, 0.0, 0.0, 0.18])


def test_infeasible_parameters_are_lifted_and_feasible_neighbours_kept() -> None:
    good = robot_inertia(Robot.load("panda"))[3]
    bad = good.copy()
    bad[4:] *= -1.0
    found = nearest_feasible(np.stack([good, bad]), floor=1e-6)
    np.testing.assert_array_equal(found[0], good)
    assert np.linalg.eigvalsh(pseudo_inertia(found[1]))[0] >= 1e-6 - 1e-12
