"""Fourier motions: at rest where they begin, inside every limit, and their own derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.identify.excite.fourier import Fourier, at_rest, within
from retorque.work.errors import RetorqueError

N, HARMONICS, PERIOD = 4, 5, 8.0
LOWER, UPPER = np.array([-1.0, 0.0, -3.0, 2.0]), np.array([1.0, 0.5, 3.0, 2.2])
SPEED, ACCELERATION = np.array([0.5, 2.0, 1.0, 1.0]), np.array([1.0, 4.0, 0.2, 9.0])


def shape(seed: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = np.random.default_rng(seed).normal(0.0, 1.0, (2, N, HARMONICS))
    return a, b


def made(seed: int, **changes: float) -> Fourier:
    place = np.random.default_rng(seed + 99).uniform(0.0, 1.0, N)
    return within(*shape(seed), place, PERIOD, LOWER, UPPER, SPEED, ACCELERATION, **changes)


@pytest.mark.parametrize("seed", range(8))
def test_limits_hold_all_along_and_the_start_is_at_rest(seed: int) -> None:
    q, qd, qdd = made(seed).at(np.linspace(0.0, PERIOD, 5000))
    assert np.all(q >= LOWER - 1e-9) and np.all(q <= UPPER + 1e-9)
    assert np.all(np.abs(qd).max(axis=0) <= SPEED) and np.all(np.abs(qdd).max(axis=0) <= ACCELERATION)
    for end in (0, -1):
        np.testing.assert_allclose(qd[end], 0.0, atol=1e-9)
        np.testing.assert_allclose(qdd[end], 0.0, atol=1e-9)
    used = [np.ptp(q, axis=0) / (UPPER - LOWER), np.abs(qd).max(axis=0) / SPEED, np.abs(qdd).max(axis=0) / ACCELERATION]
    assert np.all(np.max(used, axis=0) > 0.95)  # one limit is nearly used up


def test_velocities_and_accelerations_are_derivatives() -> None:
    fourier, time, step = made(3), np.linspace(0.0, PERIOD, 40), 1e-5
    q, qd, qdd = fourier.at(time)
    before, after = fourier.at(time - step), fourier.at(time + step)
    np.testing.assert_allclose((after[0] - before[0]) / (2.0 * step), qd, atol=1e-7)
    np.testing.assert_allclose((after[1] - before[1]) / (2.0 * step), qdd, atol=1e-7)
    np.testing.assert_allclose(fourier.at(time + PERIOD)[0], q, atol=1e-9)


def test_the_nearest_rest_is_a_projection() -> None:
    a, b = shape(5)
    once = at_rest(a, b)
    for first, second in zip(once, at_rest(*once), strict=True):
        np.testing.assert_allclose(first, second, atol=1e-12)
    order = np.arange(1, HARMONICS + 1)
    np.testing.assert_allclose(once[0].sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(once[1] @ order, 0.0, atol=1e-12)


def test_a_smaller_motion_lies_on_the_way_to_a_pose() -> None:
    fourier, time = made(6), np.linspace(0.0, PERIOD, 50)
    pose = 0.5 * (LOWER + UPPER)
    small = fourier.towards(pose, 0.3)
    np.testing.assert_allclose(small.at(time)[0], pose + 0.3 * (fourier.at(time)[0] - pose), atol=1e-12)
    np.testing.assert_allclose(small.at(time)[1], 0.3 * fourier.at(time)[1], atol=1e-12)
    half = made(6, part=0.5)
    np.testing.assert_allclose(half.at(time)[1], 0.5 * fourier.at(time)[1], atol=1e-12)


def test_shapes_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(RetorqueError, match="joints, harmonics"):
        Fourier(a=np.zeros((3, 2)), b=np.zeros((3, 3)), centre=np.zeros(3), period=1.0)
    with pytest.raises(RetorqueError, match="joints, harmonics"):
        Fourier(a=np.zeros((3, 2)), b=np.zeros((3, 2)), centre=np.zeros(2), period=1.0)
