"""What a verdict rests on, one by one: scales, offsets, delays, other orders of joints, and logs damaged on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.identify.excite.fourier import Fourier, at_rest, within
from retorque.identify.payload_gains import SavedGains, Scaled, rough_gains
from retorque.identify.verdict.damage import RawLog, damages
from retorque.identify.verdict.doubts import scales, shifts
from retorque.identify.verdict.payload_verdict import capacity
from retorque.identify.verdict.reading import Reading, mirrored, permuted, turned
from retorque.identify.verdict.sample import shifted, thinned
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]
FRICTION = preset("coulomb-viscous")


@pytest.fixture(scope="module")
def motion(simulate: Simulate) -> Motion:
    """A log of a hidden Z1, thinned, with a little noise."""
    truth = simulate("z1", FRICTION, seconds=8.0, rate=100.0)
    noise = 0.02 * np.std(truth.motion.torque, axis=0) * np.random.default_rng(0).standard_normal(truth.motion.q.shape)
    return replace(truth.motion, torque=truth.motion.torque + noise)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return Robot.load("z1")


def reading(robot: Robot, motion: Motion) -> Reading:
    return Reading(robot, FRICTION, motion[thinned(motion, 200)])


def test_a_reading_that_is_wrong_explains_less(robot: Robot, motion: Motion) -> None:
    """Every wrong way to read the log scores worse than the right one; smaller is better [nat]."""
    right = reading(robot, motion).fit()
    assert np.all(right.share < 0.2) and right.bend >= 0.0 and np.all(right.backwards < 0.1)
    order = np.array([0, 2, 1, 3, 4, 5])
    wrong = {
        "torques exchanged": permuted(motion, order, "torque"),
        "positions exchanged": permuted(motion, order, "position"),
        "joints exchanged": permuted(motion, order, "all"),
        "turned": turned(motion, 1, np.pi / 2.0),
        "mirrored": mirrored(motion, 1),
        "sign": replace(motion, torque=motion.torque * np.array([1.0, -1.0, 1.0, 1.0, 1.0, 1.0])),
    }
    scores = {name: reading(robot, other).fit().score for name, other in wrong.items()}
    assert not [name for name, score in scores.items() if score < right.score + 25.0], (right.score, scores)


def test_other_torques_on_the_same_motion_are_the_same_fit(robot: Robot, motion: Motion) -> None:
    own = reading(robot, motion)
    direct, given_torque = own.fit(), own.fit(own.motion.torque)
    np.testing.assert_allclose(given_torque.share, direct.share, rtol=1e-9)
    double = own.fit(2.0 * own.motion.torque)
    assert double.bend > direct.bend  # the card must be bent further for twice its torque
    held = own.held_back()
    assert np.all(held >= 0.8 * direct.share) and np.all(held < 0.5)


def test_joints_turned_and_exchanged_twice_are_as_before(motion: Motion) -> None:
    order = np.array([1, 0, 2, 3, 5, 4])
    for there in (
        lambda m: permuted(m, order, "all"),
        lambda m: permuted(m, order, "torque"),
        lambda m: mirrored(m, 2),
    ):
        back = there(there(motion))
        assert all(np.array_equal(getattr(back, n), getattr(motion, n)) for n in ("q", "qd", "qdd", "torque"))
    np.testing.assert_allclose(turned(turned(motion, 0, 0.3), 0, -0.3).q, motion.q, atol=1e-12)


@pytest.mark.parametrize("factor", (0.1, 1.0, 3.0))
def test_a_common_scale_is_read_off_the_arms_own_weight(robot: Robot, motion: Motion, factor: float) -> None:
    plain = scales(reading(robot, motion)).common
    found = scales(reading(robot, replace(motion, torque=factor * motion.torque)))
    assert found.common == pytest.approx(factor * plain, rel=1e-6) and 0.6 < plain < 1.6
    one = np.ones(6)
    one[1] = 5.0
    single = scales(reading(robot, replace(motion, torque=motion.torque * one))).joint
    assert single[1] / scales(reading(robot, motion)).joint[1] == pytest.approx(5.0, rel=1e-6)


@pytest.mark.parametrize("offset", (-0.1, 0.1))
def test_a_joint_that_is_off_is_found_with_its_sign(robot: Robot, motion: Motion, offset: float) -> None:
    plain = reading(robot, motion)
    before = shifts(plain, plain.fit())
    moved = reading(robot, turned(motion, 1, -offset))
    after = shifts(moved, moved.fit())
    assert (after.offset - before.offset)[1] == pytest.approx(offset, abs=0.06)
    assert np.all(after.offset_std > 0.0) and np.all(after.offset_std <= 1.0)


@pytest.mark.parametrize("delay", (-0.03, 0.03))
def test_torques_of_another_moment_are_found_with_their_sign(robot: Robot, motion: Motion, delay: float) -> None:
    at = thinned(motion, 200)
    torque, there = shifted(motion, at, -delay)
    late = replace(motion[at[there]], torque=torque[there])
    plain = Reading(robot, FRICTION, motion[at[there]])
    moved = Reading(robot, FRICTION, late)
    found = shifts(moved, moved.fit()).delay - shifts(plain, plain.fit()).delay
    assert 0.1 < found / delay < 1.5  # one step towards it: friction takes some of it for its own


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(-40, 40), count=st.integers(5, 60))
def test_whole_rows_are_shifted_exactly(motion: Motion, rows: int, count: int) -> None:
    at = thinned(motion, count)
    assert len(at) <= count and np.all(np.diff(at) >= 0) and at.max() < len(motion)
    torque, there = shifted(motion, at, rows * 0.01)
    inside = (at + rows >= 0) & (at + rows < len(motion) - 1)
    kept = at[there & inside]
    np.testing.assert_allclose(torque[there & inside], motion.torque[kept + rows], atol=1e-6)
    assert np.mean(there[inside]) > 0.95 or not inside.any()


def raw(motion: Motion) -> RawLog:
    return RawLog(time=motion.time, position=motion.q, velocity=motion.qd, torque=motion.torque)


def test_every_damage_changes_a_copy_and_keeps_its_rows_together(motion: Motion) -> None:
    log = raw(motion)
    kept = [array.copy() for array in (log.time, log.position, log.torque)]
    names = [damage.name for damage in damages(6, ("ur10e",))]
    assert len(set(names)) == len(names)
    for damage in damages(6, ("ur10e",)):
        spoilt = damage.spoil(log)
        rows = {len(spoilt.time), len(spoilt.position), len(spoilt.torque)}
        assert len(rows) == 1, damage.name
        same = spoilt.time.shape == log.time.shape and all(
            np.array_equal(getattr(spoilt, n), getattr(log, n)) for n in ("time", "position", "torque")
        )
        assert same == bool(damage.robot) or spoilt.velocity is not log.velocity, damage.name
    for array, before in zip((log.time, log.position, log.torque), kept, strict=True):
        np.testing.assert_array_equal(array, before)


def test_a_raw_log_comes_back_from_its_file(robot: Robot, motion: Motion, tmp_path: Path) -> None:
    for log in (raw(motion), replace(raw(motion), velocity=None)):
        found = RawLog.of(Log((log.save(tmp_path / "log.npz"),), robot))
        np.testing.assert_array_equal(found.torque, log.torque)
        np.testing.assert_array_equal(found.position, log.position)
        assert (found.velocity is None) == (log.velocity is None) and found.rate == pytest.approx(100.0)


@pytest.mark.parametrize(("name", "rated"), (("panda", 3.0), ("ur10e", 12.5), ("iiwa14", 14.0)))
def test_an_arm_can_just_hold_more_than_it_is_rated_for(name: str, rated: float) -> None:
    assert rated < capacity(Robot.load(name)) < 6.0 * rated


def test_gains_come_back_and_those_of_others_do_not(robot: Robot, tmp_path: Path) -> None:
    path = tmp_path / "gains.json"
    gains = SavedGains(gains=np.linspace(5.0, 10.0, 6), covariance=0.01 * np.eye(6) + 0.02)
    gains.save(path, robot)
    found = SavedGains.load(path, robot)
    np.testing.assert_array_equal(found.gains, gains.gains)
    np.testing.assert_array_equal(found.covariance, gains.covariance)
    with pytest.raises(RetorqueError, match="not of 'panda'"):
        SavedGains.load(path, Robot.load("panda"))
    text = path.read_text()
    for spoilt, says in (
        ("{", "cannot read"),
        (text.replace("5.0", "null", 1), "cannot read|needs 6"),
        ("[]", "cannot read"),
    ):
        path.write_text(spoilt)
        with pytest.raises(RetorqueError, match=says):
            SavedGains.load(path, robot)
    replace(gains, covariance=np.zeros((6, 6))).save(path, robot)
    with pytest.raises(RetorqueError, match="covariance"):
        SavedGains.load(path, robot)


def test_rough_gains_make_a_log_weigh_what_the_card_weighs(robot: Robot, motion: Motion) -> None:
    recorded = Scaled(motion, np.full(6, 0.125))
    np.testing.assert_array_equal(next(recorded.chunks()).torque, 0.125 * motion.torque[:2048])
    found, plain = rough_gains(recorded, robot), rough_gains(motion, robot)
    np.testing.assert_allclose(found, 8.0 * plain, rtol=1e-6)
    with pytest.raises(RetorqueError, match="--drive-gains"):
        rough_gains(replace(motion, torque=np.random.default_rng(0).standard_normal(motion.q.shape) + 1e3), robot)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 9999), harmonics=st.integers(2, 6), period=st.floats(2.0, 30.0))
def test_a_motion_of_any_shape_begins_at_rest_and_stays_inside(seed: int, harmonics: int, period: float) -> None:
    rng = np.random.default_rng(seed)
    a, b, place = rng.standard_normal((3, harmonics)), rng.standard_normal((3, harmonics)), rng.uniform(-0.5, 1.5, 3)
    lower, upper = -rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 2.0, 3)
    speed, acceleration = rng.uniform(0.2, 3.0, 3), rng.uniform(0.5, 9.0, 3)
    path = within(a, b, place, period, lower, upper, speed, acceleration)
    q, qd, qdd = path.at(np.linspace(0.0, period, 1500))
    np.testing.assert_allclose(qd[[0, -1]], 0.0, atol=1e-9)
    np.testing.assert_allclose(qdd[[0, -1]], 0.0, atol=1e-8)
    np.testing.assert_allclose(q[0], q[-1], atol=1e-9)
    assert np.all(q >= lower - 1e-9) and np.all(q <= upper + 1e-9)
    assert np.all(np.abs(qd) <= speed + 1e-9) and np.all(np.abs(qdd) <= acceleration + 1e-9)
    small = path.towards(q[0], 0.5).at(np.linspace(0.0, period, 50))
    np.testing.assert_allclose(small[1], 0.5 * path.at(np.linspace(0.0, period, 50))[1], atol=1e-12)
    still = at_rest(*at_rest(a, b))
    np.testing.assert_allclose(still, at_rest(a, b), atol=1e-12)  # done once is done
    with pytest.raises(RetorqueError, match="joints, harmonics"):
        Fourier(a=a, b=b[:2], centre=np.zeros(3), period=period)
