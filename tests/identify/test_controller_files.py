"""Motions as files for robots' own controllers: the same motion, whoever plays it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from retorque.identify.excite.controller_files import (
    ENDINGS,
    FRANKA_PERIOD,
    ROS_PERIOD,
    UR_PERIOD,
    WRITERS,
    resampled,
    write_franka_json,
    write_ros_yaml,
    write_urscript,
)
from retorque.robots.robot import Robot

ARM = Robot.load("z1")


def motion(seconds: float = 1.0, step: float = 0.01) -> tuple[np.ndarray, ...]:
    """A cubic in every joint, which splines through positions and velocities repeat exactly."""
    t = np.arange(round(seconds / step) + 1)[:, None] * step
    k = np.arange(1, ARM.n + 1)
    return t[:, 0], k * t**3 - t**2 + k, 3.0 * k * t**2 - 2.0 * t, 6.0 * k * t - 2.0


@pytest.mark.parametrize("period", [0.001, 0.004, 0.03])
def test_another_period_is_the_same_motion(period: float) -> None:
    time, q, qd, qdd = resampled(motion(), period)
    k, t = np.arange(1, ARM.n + 1), time[:, None]
    np.testing.assert_allclose(q, k * t**3 - t**2 + k, atol=1e-12)
    np.testing.assert_allclose(qd, 3.0 * k * t**2 - 2.0 * t, atol=1e-9)
    np.testing.assert_allclose(qdd, 6.0 * k * t - 2.0, atol=1e-9)


@pytest.mark.parametrize("period", [0.007, 0.3, 0.6])
def test_the_last_row_is_the_motions_end(period: float) -> None:
    time, q, _, _ = resampled(motion(), period)
    assert time[0] == 0.0 and time[-1] == 1.0 and np.all(np.diff(time) > 0.4 * period)
    np.testing.assert_allclose(q[-1], motion()[1][-1], atol=1e-12)


def test_urscript_moves_to_the_start_serves_and_stops(tmp_path: Path) -> None:
    text = write_urscript(tmp_path / "a.script", motion(), ARM).read_text()
    lines = text.splitlines()
    assert lines[0].startswith("def ") and lines[-1] == "end" and "stopj" in lines[-2] and "movej" in lines[2]
    targets = np.array([json.loads(found) for found in re.findall(r"servoj\((\[.*?\])", text)])
    np.testing.assert_allclose(targets, resampled(motion(), UR_PERIOD)[1], atol=1e-8)
    assert text.count(f"t={UR_PERIOD:g}") == len(targets)


def test_franka_gets_every_cycle(tmp_path: Path) -> None:
    content = json.loads(write_franka_json(tmp_path / "a.json", motion(), ARM).read_text())
    assert content["joint_names"] == list(ARM.joint_names) and content["period_s"] == FRANKA_PERIOD
    q = np.array(content["position_rad"])
    assert content["start_rad"] == content["position_rad"][0] and len(q) == len(content["time_s"]) == 1001
    np.testing.assert_allclose(np.gradient(q, FRANKA_PERIOD, axis=0)[1:-1], content["velocity_rad_s"][1:-1], atol=1e-4)


def test_ros_points_come_after_a_gentle_start(tmp_path: Path) -> None:
    text = write_ros_yaml(tmp_path / "a.yaml", motion(), ARM).read_text()
    stamps = [int(s) + 1e-9 * int(n) for s, n in re.findall(r"time_from_start: \{sec: (\d+), nanosec: (\d+)\}", text)]
    np.testing.assert_allclose(np.array(stamps) - 3.0, resampled(motion(), ROS_PERIOD)[0], atol=1e-8)
    assert [json.loads(name) for name in re.findall(r"^- (\".*\")$", text, re.M)] == list(ARM.joint_names)
    for word in ("positions", "velocities", "accelerations"):
        assert text.count(f"{word}: [") == len(stamps)


def test_no_minus_zero_and_one_ending_a_writer(tmp_path: Path) -> None:
    assert set(WRITERS) == set(ENDINGS)
    still = tuple(np.zeros_like(x) if x.ndim == 2 else x for x in motion())
    for name, write in WRITERS.items():
        minus = tuple(-x if x.ndim == 2 else x for x in still)
        assert "-0.0" not in write(tmp_path / f"x.{ENDINGS[name]}", minus, ARM).read_text()
