"""Logs in every form give the same motion, and what is wrong in them is counted or refused."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retorque.logs import overlap as window_module
from retorque.logs import table as table_module
from retorque.logs.columns import Columns, read_map
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]
RATE = 200.0


@pytest.fixture(scope="module")
def recorded(simulate: Simulate) -> tuple[Robot, np.ndarray]:
    """A robot and rows of time, q, qd, torque as a logger would write them."""
    truth = simulate("z1", seconds=4.0, rate=RATE)
    m = truth.motion
    return truth.robot, np.column_stack([100.0 + m.time, m.q, m.qd, m.torque])


def names(n: int) -> list[str]:
    return ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "tau") for k in range(n))]


def text(rows: np.ndarray, head: list[str] | None = None, delimiter: str = ",") -> str:
    out = io.StringIO()
    if head:
        out.write(delimiter.join(head) + "\n")
    np.savetxt(out, rows, fmt="%.17g", delimiter=delimiter)
    return out.getvalue()


def load(path: Path, robot: Robot, **options: Any) -> tuple[Motion, Log]:
    log = Log((path,), robot, **options)
    motion = log.load()
    assert isinstance(motion, Motion)
    return motion, log


@pytest.fixture(scope="module")
def plain(recorded: tuple[Robot, np.ndarray], tmp_path_factory: pytest.TempPathFactory) -> Motion:
    robot, rows = recorded
    path = tmp_path_factory.mktemp("log") / "log.csv"
    path.write_text(text(rows, names(6)))
    motion, log = load(path, robot)
    assert log.dropped.total == 0 and log.dropped.rows == len(rows)
    return motion


def test_filtered_motion_is_the_recorded_one(recorded: tuple[Robot, np.ndarray], plain: Motion) -> None:
    _, rows = recorded
    inside = slice(len(plain) // 4, -len(plain) // 4)
    index = np.searchsorted(rows[:, 0], plain.time[inside] - 1e-6)
    assert np.max(np.abs(plain.q[inside] - rows[index, 1:7])) < 5e-3
    slope = np.gradient(rows[:, 7:13], 1.0 / RATE, axis=0)[index]
    assert np.max(np.abs(plain.qdd[inside] - slope)) < 0.1 * np.max(np.abs(slope))
    assert plain.slip is not None and np.max(np.abs(plain.slip)) < 1.3


@pytest.mark.parametrize(
    "form", ["order", "semicolon", "decimal comma", "blank", "gz", "npz", "npz.gz", "parquet", "map", "folder"]
)
def test_every_form_gives_the_same_motion(
    form: str, recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path
) -> None:
    robot, rows = recorded
    path, columns = (
        tmp_path / f"log.{'csv' if form in ('order', 'semicolon', 'decimal comma', 'blank', 'map') else form}",
        None,
    )
    if form == "order":
        path.write_text(text(rows))
    elif form == "semicolon":
        path.write_text(text(rows, names(6), ";"))
    elif form == "decimal comma":
        path.write_text(text(rows, names(6), ";").replace(".", ","))
    elif form == "blank":
        path.write_text("# a comment\n" + text(rows, None, " "))
    elif form == "gz":
        path = tmp_path / "log.csv.gz"
        path.write_bytes(gzip.compress(text(rows, names(6)).encode()))
    elif form.startswith("npz"):
        data = io.BytesIO()
        np.savez(data, time=rows[:, 0], q=rows[:, 1:7], qd=rows[:, 7:13], torque=rows[:, 13:], note=np.array("hello"))
        path.write_bytes(gzip.compress(data.getvalue()) if form.endswith("gz") else data.getvalue())
    elif form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        table = arrow.table({**dict(zip(names(6), rows.T, strict=True)), "note": ["x"] * len(rows)})
        parquet.write_table(table, path)
    elif form == "map":
        swapped = rows[:, ::-1]
        path.write_text(text(swapped, [f"c{k}" for k in range(19)]))
        mapping = tmp_path / "map.toml"
        mapping.write_text(
            'time = "c18"\nposition = [17, 16, 15, 14, 13, 12]\n'
            f"velocity = {[f'c{k}' for k in range(11, 5, -1)]}\ntorque = [5, 4, 3, 2, 1, 0]\n"
        )
        columns = read_map(mapping)
    else:
        path = tmp_path / "folder"
        path.mkdir()
        for name, values in (("t", rows[:, :1]), ("q", rows[:, 1:7]), ("v", rows[:, 7:13]), ("u", rows[:, 13:])):
            (path / f"{name}.txt").write_text("\n".join(f"{value:.17g}" for value in values.ravel()) + "\n")
        files = {"time": "t.txt", "position": "q.txt", "velocity": "v.txt", "torque": "u.txt"}
        columns = Columns(files=files)
    motion, log = load(path, robot, columns=columns)
    assert log.dropped.total == 0
    for name in ("q", "qd", "qdd", "torque", "slip"):
        assert np.allclose(getattr(motion, name), getattr(plain, name), atol=1e-9), name


def test_current_becomes_torque_by_the_drive_gains(
    recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path
) -> None:
    robot, rows = recorded
    gains = np.array([10.0, 11.0, 12.0, 5.0, 5.5, 6.0])
    currents = rows.copy()
    currents[:, 13:] /= gains
    path = tmp_path / "log.csv"
    path.write_text(text(currents))
    assert np.allclose(load(path, robot, drive_gains=gains)[0].torque, plain.torque, atol=1e-9)
    path.write_text(text(currents, [name.replace("tau", "current") for name in names(6)]))
    assert np.allclose(load(path, robot, drive_gains=gains)[0].torque, plain.torque, atol=1e-9)
    with pytest.raises(RetorqueError, match="--drive-gains"):
        load(path, robot)
    with pytest.raises(RetorqueError, match="6 drive gains"):
        Log((path,), robot, drive_gains=np.ones(3))
    path.write_text(text(rows, names(6)))
    with pytest.raises(RetorqueError, match="leave --drive-gains out"):
        load(path, robot, drive_gains=gains)


def test_without_velocities_positions_are_differentiated(
    recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path
) -> None:
    robot, rows = recorded
    path = tmp_path / "log.csv"
    kept = [k for k, name in enumerate(names(6)) if not name.startswith("qd")]
    path.write_text(text(rows[:, kept], [names(6)[k] for k in kept]))
    motion, _ = load(path, robot)
    inside = slice(10, -10)
    assert np.max(np.abs(motion.qd[inside] - plain.qd[inside])) < 0.05


def test_what_is_wrong_is_dropped_and_counted(
    recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path
) -> None:
    robot, rows = recorded
    lines = text(rows, names(6)).splitlines()
    lines[51] = lines[51][:40]  # cut short
    lines[101] = lines[101].replace(lines[101].split(",")[3], "oops")
    lines[151] = ",".join(["100.75", *["1e180"] * 18])  # impossible
    jump = rows[200].copy()
    jump[1:7] += 1.2
    lines[201] = ",".join(map(repr, jump.tolist()))
    back = rows[300].copy()
    back[0] -= 0.2
    lines[301] = ",".join(map(repr, back.tolist()))
    lines.insert(402, lines[401])  # twice the same time
    wild = rows[500].copy()
    wild[0] += 1e6
    lines[502] = ",".join(map(repr, wild.tolist()))
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    motion, log = load(path, robot)
    assert log.dropped.counts == {
        "rows with missing or extra columns": 1,
        "rows with fields that are not numbers": 1,
        "rows with impossible values": 1,
        "rows that jump further than the joints can move": 1,
        "rows whose time runs backwards": 1,
        "rows with a repeated time": 1,
        "rows with a time far from their neighbours'": 1,
    }
    assert log.dropped.pieces == 1 and "7 of 801 rows left out" in log.dropped.words()
    assert len(motion) >= len(plain) - 2
    for k in range(6):
        expected = np.interp(motion.time, plain.time, plain.q[:, k])
        assert np.max(np.abs(motion.q[:, k] - expected)[5:-5]) < 0.02


def test_a_compressed_log_that_ends_early_says_so(recorded: tuple[Robot, np.ndarray], tmp_path: Path) -> None:
    robot, rows = recorded
    path = tmp_path / "log.csv.gz"
    whole = gzip.compress(text(rows, names(6)).encode())
    path.write_bytes(whole[: len(whole) // 2])
    _, log = load(path, robot)
    assert 300 < log.dropped.rows < 500 and "ends within its compressed data" in log.dropped.words()
    path.write_bytes(whole)
    assert not load(path, robot)[1].dropped.notes


def test_missing_velocities_are_said(recorded: tuple[Robot, np.ndarray], tmp_path: Path) -> None:
    robot, rows = recorded
    path = tmp_path / "log.csv"
    path.write_text(text(np.delete(rows, 9, axis=1), [name for name in names(6) if name != "qd3"]))
    _, log = load(path, robot)
    assert "positions are differentiated" in log.dropped.words()


def test_files_of_a_folder_stay_side_by_side(recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path) -> None:
    robot, rows = recorded
    lines = {
        "q": text(rows[:, 1:7]).splitlines(),
        "u": text(rows[:, 13:]).splitlines(),
        "t": text(rows[:, :1]).splitlines(),
    }
    lines["q"][100] = lines["q"][100][:30]  # cut short: the rows after it must not move up
    del lines["u"][-20:]
    for name, content in lines.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(content) + "\n")
    columns = Columns(files={"time": "t.txt", "position": "q.txt", "torque": "u.txt"})
    motion, log = load(tmp_path, robot, columns=columns)
    assert log.dropped.counts == {"rows with fields that are not numbers": 1, "samples that not every file has": 20}
    assert log.dropped.rows == len(rows)
    inside = slice(10, -10)
    for k in range(6):
        expected = np.interp(motion.time[inside], plain.time, plain.torque[:, k])
        assert np.max(np.abs(motion.torque[inside, k] - expected)) < 0.05 * np.ptp(plain.torque[:, k])


def test_a_gap_cuts_the_log_and_jitter_does_not(
    recorded: tuple[Robot, np.ndarray], plain: Motion, tmp_path: Path
) -> None:
    robot, rows = recorded
    rng = np.random.default_rng(0)
    path = tmp_path / "log.csv"
    path.write_text(text(np.delete(rows, slice(300, 400), axis=0), names(6)))
    motion, log = load(path, robot)
    assert log.dropped.pieces == 2 and np.max(np.diff(motion.time)) > 0.4
    jitter = rows.copy()
    time = rows[:, 0] + rng.uniform(-0.4, 0.4, len(rows)) / RATE
    for k in range(1, 19):  # each row is what the robot really did at its own time
        jitter[:, k] = np.interp(time, rows[:, 0], rows[:, k])
    jitter[:, 0] = time
    path.write_text(text(jitter, names(6)))
    motion, log = load(path, robot)
    assert log.dropped.total == 0 and log.dropped.pieces == 1
    assert abs(len(motion) - len(plain)) <= 2


def test_rows_are_counted_from_zero_without_the_end(recorded: tuple[Robot, np.ndarray], tmp_path: Path) -> None:
    robot, rows = recorded
    path = tmp_path / "log.csv"
    path.write_text(text(rows, names(6)))
    _, log = load(path, robot, rows=slice(100, 400))
    assert log.dropped.rows == 300
    first = next(log.raw(path))
    assert np.isclose(first[1][0], rows[100, 0]) and np.isclose(first[1][-1], rows[399, 0])


def test_windows_do_not_show(
    recorded: tuple[Robot, np.ndarray], simulate: Simulate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = simulate("z1", seconds=30.0, rate=RATE)
    m = truth.motion
    path = tmp_path / "log.npz"
    np.savez(path, time=m.time, q=m.q, qd=m.qd, tau=m.torque)
    whole, _ = load(path, truth.robot)
    monkeypatch.setattr(window_module, "WINDOW", 700)
    monkeypatch.setattr(table_module, "BLOCK", 500)
    log = Log((path,), truth.robot)
    pieces = list(log.chunks())
    assert len(pieces) > 3 and max(len(piece) for piece in pieces) < 3 * 700
    assert all(piece.slip is not None and piece.slip.base is None for piece in pieces)  # no view of a whole window
    joined = np.concatenate([piece.time for piece in pieces])
    assert np.allclose(joined, whole.time, atol=1e-9)
    for name, size in (("q", 1e-3), ("qdd", 0.05), ("torque", 0.05), ("slip", 0.03)):
        parts = np.concatenate([getattr(piece, name) for piece in pieces])
        assert np.max(np.abs(parts - getattr(whole, name))) < size, name


def test_refusals_say_what_to_do(recorded: tuple[Robot, np.ndarray], tmp_path: Path) -> None:
    robot, rows = recorded
    path = tmp_path / "log.csv"

    def refuse(pattern: str, **options: Any) -> None:
        with pytest.raises(RetorqueError, match=pattern):
            load(path, options.pop("robot", robot), **options)

    refuse("there is no log")
    path.write_text("")
    refuse("holds no rows")
    path.write_text(",".join(names(6)) + "\n")
    refuse("one line without numbers and no rows")
    path.write_bytes(np.random.default_rng(0).bytes(5000))
    refuse("is not text")
    path.write_text(text(rows[:, 1:], names(6)[1:]))
    refuse("no column for time.*rate")
    path.write_text(text(rows[:, :13], names(6)[:13]))
    refuse("no columns for torque or current")
    path.write_text(text(rows, names(6)))
    refuse("6 'q' columns and robot|no columns for position", robot=Robot.load("panda"))
    refuse("did you mean 'q1'", columns=Columns(time="time", position=("q11", *names(6)[2:7]), torque="tau{}"))
    refuse("no column number 40", columns=Columns(time=0, position="40:46", torque="tau{}"))
    refuse("names 5 columns", columns=Columns(time=0, position="1:6", torque="tau{}"))
    refuse("either 'torque' or 'current'", columns=Columns(time=0, position="1:7"))
    path.write_text(text(rows))
    refuse("another robot", robot=Robot.load("panda"))
    path.write_text(text(rows * np.array([1.0] + [57.3] * 12 + [1.0] * 6)))
    refuse("degrees = true")
    degrees = rows.copy()
    degrees[:, 7:13] *= 57.3
    path.write_text(text(degrees * np.array([1.0] * 7 + [0.1] * 6 + [1.0] * 6)))
    refuse("not the rate of change")
    path.write_text(text(np.where(np.arange(len(rows))[:, None] % 3 > 0, np.nan, rows)))
    refuse("more than half")
    (tmp_path / "log.csv.gz").write_bytes(np.random.default_rng(0).bytes(500))
    with pytest.raises(RetorqueError, match="not an intact gzip"):
        load(tmp_path / "log.csv.gz", robot)
    np.savez(tmp_path / "log.npz", time=rows[:, 0], q=np.asfortranarray(rows[:, 1:7]), tau=rows[:, 13:])
    with pytest.raises(RetorqueError, match="ascontiguousarray"):
        load(tmp_path / "log.npz", robot)
    (tmp_path / "q.txt").write_text("0.1\n0.2 0.3\n" + "0.1\n" * 600)
    (tmp_path / "u.txt").write_text("0.1\n" * 600)
    folder = Columns(files={"position": "q.txt", "torque": "u.txt"}, rate=100.0)
    with pytest.raises(RetorqueError, match=r"line 2 of 'q\.txt'"):
        load(tmp_path, robot, columns=folder)
    (tmp_path / "bad.toml").write_text("positon = [1]")
    with pytest.raises(RetorqueError, match="did you mean 'position'"):
        read_map(tmp_path / "bad.toml")
    with pytest.raises(RetorqueError, match="cut-off"):
        Filter(cutoff=0.0)


@pytest.mark.parametrize("flag", [0x01, 0x40])
def test_an_archive_that_claims_encryption_is_refused(
    flag: int, recorded: tuple[Robot, np.ndarray], tmp_path: Path
) -> None:
    robot, rows = recorded
    path = tmp_path / "log.npz"
    np.savez(path, time=rows[:, 0], q=rows[:, 1:7], qd=rows[:, 7:13], tau=rows[:, 13:])
    content = bytearray(path.read_bytes())
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flags of each array, beside it and in the index
        at = content.find(mark)
        while at >= 0:
            content[at + place] |= flag
            at = content.find(mark, at + 4)
    path.write_bytes(bytes(content))
    with pytest.raises(RetorqueError, match="encrypt"):
        load(path, robot)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbage_never_crashes_the_reader(
    data: st.DataObject, recorded: tuple[Robot, np.ndarray], tmp_path: Path
) -> None:
    robot, rows = recorded
    form = data.draw(st.sampled_from(["csv", "csv.gz", "npz", "parquet"]))
    plain_text = text(rows[:150], names(6) if data.draw(st.booleans()) else None).encode()
    if form == "csv":
        content = plain_text
    elif form == "csv.gz":
        content = gzip.compress(plain_text)
    elif form == "npz":
        buffer = io.BytesIO()
        np.savez(buffer, time=rows[:150, 0], q=rows[:150, 1:7], qd=rows[:150, 7:13], tau=rows[:150, 13:])
        content = buffer.getvalue()
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        buffer = io.BytesIO()
        parquet.write_table(arrow.table(dict(zip(names(6), rows[:150].T, strict=True))), buffer)
        content = buffer.getvalue()
    content = content[: data.draw(st.just(len(content)) | st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content)))
        content = content[:place] + data.draw(st.binary(max_size=40)) + content[place + data.draw(st.integers(0, 30)) :]
    path = tmp_path / f"log.{form}"
    path.write_bytes(content)
    try:
        motion, log = load(path, robot)
    except RetorqueError as error:
        assert str(error)
        return
    assert all(np.all(np.isfinite(x)) for x in (motion.q, motion.qd, motion.qdd, motion.torque, motion.time))
    assert log.dropped.total <= log.dropped.rows


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=400))
def test_random_bytes_are_no_log(content: bytes, recorded: tuple[Robot, np.ndarray], tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(content)
    with pytest.raises(RetorqueError):
        load(path, recorded[0])
