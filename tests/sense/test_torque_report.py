"""What an arm's reported torques say of a push: at rest both estimates, in motion only the one that knows inertia."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.torque_report import TorqueReport

PANDA = Robot.load("panda")
BODY = RigidBody(PANDA)
DT = 1e-3
FORCE = np.array([4.0, -3.0, 8.0])
"""[N] at the hand, in world axes."""


def pushed(q: np.ndarray) -> np.ndarray:
    """The push's torques (n,) [N·m]."""
    return BODY.jacobian(PANDA.end_effector, q)[:3].T @ FORCE


def felt(momentum: bool, speed: float, bandwidth: float = 40.0) -> tuple[np.ndarray, np.ndarray]:
    """Estimate and truth (n,) after half a second of a smooth motion of that many times a slow one's speed."""
    made = TorqueReport(BODY, 1, DT, momentum, bandwidth)
    rate = speed * np.array([1.0, 1.3, 0.7, 1.1, 1.7, 0.9, 1.2])
    for tick in range(500):
        t = tick * DT
        q = PANDA.home + 0.2 * np.sin(rate * t)
        qd, qdd = 0.2 * rate * np.cos(rate * t), -0.2 * rate**2 * np.sin(rate * t)
        torque = BODY.inverse_dynamics(q, qd, qdd) - pushed(q)
        estimate = made.update(State(t, q, qd, torque))
    return estimate[0], pushed(q)


@pytest.mark.parametrize("momentum", [False, True])
def test_a_push_at_rest_is_felt(momentum: bool) -> None:
    estimate, truth = felt(momentum, speed=0.0)
    np.testing.assert_allclose(estimate, truth, atol=1e-6)


def test_only_momentum_feels_it_in_motion() -> None:
    lag, truth = felt(True, speed=6.0)
    blind, _ = felt(False, speed=6.0)
    assert np.abs(lag - truth).max() < 0.5
    assert np.abs(blind - truth).max() > 5.0 * np.abs(lag - truth).max()


def test_a_slow_observer_lags() -> None:
    slow, truth = felt(True, speed=0.0, bandwidth=2.0)
    share = slow / truth
    np.testing.assert_allclose(share, 1.0 - np.exp(-2.0 * 0.499), rtol=1e-6)  # the first report only starts it


def test_trials_are_apart() -> None:
    made = TorqueReport(BODY, 3, DT)
    q = PANDA.home + np.zeros((3, PANDA.n))
    torque = BODY.gravity(q)
    torque[1] -= pushed(PANDA.home)
    for tick in range(400):
        estimate = made.update(State(tick * DT, q, np.zeros_like(q), torque))
    np.testing.assert_allclose(estimate[[0, 2]], 0.0, atol=1e-9)
    np.testing.assert_allclose(estimate[1], pushed(PANDA.home), rtol=1e-5)
