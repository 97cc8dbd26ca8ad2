"""Inertias in every form: vectors, bodies, pseudo-inertias and charts, against points and finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from retorque.physics.inertia import (
    from_pseudo_inertia,
    from_vector,
    moved,
    nearest_feasible,
    parallel_axis,
    pseudo_inertia,
    robot_inertia,
    to_vector,
    with_inertias,
)
from retorque.physics.log_cholesky import from_log_cholesky, log_cholesky, log_cholesky_jacobian
from retorque.robots import names
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


def cloud(seed: int = 0, points: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Masses (points,) and places (points, 3) of a body made of points."""
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 1.0, points), rng.standard_normal((points, 3)) * 0.2 + [0.1, -0.3, 0.2]


def vector_of(mass: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The ten numbers by their definition, as sums over points."""
    second = np.einsum("p,pi,pj->ij", mass, place, place)
    inertia = np.trace(second) * np.eye(3) - second
    i = inertia
    six = (i[0, 0], i[0, 1], i[1, 1], i[0, 2], i[1, 2], i[2, 2])
    return np.concatenate([[mass.sum()], mass @ place, six])


def test_ten_numbers_are_sums_over_points() -> None:
    mass, place = cloud()
    vector = vector_of(mass, place)
    total, centre, inertia = from_vector(vector)
    np.testing.assert_allclose(total, mass.sum())
    np.testing.assert_allclose(centre, mass @ place / mass.sum())
    relative = place - centre
    np.testing.assert_allclose(
        inertia, sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(mass, relative, strict=True)), atol=1e-12
    )
    np.testing.assert_allclose(to_vector(total, centre, inertia), vector, atol=1e-12)


def test_they_are_pinocchios() -> None:
    mass, centre, inertia = from_vector(vector_of(*cloud(3)))
    theirs = pin.Inertia(float(mass), centre, inertia).toDynamicParameters()
    np.testing.assert_allclose(to_vector(mass, centre, inertia), theirs, atol=1e-12)


def test_the_pseudo_inertia_is_the_second_moment() -> None:
    mass, place = cloud(1)
    homogeneous = np.column_stack([place, np.ones(len(mass))])
    matrix = np.einsum("p,pi,pj->ij", mass, homogeneous, homogeneous)
    np.testing.assert_allclose(pseudo_inertia(vector_of(mass, place)), matrix, atol=1e-12)
    np.testing.assert_allclose(from_pseudo_inertia(matrix), vector_of(mass, place), atol=1e-12)


def test_another_frame_sees_the_same_points_elsewhere() -> None:
    mass, place = cloud(2)
    rotation = pin.exp3(np.array([0.3, -1.0, 0.5]))
    origin = np.array([0.4, 0.1, -0.6])
    found = moved(vector_of(mass, place), rotation, origin)
    np.testing.assert_allclose(found, vector_of(mass, place @ rotation.T + origin), atol=1e-12)


def test_the_parallel_axis_theorem() -> None:
    centre = np.array([0.1, 0.2, -0.4])
    expected = 2.0 * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    np.testing.assert_allclose(parallel_axis(np.array(2.0), centre), expected)
    assert parallel_axis(np.ones(5), np.ones((5, 3))).shape == (5, 3, 3)


def test_feasible_bodies_are_left_alone_and_others_lifted() -> None:
    good = vector_of(*cloud(4))
    assert nearest_feasible(good) is good
    bad = good.copy()
    bad[4] = -0.5
    both = nearest_feasible(np.stack([good, bad]))
    np.testing.assert_array_equal(both[0], good)
    assert np.linalg.eigvalsh(pseudo_inertia(both[1]))[0] >= 1e-6 - 1e-12
    assert np.linalg.eigvalsh(pseudo_inertia(bad))[0] < 0.0


@pytest.mark.parametrize("name", names())
def test_a_robot_comes_back_from_its_numbers(name: str) -> None:
    robot = Robot.load(name)
    numbers = robot_inertia(robot)
    again = with_inertias(robot, numbers, robot.armature)
    np.testing.assert_allclose(robot_inertia(again), numbers, atol=1e-12)
    np.testing.assert_array_equal(again.armature, robot.armature)
    assert again.joint_names == robot.joint_names


@pytest.mark.parametrize("seed", range(4))
def test_the_chart_goes_there_and_back(seed: int) -> None:
    vector = vector_of(*cloud(seed))
    np.testing.assert_allclose(from_log_cholesky(log_cholesky(vector)), vector, rtol=1e-10, atol=1e-12)
    chart = np.random.default_rng(seed).standard_normal((5, 10))
    back = from_log_cholesky(chart)
    assert np.all(np.linalg.eigvalsh(pseudo_inertia(back)) > 0.0)  # any ten numbers are a body that can exist
    np.testing.assert_allclose(log_cholesky(back), chart, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_the_charts_jacobian_is_the_derivative(seed: int) -> None:
    chart, step = 0.5 * np.random.default_rng(seed).standard_normal(10), 1e-6
    numeric = np.stack(
        [(from_log_cholesky(chart + e) - from_log_cholesky(chart - e)) / (2.0 * step) for e in step * np.eye(10)],
        axis=1,
    )
    np.testing.assert_allclose(log_cholesky_jacobian(chart), numeric, rtol=1e-6, atol=1e-8)


def test_bodies_without_thickness_have_no_chart() -> None:
    rod = to_vector(np.array(1.0), np.zeros(3), np.diag([0.1, 0.1, 0.0]))
    with pytest.raises(RetorqueError, match="thickness"):
        log_cholesky(rod)
    with pytest.raises(RetorqueError, match="mass"):
        log_cholesky(np.zeros(10))
