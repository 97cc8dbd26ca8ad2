"""Motions that `drive` follows: they begin where they should, stay within limits, and files are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.drive_motions import AsReported, SampledMotion, check_start, make_motion, read_motion
from retorque.work.errors import RetorqueError


def test_holding_holds_and_sines_begin_and_end_at_rest(panda: Robot) -> None:
    at = panda.home + 0.05
    hold = make_motion("hold", panda, at, 2.0, 0, 1.0)
    for time in (0.0, 1.0, 2.0, 9.0):
        assert np.array_equal(hold.at(time).position, at) and not hold.at(time).velocity.any()
    for name, centre in (("sines", at), ("home-sines", panda.home)):
        motion = make_motion(name, panda, at, 8.0, 3, 1.0)
        assert motion.at(0.0).position == pytest.approx(centre) and motion.at(0.0).velocity == pytest.approx(0.0)
        path = np.array([motion.at(time).position for time in np.linspace(0.0, 8.0, 300)])
        assert (path > panda.lower).all() and (path < panda.upper).all() and np.ptp(path, axis=0).max() > 0.1
    short = make_motion("sines", panda, at, 1.0, 3, 1.0)
    assert np.abs(short.amplitude).max() < 0.3 * np.abs(motion.amplitude).max()


def test_a_joint_at_its_limit_stays_there(panda: Robot) -> None:
    at = np.array(panda.home)
    at[3] = panda.upper[3]
    motion = make_motion("sines", panda, at, 8.0, 0, 1.0)
    assert motion.amplitude[3] == 0.0 and np.abs(motion.amplitude[:3]).min() > 0.0


def test_a_table_is_followed_straight_between_its_rows(panda: Robot) -> None:
    time, position = np.array([5.0, 6.0, 8.0]), np.outer([0.0, 1.0, 3.0], np.ones(7))
    motion = SampledMotion(time, position, np.ones((3, 7)))
    assert motion.duration == 3.0
    assert motion.at(0.5).position == pytest.approx(0.5) and motion.at(2.0).position == pytest.approx(2.0)
    assert motion.at(3.0).position == pytest.approx(3.0) and motion.at(7.0).velocity == pytest.approx(0.0)


def written(path: Path, robot: Robot, rows: np.ndarray, names: list[str] | None = None) -> Path:
    default = ["time", *(f"q{k + 1}" for k in range(robot.n)), *(f"qd{k + 1}" for k in range(robot.n))]
    text = ",".join(names or default) + "\n" + "\n".join(",".join(map(repr, row.tolist())) for row in rows)
    path.write_text(text + "\n")
    return path


def test_files_are_read_and_checked(panda: Robot, tmp_path: Path) -> None:
    rows = np.zeros((4, 15))
    rows[:, 0], rows[:, 1:8] = [0.0, 0.1, 0.2, 0.3], panda.home
    good = written(tmp_path / "good.csv", panda, rows)
    assert make_motion(str(good), panda, panda.home, 1.0, 0, 1.0).at(0.15).position == pytest.approx(panda.home)
    backwards, outside, broken = rows.copy(), rows.copy(), rows.copy()
    backwards[2, 0], outside[1, 4], broken[3, 9] = 0.05, 3.0, np.nan
    for changed, says in ((backwards, "rising"), (outside, "joint limits"), (broken, "finite"), (rows[:1], "rising")):
        with pytest.raises(RetorqueError, match=says):
            read_motion(written(tmp_path / "bad.csv", panda, changed), panda)
    names = ["time", *(f"x{k}" for k in range(14))]
    with pytest.raises(RetorqueError, match="no motion of 'panda'"):
        read_motion(written(tmp_path / "bad.csv", panda, rows, names), panda)
    with pytest.raises(RetorqueError, match="no motion of 'z1'"):
        read_motion(good, Robot.load("z1"))
    with pytest.raises(RetorqueError, match="unknown motion 'dance'"):
        make_motion("dance", panda, panda.home, 1.0, 0, 1.0)


def test_a_start_that_is_far_or_unknown_is_refused(panda: Robot) -> None:
    motion = make_motion("home-sines", panda, panda.home, 4.0, 0, 1.0)
    check_start(motion, panda.home + 0.09, panda, 0.1)
    away = np.array(panda.home)
    away[2] += 0.5
    with pytest.raises(RetorqueError, match=r"0\.50 rad from where joint3 is"):
        check_start(motion, away, panda, 0.1)
    away[2] = np.nan
    with pytest.raises(RetorqueError, match="begins"):
        check_start(motion, away, panda, 0.1)


def test_what_is_watched_is_what_the_robot_was_told() -> None:
    state = State(0.0, np.zeros(2), np.zeros(2), np.array([1.0, -2.0]))
    policy = AsReported()
    policy.reset(state)
    assert np.array_equal(policy.act(state).torque, [1.0, -2.0])
