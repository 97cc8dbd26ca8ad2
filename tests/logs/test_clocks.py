"""One file a signal, each with its own clock: brought together at the positions' times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.logs.clocks import own_clocks, read_signal, together
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")
N = ARM.n
FILES = {"position": "q.csv", "velocity": "qd.csv", "torque": "tau.csv"}


def write(path: Path, time: np.ndarray, slope: float, head: str = "") -> None:
    """Every joint's value is its number plus a slope times the time."""
    rows = np.column_stack([time, slope * time[:, None] + np.arange(N)])
    np.savetxt(path, rows, delimiter=",", header=head, comments="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, (begin, rate, slope) in {
        "q": (0.0, 100.0, 1.0),
        "qd": (0.305, 77.0, 2.0),
        "tau": (-1.0, 31.0, 3.0),
    }.items():
        write(tmp_path / f"{name}.csv", begin + np.arange(0.0, 5.0, 1.0 / rate), slope)
    return tmp_path


def test_signals_are_read_where_all_clocks_run(folder: Path) -> None:
    assert own_clocks(folder, FILES, ARM)
    found = together(folder, FILES, ARM)
    time = found["time"]
    assert time[0] == pytest.approx(0.31) and time[-1] <= 4.0 and np.allclose(np.diff(time), 0.01)
    for name, slope in (("position", 1.0), ("velocity", 2.0), ("torque", 3.0)):
        np.testing.assert_allclose(found[name], slope * time[:, None] + np.arange(N), atol=1e-9)


def test_a_common_clock_is_none_of_their_own(folder: Path) -> None:
    assert not own_clocks(folder, {**FILES, "time": "t.csv"}, ARM)
    np.savetxt(folder / "q.csv", np.zeros((20, N)), delimiter=",")
    assert not own_clocks(folder, FILES, ARM)


def test_rows_out_of_order_repeated_or_empty_are_sorted_out(folder: Path) -> None:
    time = np.array([0.2, 0.1, 0.3, 0.3, np.nan, 0.4])
    write(folder / "q.csv", time, 1.0)
    clock, values = read_signal(folder / "q.csv", "position", ARM)
    np.testing.assert_allclose(clock, [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(values[:, 2], clock + 2.0)


def test_a_header_names_the_clock_and_the_joints(folder: Path) -> None:
    head = ",".join(["t", *(f"position_{name}" for name in ARM.joint_names)])
    write(folder / "q.csv", np.arange(0.0, 1.0, 0.1), 1.0, head)
    clock, values = read_signal(folder / "q.csv", "position", ARM)
    assert len(clock) == 10 and np.allclose(values[:, 0], clock)


def test_what_has_no_time_in_common_is_refused(folder: Path) -> None:
    write(folder / "tau.csv", 100.0 + np.arange(0.0, 1.0, 0.1), 3.0)
    with pytest.raises(RetorqueError, match="no time in common"):
        together(folder, FILES, ARM)
    write(folder / "tau.csv", np.full(9, 2.0), 3.0)
    with pytest.raises(RetorqueError, match="goes forward"):
        together(folder, FILES, ARM)
    head = ",".join(["clock?", *(f"position_{name}" for name in ARM.joint_names)])
    write(folder / "q.csv", np.arange(0.0, 1.0, 0.1), 1.0, head)
    with pytest.raises(RetorqueError, match="no column for time"):
        read_signal(folder / "q.csv", "position", ARM)
