"""The paths that models are recorded on: their own derivatives, inside every limit, and split as the paper did."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.identify.hybrid.recordings import (
    FAST_PERIOD,
    LEAD_IN,
    RATE,
    SPEEDS,
    BatchInverseDynamics,
    FourierPath,
    PlayedPaths,
    Split,
    fourier_paths,
    motion_of,
    record,
    together,
)
from retorque.logs.motion import Motion
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")


@pytest.fixture(scope="module")
def paths() -> FourierPath:
    return fourier_paths(ARM, 3, 1000, candidates=2)


def test_a_path_is_its_own_derivative(paths: FourierPath) -> None:
    rate, phase, step = np.full(3, 1.0 / FAST_PERIOD), np.linspace(0.0, 1.0, 20)[:, None] * np.ones(3), 1e-6
    _, qd, qdd = paths.at(phase, rate)
    before, after = paths.at(phase - step, rate), paths.at(phase + step, rate)
    seconds = 2.0 * step * FAST_PERIOD
    np.testing.assert_allclose((after[0] - before[0]) / seconds, qd, atol=1e-6)
    np.testing.assert_allclose((after[1] - before[1]) / seconds, qdd, atol=1e-6)


def test_paths_stay_inside_and_use_their_speed(paths: FourierPath) -> None:
    phase = np.linspace(0.0, 1.0, 400)[:, None] * np.ones(3)
    q, qd, _ = paths.at(phase, np.full(3, 1.0 / FAST_PERIOD))
    assert np.all(q >= ARM.lower - 1e-6) and np.all(q <= ARM.upper + 1e-6)
    used = np.abs(qd).max(axis=0) / (SPEEDS["fast"] * ARM.velocity_limit)
    assert np.all(used < 1.01) and np.all(used.max(axis=1) > 0.9)


def test_a_slow_execution_is_the_same_path(paths: FourierPath) -> None:
    fast, slow = (PlayedPaths(paths, np.full(3, part / FAST_PERIOD)) for part in (1.0, 0.25))
    for tick in (0, 400, 3000):
        one, other = fast.at(LEAD_IN + tick), slow.at(LEAD_IN + 4 * tick)
        np.testing.assert_allclose(one.position, other.position, atol=1e-9)
        assert one.velocity is not None and other.velocity is not None
        np.testing.assert_allclose(one.velocity, 4.0 * other.velocity, atol=1e-9)


def test_a_batch_has_the_cards_inverse_dynamics() -> None:
    q, qd, qdd = np.random.default_rng(0).normal(0.0, 0.8, (3, 4, ARM.n))
    wanted = RigidBody(ARM).inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(BatchInverseDynamics(ARM, 4).torque(q, qd, qdd), wanted, atol=1e-6)


def test_accelerations_are_those_of_the_motion_below_the_cut_off() -> None:
    t = np.arange(4000)[:, None] / RATE
    w = 2.0 * np.pi * np.array([0.3, 1.0])
    motion = motion_of(np.sin(w * t), w * np.cos(w * t), np.zeros((4000, 2)))
    np.testing.assert_allclose(motion.qdd[500:-500], -(w**2) * np.sin(w * t)[500:-500], atol=0.02 * np.max(w**2))


def test_a_split_knows_its_pair_and_range() -> None:
    motions = [Motion.of(*np.full((4, 6, 2), float(k))) for k in range(5)]
    split = Split(train=motions, validation=[], test=[])
    assert [motion.q[0, 0] for motion in split.pair()] == [2.0, 3.0]
    low, high = split.torque_range()
    assert low.tolist() == [0.0, 0.0] and high.tolist() == [4.0, 4.0]
    joined = together(motions, every=2)
    assert len(joined) == 15 and joined.q.dtype == np.float64


@pytest.mark.parametrize("scale", [0.0, 1e-4, 11.0, float("nan")])
def test_a_scale_that_cannot_be_is_refused(scale: float) -> None:
    with pytest.raises(RetorqueError, match="scale must lie between"):
        record(ARM, scale=scale)
