"""What is believed of a log: the same rows in whatever pieces it is read, and a cause for what cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.logs.channels import Channels, Runs
from retorque.logs.clean import Cleaner, DamagedLog, Dropped, Limits, check_time, check_velocity
from retorque.robots.robot import Robot

RATE = 200.0
Z1 = Robot.load("z1")


def cleaned(swing, cuts: list[int] = [], **change: np.ndarray) -> tuple[list[int], Dropped]:  # noqa: B006
    """The rows that are kept of a swing, read in pieces, and why the others are not."""
    signals = {"time": swing.time, "q": swing.q, "qd": swing.qd, "torque": swing.torque, **change}
    dropped = Dropped(rows=len(swing.time))
    cleaner, kept = Cleaner(Limits.of(swing.robot, current=False), dropped), []
    for rows in np.split(np.arange(len(swing.time)), sorted(cuts)):
        if len(rows):
            found = cleaner.clean(rows, *(signals[name][rows] for name in ("time", "q", "qd", "torque")))
            kept += rows[found].tolist()
    return kept, dropped


@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(10, 590), max_size=4), seed=st.integers(0, 10**6))
def test_single_bad_rows_are_found_in_whatever_pieces_a_log_is_read(swing, cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    bad = rng.choice(np.arange(8, 592), 5, replace=False)
    bad = np.array([row for row in bad if all(abs(row - cut) > 4 for cut in cuts)], dtype=int)
    q, qd, torque, time = (x.copy() for x in (swing.q, swing.qd, swing.torque, swing.time))
    for kind, row in enumerate(bad):
        if kind == 0:
            q[row, 2] = np.nan
        elif kind == 1:
            torque[row, 0] = 1e9
        elif kind == 2:
            q[row] += 1.0
        elif kind == 3:
            time[row] += 3600.0
        else:
            q[row], torque[row] = 0.0, 0.0
    kept, dropped = cleaned(swing, cuts, q=q, qd=qd, torque=torque, time=time)
    assert kept == [row for row in range(600) if row not in bad] and dropped.total == len(bad)


def test_a_robot_that_really_is_elsewhere_is_believed_after_a_while(swing) -> None:
    moved = swing.q.copy()
    moved[300:] += 1.0
    kept, dropped = cleaned(swing, q=moved)
    assert (
        570 <= len(kept) < 600
        and kept[-1] == 599
        and dropped.first["rows that jump further than the joints can move"] == 300
    )


def test_a_clock_that_is_set_back_for_good_begins_a_new_stretch(swing) -> None:
    time = swing.time.copy()
    time[300:] -= 100.0
    for cuts in ([], [300], [250, 400]):
        kept, dropped = cleaned(swing, cuts, time=time)
        assert len(kept) >= 598 and dropped.total <= 2


def test_a_pause_is_no_fault(swing) -> None:
    time = swing.time.copy()
    time[300:] += 30.0
    for cuts in ([], [300], [299], [302]):
        assert len(cleaned(swing, cuts, time=time)[0]) == 600


@pytest.mark.parametrize(
    ("unit", "said"), ((1.0, None), (1e3, '"ms"'), (1e6, '"us"'), (1e9, '"ns"')), ids=("s", "ms", "us", "ns")
)
@pytest.mark.parametrize("rate", (20.0, 125.0, 1000.0))
def test_the_unit_of_a_clock_is_guessed(unit: float, said: str | None, rate: float) -> None:
    time = unit * (1.7e9 * (unit < 1e6) + np.arange(200) / rate)
    if said is None:
        check_time(time, "a.csv")
        return
    with pytest.raises(DamagedLog, match=f"time_unit = {said}") as refused:
        check_time(time, "a.csv")
    assert refused.value.cause == "time unit"


def test_a_clock_too_slow_for_motion_in_any_unit_is_refused_and_a_short_one_is_not_judged() -> None:
    with pytest.raises(DamagedLog, match="time_scale"):
        check_time(np.arange(100) * 1e13, "a.csv")
    check_time(np.arange(10) * 1e13, "a.csv")


def velocities(swing, change: str) -> tuple[np.ndarray, np.ndarray]:
    q, qd = swing.q, swing.qd
    return {
        "sign": (q, -qd),
        "degrees of velocity": (q, np.rad2deg(qd)),
        "degrees of position": (np.rad2deg(q), qd),
        "clock": (q, 10.0 * qd),
        "order": (q, qd[:, [1, 0, 2, 3, 4, 5]]),
        "frozen": (np.where(np.arange(6) == 3, q[0], q), qd),
        "noise": (q, np.random.default_rng(0).standard_normal(qd.shape)),
    }[change]


@pytest.mark.parametrize(
    ("change", "cause", "hint"),
    (
        ("sign", "sign", "the other way"),
        ("degrees of velocity", "scale", "velocities are in degrees"),
        ("degrees of position", "scale", "positions are in degrees"),
        ("clock", "time unit", "off by 10"),
        ("order", "permutation", "have velocities 2, 1, 3"),
        ("frozen", "frozen channel", "stand still"),
        ("noise", "permutation", "check the columns"),
    ),
)
def test_velocities_that_do_not_fit_have_a_cause(swing, change: str, cause: str, hint: str) -> None:
    with pytest.raises(DamagedLog, match=hint) as refused:
        check_velocity(*velocities(swing, change), RATE)
    assert refused.value.cause == cause


def test_a_joint_at_rest_is_no_contradiction(swing) -> None:
    still = np.where(np.arange(6) == 3, swing.q[0], swing.q)
    check_velocity(still, np.where(np.arange(6) == 3, 1e-3, swing.qd), RATE)


@pytest.mark.parametrize(
    ("signal", "cause", "hint"),
    (("q", "scale", "degrees"), ("qd", "time unit", "clock"), ("torque", "scale", "effort_scale")),
)
def test_a_log_that_is_mostly_impossible_says_which_signal_is(swing, signal: str, cause: str, hint: str) -> None:
    _, dropped = cleaned(swing, **{signal: 500.0 + getattr(swing, signal)})
    damage = dropped.damage()
    assert damage is not None and damage.cause == cause and hint in str(damage)
    assert cleaned(swing)[1].damage() is None and Dropped().damage() is None


def test_one_joints_unit_is_told_from_the_logs(swing) -> None:
    """The sentence names the joint and what to type."""
    only = np.arange(6) == 2
    _, dropped = cleaned(swing, torque=np.where(only, 1e4, swing.torque))
    assert "efforts of joint 3" in str(dropped.damage()) and "effort_scale = [1, 1, 0.001, 1, 1, 1]" in str(
        dropped.damage()
    )
    _, dropped = cleaned(swing, qd=np.where(only, 500.0, swing.qd))
    damage = dropped.damage()
    assert damage is not None and damage.cause == "scale" and "the velocities of joint 3" in str(damage)
    assert "position_scale = [1, 1, 0.01745, 1, 1, 1]" in str(damage)


def test_an_encoder_that_freezes_halfway_is_frozen(swing) -> None:
    q = swing.q.copy()
    q[len(q) // 2 :, 1] = q[len(q) // 2, 1]
    with pytest.raises(DamagedLog, match="frozen; leave those rows out") as refused:
        check_velocity(q, swing.qd, RATE)
    assert refused.value.cause == "frozen channel"


def test_a_clock_that_begins_anew_several_times_loses_no_row(swing) -> None:
    count = len(swing.q)
    clock = np.mod(np.arange(count) / RATE, 0.4 * count / RATE)
    kept, dropped = cleaned(swing, time=clock)
    assert len(kept) == count and not dropped.total
    assert dropped.notes == ["the clock is set back at row 240: what follows is read as a stretch of its own"]
    _, dropped = cleaned(swing, time=swing.time + 1e6 * (np.arange(count) >= 300))
    assert "jumps ahead at row 300" in dropped.words()


def test_currents_have_no_limit_of_the_torques(swing) -> None:
    torque, current = (Limits.of(Z1, current=flag).effort for flag in (False, True))
    np.testing.assert_allclose(torque, 3.0 * Z1.torque_limit)
    assert np.all(current > torque)


def longest_run(time: np.ndarray, values: np.ndarray) -> float:
    """The longest stretch of one value, sample by sample."""
    best, since = 0.0, time[0]
    for k in range(1, len(time)):
        if values[k] != values[k - 1]:
            since = time[k]
        best = max(best, time[k] - since)
    return best


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(0, 2), min_size=4, max_size=60),
    cuts=st.lists(st.integers(2, 58), max_size=3),
)
def test_runs_are_those_of_the_whole_log(values: list[int], cuts: list[int]) -> None:
    time, column = 0.01 * np.arange(len(values)), np.array(values, dtype=float)[:, None]
    runs = Runs(1)
    for rows in np.split(np.arange(len(values)), sorted(set(cuts))):
        if len(rows):
            runs.add(time[rows], column[rows])
    assert runs.longest[0] == pytest.approx(longest_run(time, column[:, 0]))


def channels(swing, cut: int = 0, **change: np.ndarray) -> list[tuple[str, str]]:
    signals = {"time": swing.time, "q": swing.q, "qd": swing.qd, "torque": swing.torque, **change}
    found = Channels(6)
    for rows in np.split(np.arange(len(swing.time)), [cut] if cut else []):
        found.add(*(signals[name][rows] for name in ("time", "q", "qd", "torque")))
    return list(found.findings(swing.robot.joint_names))


@pytest.mark.parametrize("cut", (0, 100, 300))
def test_channels_give_away_what_is_dead_or_frozen_and_nothing_else(swing, cut: int) -> None:
    joint = swing.robot.joint_names[2]
    third = np.arange(6) == 2
    assert channels(swing, cut) == []
    ((cause, said),) = channels(swing, cut, torque=np.where(third, 1.5, swing.torque))
    assert cause == "dead channel" and joint in said
    ((cause, said),) = channels(swing, cut, torque=np.zeros_like(swing.torque))[1:]
    assert (cause, said) == ("dead channel", "no effort was recorded")
    held = np.where(third & (swing.time[:, None] > 2.0), swing.q[400], swing.q)
    ((cause, said),) = channels(swing, cut, q=held)
    assert cause == "frozen channel" and joint in said and "encoder" in said
    gap = np.where((swing.time[:, None] > 1.0) & (swing.time[:, None] < 1.8), 0.0, swing.torque)
    ((cause, said),) = channels(swing, cut, torque=gap)
    assert cause == "zeros" and "0.8 s" in said


def test_a_channel_of_nothing_says_nothing() -> None:
    empty = Channels(6)
    empty.add(np.zeros(0), np.zeros((0, 6)), None, np.zeros((0, 6)))
    empty.add(np.full(50, np.nan), np.zeros((50, 6)), None, np.zeros((50, 6)))
    assert empty.findings(Z1.joint_names) == ()
