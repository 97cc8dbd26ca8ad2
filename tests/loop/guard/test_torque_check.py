"""Whether a robot reports the torques that it was sent: every delay passes, every lie is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.loop.guard.torque_check import TorqueCheck

LIMIT = np.array([80.0, 40.0, 10.0])
DT, DELAY = 1e-3, 0.008


def path(ticks: int, seed: int = 0) -> np.ndarray:
    """(ticks, 3) torques as a controller sends them, quick changes included [N·m]."""
    rng = np.random.default_rng(seed)
    time = DT * np.arange(ticks)[:, None]
    return LIMIT * (0.5 + 0.3 * np.sin(rng.uniform(10.0, 200.0, 3) * time) + 0.1 * rng.uniform(-1.0, 1.0, (ticks, 3)))


def after(torques: np.ndarray) -> TorqueCheck:
    made = TorqueCheck(LIMIT, torques.shape[1:], DT, DELAY)
    for torque in torques:
        made.sent(torque)
    return made


@settings(max_examples=40, deadline=None)
@given(delay=st.integers(0, 8), seed=st.integers(0, 1000))
def test_an_honest_report_is_right_however_late(delay: int, seed: int) -> None:
    torques = path(60, seed)
    noise = 0.01 * LIMIT * np.random.default_rng(seed).uniform(-1.0, 1.0, 3)
    assert not after(torques).wrong(torques[-1 - delay] + noise).any()


@pytest.mark.parametrize(
    "lie",
    [lambda t: 0.0 * t, lambda t: -t, lambda t: 3.0 * t, lambda t: 0.5 * t, lambda t: t * np.nan, lambda t: t + np.inf],
    ids=["zero", "turned round", "tripled", "halved", "nan", "inf"],
)
def test_a_lie_of_one_joint_is_found_in_that_joint(lie) -> None:
    torques = path(60)
    report = torques[-1].copy()
    report[1] = lie(torques[-1])[1]
    np.testing.assert_array_equal(after(torques).wrong(report), [False, True, False])


def test_nothing_is_judged_before_enough_was_sent() -> None:
    made = TorqueCheck(LIMIT, (3,), DT, DELAY)
    for torque in path(made.ticks - 1):
        made.sent(torque)
        assert not made.ready and not made.wrong(1e6 * LIMIT).any()
    made.sent(LIMIT)
    assert made.ready and made.wrong(1e6 * LIMIT).all()


def test_a_slow_robot_has_five_ticks_all_the_same() -> None:
    """A delay in seconds is less than a tick at 50 Hz."""
    torques = path(30)
    made = TorqueCheck(LIMIT, (3,), 0.02, DELAY)
    for torque in torques:
        made.sent(torque)
    for late in range(5):
        assert not made.wrong(torques[-1 - late]).any()


def test_what_was_sent_is_kept_not_referred_to() -> None:
    made = TorqueCheck(LIMIT, (3,), DT, DELAY)
    torque = LIMIT.copy()
    made.sent(torque)
    torque[:] = np.nan
    np.testing.assert_array_equal(made.newest, LIMIT)


def test_reset_is_a_new_one_and_a_batch_is_each_of_its_robots() -> None:
    rng = np.random.default_rng(1)
    torques = LIMIT * rng.uniform(-1.0, 1.0, (60, 2, 3))
    reports = torques + 0.2 * LIMIT * rng.standard_normal((60, 2, 3))
    used = after(path(60))
    used.reset()
    together, alone = TorqueCheck(LIMIT, (2, 3), DT, DELAY), TorqueCheck(LIMIT, (3,), DT, DELAY)
    for torque, report in zip(torques, reports, strict=True):
        near = together.sent(torque)
        for made in (alone, used):
            np.testing.assert_array_equal(made.sent(torque[0]), near[0])
            np.testing.assert_array_equal(made.wrong(report[0]), together.wrong(report)[0])
