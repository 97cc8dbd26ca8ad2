"""From raw samples to a motion: filters that delay nothing, even times, pieces that are one long filter's."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.logs import overlap
from retorque.logs.clean import Cleaner, Dropped, Limits, check_velocity
from retorque.logs.motion import Motion, join
from retorque.logs.overlap import OverlapFilter
from retorque.logs.signal import Filter, resample, to_motion
from retorque.physics.presliding import DISTANCES
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

RATE = 500.0
Z1 = Robot.load("z1")


def slow(seconds: float = 8.0, n: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions (samples, n) and velocities of a motion well below the cut-off."""
    time = np.arange(int(seconds * RATE)) / RATE
    rate = np.array([1.3, 2.1])[:n]
    return time, 0.5 * np.sin(rate * time[:, None]), 0.5 * rate * np.cos(rate * time[:, None])


def test_a_slow_motion_passes_and_fast_noise_does_not() -> None:
    time, q, _ = slow()
    noisy = q + 0.01 * np.sin(2.0 * np.pi * 60.0 * time)[:, None]
    smooth = Filter().smooth(noisy, RATE)
    inside = slice(400, -400)
    np.testing.assert_allclose(smooth[inside], q[inside], atol=1e-4)  # no delay, or this would be 1e-2


def test_what_cannot_be_filtered_stays() -> None:
    values = np.random.default_rng(0).standard_normal((3, 2))
    assert Filter().smooth(values, RATE) is values  # too short
    assert Filter(cutoff=300.0).smooth(np.ones((50, 2)), RATE).tolist() == np.ones((50, 2)).tolist()


@pytest.mark.parametrize(("cutoff", "rate", "stride"), ((5.0, 500.0, 10), (5.0, 1000.0, 20), (5.0, 40.0, 1)))
def test_ten_samples_a_period_are_kept(cutoff: float, rate: float, stride: int) -> None:
    assert Filter(cutoff=cutoff).stride(rate) == stride
    assert Filter(cutoff=cutoff, decimate=3).stride(rate) == 3


@pytest.mark.parametrize("bad", ({"cutoff": 0.0}, {"cutoff": float("nan")}, {"order": 0}, {"decimate": -1}), ids=str)
def test_filters_that_make_no_sense(bad: dict) -> None:
    with pytest.raises(RetorqueError):
        Filter(**bad)


def test_uneven_times_become_even() -> None:
    rng = np.random.default_rng(1)
    time = np.sort(rng.uniform(0.0, 4.0, 3000))
    time[0], time[-1] = 0.0, 4.0
    even, values = resample(time, np.column_stack([2.0 * time, -time]), 100.0)
    np.testing.assert_allclose(np.diff(even), 0.01)
    np.testing.assert_allclose(values, np.column_stack([2.0 * even, -even]), atol=1e-12)  # a line stays a line
    assert even[0] == 0.0 and abs(even[-1] - 4.0) < 1e-9


def test_velocity_and_acceleration_are_derivatives() -> None:
    time, q, qd = slow()
    motion, wound = to_motion(time, q, None, np.zeros_like(q), RATE, Filter())
    inside = slice(500, -500)
    np.testing.assert_allclose(motion.qd[inside], qd[inside], atol=2e-3)
    given, _ = to_motion(time, q, qd, np.zeros_like(q), RATE, Filter())
    acceleration = -0.5 * np.array([1.3, 2.1]) ** 2 * np.sin(np.array([1.3, 2.1]) * time[:, None])
    np.testing.assert_allclose(given.qdd[inside], acceleration[inside], atol=5e-3)
    assert wound.shape == (len(q), 2, len(DISTANCES))


