"""The score: the torque that went missing, and what of it a correction explains."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.loop.score import WINDOW, Score
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

ROBOT = Robot.load("z1")
DT = 1e-3
TICKS = round(WINDOW / DT)


def motion(ticks: int, trials: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ticks, trials, n) positions, velocities and the ideal robot's torques of a smooth motion."""
    rng = np.random.default_rng(seed)
    time = DT * np.arange(ticks)[:, None, None]
    rate, phase = rng.uniform(1.0, 3.0, (trials, 6)), rng.uniform(0.0, 6.0, (trials, 6))
    q = ROBOT.home + 0.3 * np.sin(rate * time + phase)
    qd = 0.3 * rate * np.cos(rate * time + phase)
    qdd = -0.3 * rate**2 * np.sin(rate * time + phase)
    return q, qd, RigidBody(ROBOT).inverse_dynamics(q, qd, qdd)


def scored(lost: np.ndarray, correction: np.ndarray, ticks: int = 400, spoil: int | None = None) -> Score:
    """A score after a motion whose commands lost a constant torque and were corrected by another."""
    q, qd, torque = motion(ticks)
    score = Score(ROBOT, (2, 6), DT)
    for k in range(ticks):
        if k == spoil:
            score.spoil(np.array([True, False]))
        score.tick(np.stack([q[k], qd[k], torque[k] + lost]), np.broadcast_to(correction, (2, 6)))
    return score


def test_what_is_lost_is_measured() -> None:
    lost = np.linspace(0.5, 3.0, 6)
    score = scored(lost, np.zeros(6))
    np.testing.assert_allclose(score.without, np.broadcast_to(lost, (2, 6)), rtol=0.05)
    np.testing.assert_allclose(score.corrected, score.without)


def test_a_correction_of_that_size_explains_it() -> None:
    lost = np.linspace(0.5, 3.0, 6)
    score = scored(lost, lost)
    assert np.all(score.corrected < 0.05 * score.without)
    worse = scored(lost, -lost)
    np.testing.assert_allclose(worse.corrected, 2.0 * worse.without, rtol=0.05)


def test_an_ideal_robot_loses_nothing() -> None:
    assert np.all(scored(np.zeros(6), np.zeros(6)).without < 0.05)


def test_a_spoilt_window_counts_in_the_other_trial_only() -> None:
    clean, spoilt = scored(np.ones(6), np.zeros(6)), scored(np.ones(6), np.zeros(6), spoil=150)
    assert spoilt.samples.tolist() == [clean.samples[0] - 1, clean.samples[1]]
    np.testing.assert_array_equal(spoilt.without[1], clean.without[1])


def test_a_report_that_is_not_finite_costs_one_trial_its_window() -> None:
    q, qd, torque = motion(10 * TICKS)
    score = Score(ROBOT, (2, 6), DT)
    for k in range(10 * TICKS):
        report = np.stack([q[k], qd[k], torque[k] + 1.0])
        if k == 3 * TICKS + 2:
            report[2, 0, 3] = np.nan
        score.tick(report, np.zeros((2, 6)))
    assert score.samples[0] == score.samples[1] - 1
    assert np.all(np.isfinite(score.without)) and np.all(np.isfinite(score.corrected))


def test_clear_forgets_and_nothing_is_no_number() -> None:
    score = scored(np.ones(6), np.zeros(6))
    score.clear()
    assert np.all(score.without == 0.0) and np.all(score.samples == 0)


@pytest.mark.parametrize("shape", ((6,), (3, 6)))
def test_any_leading_axes(shape: tuple[int, ...]) -> None:
    score = Score(ROBOT, shape, DT)
    for _ in range(2 * TICKS + 2):
        score.tick(np.zeros((3, *shape)), np.zeros(shape))
    assert score.without.shape == shape and score.samples.shape == shape[:-1]
