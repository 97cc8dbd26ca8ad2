"""Friction that depends on position: what it takes, and the slope that the integrator is told."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.simulate.position_friction import WAVES, PositionFriction

HEIGHT = np.array([2.0, 0.5])


def lost(position: float, velocity: float, torque: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    full = [np.full((1, 2), value) for value in (position, velocity, torque)]
    left, slope = PositionFriction(HEIGHT).torque(*full, np.zeros((1, 2)), 1e-3)
    return left[0], slope[0]


def test_it_is_tight_here_and_loose_there() -> None:
    tight, loose = 0.5 * np.pi / WAVES, -0.5 * np.pi / WAVES
    np.testing.assert_allclose(lost(tight, 5.0)[0], -HEIGHT)
    np.testing.assert_allclose(lost(tight, -5.0)[0], HEIGHT)
    np.testing.assert_allclose(lost(loose, 5.0)[0], 0.0, atol=1e-12)


def test_it_only_takes_energy_and_adds_to_what_there_is() -> None:
    rng = np.random.default_rng(3)
    for position, velocity in rng.normal(size=(50, 2)):
        assert np.all(lost(position, velocity)[0] * velocity <= 0.0)
    np.testing.assert_allclose(lost(0.3, 0.2, 7.0)[0] - lost(0.3, 0.2)[0], 7.0)


@pytest.mark.parametrize("velocity", [-0.05, -0.01, 0.0, 0.004, 0.03])
def test_the_slope_is_the_derivative(velocity: float) -> None:
    step = 1e-6
    difference = (lost(0.4, velocity + step)[0] - lost(0.4, velocity - step)[0]) / (2.0 * step)
    np.testing.assert_allclose(lost(0.4, velocity)[1], -difference, rtol=1e-5)