def test_pieces_are_those_of_one_long_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    time, q, qd = slow(20.0)
    values = np.column_stack([q, qd, np.cos(3.0 * time)[:, None] * np.ones(2)])

    def filtered(size: int, window: int) -> Motion:
        monkeypatch.setattr(overlap, "WINDOW", window)
        stretch = OverlapFilter(2, Filter(decimate=10))
        pieces = [p for k in range(0, len(time), size) for p in stretch.push(time[k : k + size], values[k : k + size])]
        return join([*pieces, *stretch.flush()])

    whole, parts = filtered(len(time), 10**6), filtered(700, 1000)
    assert abs(len(whole) - len(parts)) <= 1  # the rate is counted from the first window
    inside = (parts.time > whole.time[5]) & (parts.time < whole.time[-5])
    for name in ("q", "qd", "torque"):
        for joint in range(2):
            expected = np.interp(parts.time[inside], whole.time, getattr(whole, name)[:, joint])
            np.testing.assert_allclose(getattr(parts, name)[inside, joint], expected, atol=2e-3)


def test_a_stretch_too_short_to_filter_gives_nothing() -> None:
    stretch = OverlapFilter(1, Filter())
    time = np.arange(20) / RATE
    assert not list(stretch.push(time, np.zeros((20, 2)))) and not list(stretch.flush())


def test_velocities_of_something_else_are_refused() -> None:
    _, q, qd = slow()
    check_velocity(q, qd, RATE)
    with pytest.raises(RetorqueError, match="joints 1, 2 "):
        check_velocity(q, np.rad2deg(qd), RATE)
    with pytest.raises(RetorqueError, match="joints 2 "):
        check_velocity(q, np.column_stack([qd[:, 0], -qd[:, 1]]), RATE)


def test_a_motion_is_its_samples() -> None:
    q = np.arange(12.0).reshape(6, 2)
    motion = Motion.of(q, q + 1.0, q + 2.0, q + 3.0, period=0.01)
    assert len(motion) == 6 and motion.n == 2 and motion.time[1] == pytest.approx(0.01)
    assert [len(piece) for piece in motion.chunks(4)] == [4, 2]
    np.testing.assert_array_equal(join(motion.chunks(4)).torque, motion.torque)
    thinned = motion[::2].copy()
    thinned.q[:] = 0.0
    assert motion.q[2, 0] == 4.0
    with pytest.raises(RetorqueError, match="no usable sample"):
        join([])


@pytest.mark.parametrize(
    "wrong",
    ({"qd": np.zeros((5, 2))}, {"time": np.zeros(5)}, {"q": np.zeros(6)}, {"slip": np.zeros((6, 2, 1))}),
    ids=str,
)
def test_motions_of_uneven_shape_are_refused(wrong: dict) -> None:
    good = {name: np.zeros((6, 2)) for name in ("q", "qd", "qdd", "torque")} | {"time": np.zeros(6)}
    with pytest.raises(RetorqueError):
        Motion(**{**good, **wrong})


def test_what_is_left_out_is_counted_with_its_reason() -> None:
    time, q, qd = slow(2.0)
    rng = np.random.default_rng(0)
    robot_q, robot_qd = np.tile(Z1.home, (len(time), 1)), np.zeros((len(time), 6))
    robot_q[:, :2] += 0.2 * (q - q[0])
    robot_qd[:, :2] = 0.2 * qd
    effort = rng.standard_normal((len(time), 6))
    robot_q[100, 3], effort[200, 1], robot_qd[300, 0] = np.nan, np.inf, 1e6
    stamps = time.copy()
    stamps[400] = stamps[399]
    dropped = Dropped()
    kept = Cleaner(Limits.of(Z1, current=False), dropped).clean(np.arange(len(time)), stamps, robot_q, robot_qd, effort)
    assert not {100, 200, 300, 400} & set(kept.tolist())
    assert len(kept) == len(time) - 4 and dropped.total == 4
    assert "left out" in dropped.words() and "row 100" in dropped.words()


def test_nothing_left_out_is_said_too() -> None:
    assert Dropped(rows=7, notes=["the file ends early"]).words() == "all 7 rows used; the file ends early"
