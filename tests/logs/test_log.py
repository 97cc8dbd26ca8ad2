"""A whole log, end to end: invariances of the motion that it gives, and refusals that say what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.logs.columns import Columns
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter
from retorque.work.errors import RetorqueError

SIGNALS = ("q", "qd", "qdd", "torque", "slip")


def saved(swing, path: Path, rows: np.ndarray | None = None) -> Path:
    rows = swing.rows if rows is None else rows
    np.savez(path, **{name: rows[:, k].copy() for k, name in enumerate(swing.names)})
    return path


def motion(swing, path: Path, **options) -> Motion:
    found = Log((path,), swing.robot, **options).load()
    assert isinstance(found, Motion)
    return found


def test_when_a_log_was_recorded_does_not_matter(swing, tmp_path: Path) -> None:
    plain = motion(swing, saved(swing, tmp_path / "a.npz"))
    for begin in (-50.0, 1e5, 1.7e9):
        later = swing.rows.copy()
        later[:, 0] += begin
        found = motion(swing, saved(swing, tmp_path / f"{begin}.npz", later))
        np.testing.assert_allclose(found.time - begin, plain.time, atol=1e-5)
        for name in SIGNALS:
            np.testing.assert_allclose(getattr(found, name), getattr(plain, name), atol=2e-3, err_msg=name)


def test_reading_twice_gives_the_same_pieces(swing, tmp_path: Path) -> None:
    log = Log((saved(swing, tmp_path / "a.npz"),), swing.robot)
    first, second = ([piece for piece in log.chunks()] for _ in range(2))
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in SIGNALS)


def test_two_files_are_two_stretches_of_one_motion(swing, tmp_path: Path) -> None:
    one = motion(swing, saved(swing, tmp_path / "a.npz"))
    log = Log((tmp_path / "a.npz", tmp_path / "a.npz"), swing.robot)
    both = log.load()
    assert isinstance(both, Motion) and log.dropped.pieces == 2 and log.dropped.rows == 1200
    np.testing.assert_array_equal(both.q, np.concatenate([one.q, one.q]))


@pytest.mark.parametrize("stride", (1, 3, 7))
def test_thinning_keeps_samples_of_the_filtered_motion(swing, stride: int, tmp_path: Path) -> None:
    path = saved(swing, tmp_path / "a.npz")
    every = motion(swing, path, filter=Filter(decimate=1))
    found = motion(swing, path, filter=Filter(decimate=stride))
    index = np.searchsorted(every.time, found.time - 1e-9)
    assert len(found) >= len(every) // stride - 1 and set(np.diff(index)) == {stride}
    np.testing.assert_allclose(found.qdd, every.qdd[index], atol=1e-12)


def test_rows_choose_a_part_and_say_when_there_is_none(swing, tmp_path: Path) -> None:
    path = saved(swing, tmp_path / "a.npz")
    part = motion(swing, path, rows=slice(200, 500))
    assert part.time[0] >= swing.time[200] and part.time[-1] <= swing.time[499]
    with pytest.raises(RetorqueError, match="ends before row 900"):
        motion(swing, path, rows=slice(900, None))
    with pytest.raises(RetorqueError, match=r"no usable motion|too few to learn from"):
        motion(swing, path, rows=slice(0, 40))


def test_what_the_channels_gave_away_is_told_after_the_reading(swing, tmp_path: Path) -> None:
    rows = swing.rows.copy()
    rows[:, 15] = 1.0
    log = Log((saved(swing, tmp_path / "a.npz", rows),), swing.robot)
    assert log.findings == ()
    log.load()
    assert [cause for cause, _ in log.findings] == ["dead channel"]


def test_gains_turn_currents_into_torques_and_are_checked(swing, tmp_path: Path) -> None:
    names = [name.replace("tau", "current") for name in swing.names]
    np.savez(tmp_path / "a.npz", **{name: swing.rows[:, k].copy() for k, name in enumerate(names)})
    gains = np.linspace(2.0, -4.0, 6)
    plain = motion(swing, saved(swing, tmp_path / "b.npz"))
    found = motion(swing, tmp_path / "a.npz", drive_gains=gains)
    np.testing.assert_allclose(found.torque, gains * plain.torque, atol=1e-9)
    mapped = motion(swing, tmp_path / "a.npz", columns=Columns(drive_gains=tuple(gains)))
    np.testing.assert_array_equal(mapped.torque, found.torque)
    for wrong in (np.ones(5), np.zeros(6), np.full(6, np.nan), np.ones((6, 1))):
        with pytest.raises(RetorqueError, match="needs 6 drive gains"):
            Log((tmp_path / "a.npz",), swing.robot, drive_gains=wrong)
    assert Log((tmp_path / "a.npz",), swing.robot).has_currents()
    assert not Log((tmp_path / "b.npz",), swing.robot).has_currents()


def test_no_file_is_no_log(swing) -> None:
    with pytest.raises(RetorqueError, match="name at least one log"):
        Log((), swing.robot)


@pytest.mark.parametrize(
    ("files", "rate", "says"),
    (
        ({"position": "q.txt"}, None, "must name 'position', 'torque' or 'current', and 'time'"),
        ({"position": "q.txt", "torque": "u.txt"}, None, "unless 'rate' is given"),
        ({"position": "none.txt", "torque": "u.txt"}, 100.0, "there is no log"),
        ({"position": "wide.txt", "torque": "u.txt", "time": "t.txt"}, None, "has 5 columns; it must have 6"),
        ({"position": "q.txt", "current": "u.txt"}, 100.0, "give --drive-gains"),
    ),
)
def test_folders_that_lack_something_are_refused(swing, files, rate, says: str, tmp_path: Path) -> None:
    np.savetxt(tmp_path / "q.txt", swing.q)
    np.savetxt(tmp_path / "u.txt", swing.torque)
    np.savetxt(tmp_path / "t.txt", swing.time)
    np.savetxt(tmp_path / "wide.txt", swing.q[:, :5])
    with pytest.raises(RetorqueError, match=says):
        motion(swing, tmp_path, columns=Columns(files=files, rate=rate))


def test_clocks_without_a_time_in_common_are_refused(swing, tmp_path: Path) -> None:
    for name, values, begin in (("q.csv", swing.q, 0.0), ("u.csv", swing.torque, 100.0)):
        np.savetxt(tmp_path / name, np.column_stack([swing.time + begin, values]), delimiter=",")
    with pytest.raises(RetorqueError, match="no time in common"):
        motion(swing, tmp_path, columns=Columns(files={"position": "q.csv", "torque": "u.csv"}))
