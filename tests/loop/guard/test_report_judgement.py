"""A judge of reports that nothing can upset: garbage of any kind in, finite numbers and a code out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.loop.guard.report_check import ReportCheck
from retorque.loop.guard.supervisor_settings import SupervisorSettings
from retorque.loop.health import Health
from retorque.robots.robot import Robot
from retorque.robots.state import State

ARM = Robot.load("panda")
N = ARM.n
DT = 1e-3


def swing(tick: int) -> np.ndarray:
    """(3, n) a true position, velocity and torque."""
    angle = 4.0 * DT * tick + np.arange(N)
    return np.stack([ARM.home + 0.1 * np.sin(angle), 0.4 * np.cos(angle), np.sin(angle)])


def check(shape: tuple[int, ...] = (N,)) -> ReportCheck:
    return ReportCheck(ARM, shape, DT, SupervisorSettings())


def feed(made: ReportCheck, tick: int, report: np.ndarray) -> State:
    out = made.take(State(tick * DT, *report), 1)
    made.sent(np.broadcast_to(swing(tick)[2], report[2].shape))
    return out


def test_clean_reports_come_through_as_they_are() -> None:
    made = check()
    for tick in range(300):
        seen = feed(made, tick, swing(tick))
        np.testing.assert_allclose(seen.position, swing(tick)[0], atol=1e-12)
        np.testing.assert_allclose(seen.velocity, swing(tick)[1], atol=1e-12)
        assert not made.fault.any() and made.codes == Health.OK
    assert made.calm


NUMBERS = st.one_of(st.floats(-4.0, 4.0), st.floats(allow_nan=True, allow_infinity=True), st.just(0.0))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=5, max_size=40), st.integers(0, N - 1))
def test_no_garbage_leaves_a_number_that_is_not_finite(garbage: list[list[float]], joint: int) -> None:
    """What the correction is computed at stays finite, and other joints stay believed."""
    made = check()
    for tick in range(40):
        feed(made, tick, swing(tick))
    for tick, numbers in enumerate(garbage, start=40):
        report = swing(tick)
        report[:, joint] = numbers
        with np.errstate(all="ignore"):
            feed(made, tick, report)
        assert np.all(np.isfinite(made.now))
        others = np.arange(N) != joint
        np.testing.assert_allclose(made.now[:2, others], swing(tick)[:2, others], atol=1e-9)
        assert not made.fault[others].any()


@pytest.mark.parametrize("shape", [(N - 1,), (N + 1,), (2, N), ()])
def test_a_report_of_another_shape_is_no_report(shape: tuple[int, ...]) -> None:
    made = check()
    for tick in range(40):
        feed(made, tick, swing(tick))
    odd = np.zeros(shape) if shape else np.array(["no", "numbers"])
    seen = made.take(State(0.04, odd, odd, odd), 1)
    assert np.all(np.isnan(seen.position)) and made.codes & Health.BAD_STATE
    assert np.all(np.isfinite(made.now))
    for tick in range(41, 120):
        feed(made, tick, swing(tick))
    assert made.codes == Health.OK and not made.fault.any()


def test_one_robot_of_a_batch_is_judged_alone() -> None:
    batch, alone = check((2, N)), check()
    rng = np.random.default_rng(0)
    for tick in range(300):
        report = np.stack([swing(tick)] * 2, axis=1)
        report[0, 1] += 0.3 * (tick > 100)  # one robot's encoders slip
        report[1, 1] += rng.normal(0.0, 0.5, N) * (tick > 200)
        feed(batch, tick, report)
        feed(alone, tick, swing(tick))
        assert batch.codes[0] == Health.OK and not batch.fault[0].any()
        np.testing.assert_allclose(batch.now[:, 0], alone.now, atol=1e-9)
    assert batch.codes[1] & Health.SLIPPED and batch.fault[1].all()


def test_reset_is_a_new_one() -> None:
    used, fresh = check(), check()
    for tick in range(200):
        feed(used, tick, swing(tick) * (3.0 if tick > 100 else 1.0))
    used.reset()
    for tick in range(100):
        a, b = feed(used, tick, swing(tick)), feed(fresh, tick, swing(tick))
        np.testing.assert_array_equal(a.position, b.position)
        np.testing.assert_array_equal(used.now, fresh.now)
        assert used.codes == fresh.codes


@pytest.mark.parametrize("beyond", [0.35, 0.59, 0.7])
def test_far_beyond_its_range_a_joint_is_left_alone_little_by_little(beyond: float) -> None:
    """Positions move there slowly: this is no slip, but a card that does not fit the robot."""
    made = check()
    gains = []
    room = float(ARM.upper[0] - ARM.home[0])
    for tick in range(3000):
        report = swing(tick)
        stopping = float(np.clip(tick - 2400, 0, 200))  # no joint stops within a tick
        share = (min(tick, 2400) + stopping - stopping**2 / 400.0) / 2500.0
        report[0, 0] = ARM.home[0] + (room + beyond) * share
        report[1, 0] = (room + beyond) / 2.5 * (1.0 - stopping / 200.0)
        feed(made, tick, report)
        gains.append(float(made.range_gain[0]))
    assert np.max(np.abs(np.diff(gains))) < 0.02
    assert gains[-1] == pytest.approx(max(0.0, 1.0 - (beyond - 0.3) / 0.3), abs=0.01)


@pytest.mark.parametrize("quantum", [0.0, 5e-5, 1e-3])
def test_an_encoder_dies_at_rest_where_its_noise_never_rested(quantum: float) -> None:
    """At rest, noise shows in every number; a coarse encoder's rests as the joint does, and flickers now and then."""
    made, rng = check(), np.random.default_rng(3)
    joint, rest = 3, swing(0) * np.array([[1.0], [0.0], [1.0]])

    def report(tick: int) -> np.ndarray:
        seen = rest.copy()
        if quantum:
            seen[0] = np.round((seen[0] + 0.2 * quantum * rng.standard_normal(N)) / quantum) * quantum
        else:
            seen[:2] += rng.standard_normal((2, N)) * np.array([[1e-4], [1e-3]])
        return seen

    def tell(tick: int, seen: np.ndarray) -> None:
        made.take(State(tick * DT, *seen), 1)
        made.sent(rest[2])

    for tick in range(1000):
        tell(tick, report(tick))
        assert not made.fault.any() and not made.blind.any() and not made.codes & Health.FROZEN
    last = report(1000)
    for tick in range(1000, 1060):
        now = report(tick)
        now[:2, joint] = last[0, joint], 0.0
        tell(tick, now)
    assert made.dead[joint] == (quantum == 0.0) and not np.delete(made.dead, joint).any()
    assert bool(made.codes & Health.FROZEN) == (quantum == 0.0)
