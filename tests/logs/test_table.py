"""Files of columns: the same numbers whatever the dialect, every row accounted for, damage told in a sentence."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retorque.logs import table as table_module
from retorque.logs.log import Log
from retorque.logs.table import Table, open_table
from retorque.work.errors import RetorqueError

QUICK = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NAMES = ("time", "q1", "tau1")


def read(path: Path) -> tuple[Table, np.ndarray, np.ndarray]:
    """A table, its row numbers and its values."""
    table = open_table(path)
    blocks = list(table.blocks())
    return table, np.concatenate([rows for rows, _ in blocks]), np.concatenate([values for _, values in blocks])


def text(rows: np.ndarray, delimiter: str = ",", point: str = ".", head: tuple[str, ...] = NAMES) -> str:
    lines = [delimiter.join(head)] if head else []
    lines += [delimiter.join(repr(float(value)).replace(".", point) for value in row) for row in rows]
    return "\n".join(lines) + "\n"


NUMBERS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 6))


@QUICK
@given(
    values=st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=2, max_size=12),
    dialect=st.sampled_from([(",", "."), (";", "."), (";", ","), ("\t", "."), ("\t", ","), (" ", "."), ("   ", ".")]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    headed=st.booleans(),
    packed=st.booleans(),
    comment=st.booleans(),
)
def test_a_dialect_changes_no_number(
    values: list[tuple[float, ...]],
    dialect: tuple[str, str],
    encoding: str,
    newline: str,
    headed: bool,
    packed: bool,
    comment: bool,
    tmp_path: Path,
) -> None:
    rows = np.array(values)
    content = ("# a remark, with commas; and more\n" if comment else "") + text(rows, *dialect, NAMES if headed else ())
    data = content.replace("\n", newline).encode(encoding)
    path = tmp_path / ("log.csv.gz" if packed else "log.csv")
    path.write_bytes(gzip.compress(data) if packed else data)
    table, numbers, found = read(path)
    assert table.names == (NAMES if headed else None) and table.width == 3
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(numbers, np.arange(len(rows)))


def test_rows_keep_their_numbers_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "BLOCK", 7)
    lines = text(np.arange(150.0).reshape(50, 3)).splitlines()
    lines[11] = "1.0,2.0"
    lines[12] += ",9.0"
    lines[31] = "90.0,x,92.0"
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines))
    table = open_table(path)
    lost, seen = [], []
    for rows, values in table.blocks():
        lost += [int(row) for rows in table.bad.values() for row in rows]
        seen += rows.tolist()
        assert np.array_equal(values[:, 0], 3.0 * rows)
    assert lost == [10, 11] and seen == [row for row in range(50) if row not in lost]
    again = [(rows.tolist(), values.tobytes()) for rows, values in table.blocks()]
    assert again == [(rows.tolist(), values.tobytes()) for rows, values in open_table(path).blocks()]


def test_a_file_that_changes_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for scale in (1.0, 2.0, 30.0):
        path.write_text(text(scale * np.arange(30.0).reshape(10, 3)))
        assert read(path)[2][-1, -1] == scale * 29.0


@pytest.mark.parametrize("encoding", ("utf-8", "utf-16"))
@pytest.mark.parametrize("kept", (0.3, 0.6, 0.999))
def test_a_compressed_text_is_read_up_to_its_broken_end(encoding: str, kept: float, swing, tmp_path: Path) -> None:
    whole = gzip.compress(text(swing.rows, head=tuple(swing.names)).encode(encoding))
    path = tmp_path / "log.csv.gz"
    path.write_bytes(whole[: int(kept * len(whole))])
    log = Log((path,), swing.robot)
    log.load()
    assert 0.8 * kept * 600 < log.dropped.rows <= 600
    assert "ends within its compressed data" in log.dropped.words()


def test_words_and_odd_numbers_are_no_numbers(tmp_path: Path) -> None:
    odd = ("1_0", "0x10", "--", "", "1.2.3", "ten")
    path = tmp_path / "log.csv"
    path.write_text("time,q1,tau1\n1.0,2.0,3.0\n" + "".join(f"1.0,{word},3.0\n" for word in odd))
    _, _, values = read(path)
    assert np.all(np.isnan(values[1:, 1])) and np.all(values[:, [0, 2]] == [1.0, 3.0])
    path.write_text("time,q1,tau1\n1e3,+2.5E-1,-.5\nnan,inf,-Infinity\n")
    np.testing.assert_array_equal(read(path)[2], [[1000.0, 0.25, -0.5], [np.nan, np.inf, -np.inf]])


@pytest.mark.parametrize("kind", ("int8", "int64", "uint16", "float16", "float32", "float64"))
def test_parquet_and_npz_hold_any_kind_of_number(kind: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = np.arange(60).reshape(20, 3).astype(kind)
    parquet.write_table(arrow.table({**dict(zip(NAMES, rows.T, strict=True)), "who": ["x"] * 20}), tmp_path / "a.pq")
    np.savez(tmp_path / "a.npz", **dict(zip(NAMES, rows.T.copy(), strict=True)), who=np.array(["x"] * 20))
    for path in (tmp_path / "a.pq", tmp_path / "a.npz"):
        table, _, values = read(path)
        assert table.names == NAMES and np.array_equal(values, rows.astype(float))


def test_what_a_parquet_row_lacks_is_not_a_number(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"time": [0.0, None, 2.0], "q1": [1, 2, None], "flag": [True, False, None]}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    table, _, values = read(tmp_path / "a.parquet")
    assert table.names == ("time", "q1")
    np.testing.assert_array_equal(values, [[0.0, 1.0], [np.nan, 2.0], [2.0, np.nan]])
    (tmp_path / "b.parquet.gz").write_bytes(gzip.compress((tmp_path / "a.parquet").read_bytes()))
    np.testing.assert_array_equal(read(tmp_path / "b.parquet.gz")[2], values)


def test_samples_that_not_every_array_has_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_module, "BLOCK", 8)
    np.savez(tmp_path / "a.npz", time=np.arange(30.0), q=np.zeros((25, 2)), note=np.array(3.0), one=np.ones(1))
    table = open_table(tmp_path / "a.npz")
    assert table.names == ("time", "q1", "q2")
    lost = [row for _ in table.blocks() for rows in table.bad.values() for row in rows.tolist()]
    assert lost == [25, 26, 27, 28, 29]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    (
        ("a.csv", b"", "holds no rows"),
        ("a.csv", b"# only\n# remarks\n", "holds no rows"),
        ("a.csv", b"time,q1\n", "no rows after it"),
        ("a.npz", b"PK\x05\x06" + bytes(18), "no arrays of samples"),
        ("a.npz", b"", "cannot be read as .npz"),
        ("a.npz.gz", gzip.compress(b"none", mtime=0), "cannot be read as .npz"),
        ("a.parquet", b"PAR1", "not a Parquet file"),
        ("a.mcap", b"\x89MCAP0\r\n", r"no MCAP file \(EndOfFile\)"),
        ("a.mcap", b"nothing like it", "no MCAP file"),
        ("a.h5", b"\x89HDF\r\n\x1a\n", "not an intact HDF5 file"),
        ("a.db3", b"SQLite format 3\x00", "cannot be read as a ROS 2 bag"),
    ),
)
def test_files_without_samples_are_refused(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    for module in ("h5py", "mcap", "rosbags", "pyarrow"):
        pytest.importorskip(module)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RetorqueError, match=says):
        open_table(tmp_path / name)


def test_folders_and_nothing_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="there is no log"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(RetorqueError, match="is a folder"):
        open_table(tmp_path)


@QUICK
@given(cut=st.integers(1, 4000), flips=st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 255)), max_size=3))
def test_a_damaged_archive_never_crashes(cut: int, flips: list[tuple[int, int]], tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, time=np.arange(90.0), q=np.random.default_rng(0).standard_normal((90, 4)))
    data = bytearray(buffer.getvalue())
    for at, bits in flips:
        data[at % len(data)] ^= bits
    (tmp_path / "a.npz").write_bytes(data[: max(1, cut)])
    try:
        _, rows, values = read(tmp_path / "a.npz")
    except RetorqueError as error:
        assert "\n" not in str(error)
        return
    assert len(rows) == len(values)


def test_hdf5_groups_give_columns_in_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    h5py = pytest.importorskip("h5py")
    monkeypatch.setattr("retorque.logs.formats.hdf5_table.BLOCK", 13)
    rows = np.random.default_rng(0).standard_normal((40, 4))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["run/arm/q"] = rows[:, 1:3]
        file["run/time"] = rows[:, 0].astype(np.float32)
        file["tau1"] = np.arange(40, dtype=np.int16)
        file["words"] = ["a"] * 40
        file["cube"] = np.zeros((40, 2, 2))
        file["short"] = np.zeros(7)
    table, numbers, values = read(tmp_path / "a.h5")
    assert table.names is not None and set(table.names) == {"q1", "q2", "time", "tau1"}
    at = {name: k for k, name in enumerate(table.names)}
    np.testing.assert_array_equal(values[:, [at["q1"], at["q2"]]], rows[:, 1:3])
    np.testing.assert_array_equal(values[:, at["tau1"]], numbers)
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["scalar"] = 3.0
    with pytest.raises(RetorqueError, match="no arrays of samples"):
        open_table(tmp_path / "b.h5")
