"""HDF5 files as tables: names from datasets, the longest ones side by side, and one sentence where there are none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.logs.table import BLOCK, open_table
from retorque.work.errors import RetorqueError

h5py = pytest.importorskip("h5py", reason="HDF5 logs need the extra 'record'")
ROWS = 60
RNG = np.random.default_rng(0)


def write(path: Path, **arrays: np.ndarray) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name.replace("__", "/")] = values
    return path


def test_every_dataset_of_numbers_is_a_column_or_several(tmp_path: Path) -> None:
    time, q = np.arange(ROWS) / 100.0, RNG.normal(0.0, 1.0, (ROWS, 3))
    path = write(tmp_path / "log.h5", arm__q=q, arm__time=time, counts=np.arange(ROWS), words=np.array([b"x"] * ROWS))
    table = open_table(path)
    assert set(table.names or ()) == {"q1", "q2", "q3", "time", "counts"} and table.width == 5
    (rows, values), *more = list(table.blocks())
    assert not more and rows.tolist() == list(range(ROWS))
    by_name = dict(zip(table.names or (), values.T, strict=True))
    np.testing.assert_array_equal(by_name["time"], time)
    np.testing.assert_array_equal(np.stack([by_name[f"q{k + 1}"] for k in range(3)], axis=1), q)


def test_shorter_datasets_and_scalars_are_left_out(tmp_path: Path) -> None:
    path = write(
        tmp_path / "log.hdf5", q=np.zeros((ROWS, 2)), gains=np.ones(2), rate=np.array(5.0), cube=np.zeros((9, 2, 2))
    )
    assert open_table(path).names == ("q1", "q2")


def test_a_long_file_comes_in_blocks(tmp_path: Path) -> None:
    count = BLOCK + 7
    path = write(tmp_path / "long.h5", time=np.arange(count, dtype=float))
    blocks = list(open_table(path).blocks())
    assert [len(rows) for rows, _ in blocks] == [BLOCK, 7]
    np.testing.assert_array_equal(np.concatenate([values[:, 0] for _, values in blocks]), np.arange(count))


@pytest.mark.parametrize("content", [b"", b"not a file of that kind", b"\x89HDF\r\n\x1a\n" + bytes(40)])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.h5"
    path.write_bytes(content)
    with pytest.raises(RetorqueError, match=r"bad\.h5"):
        open_table(path)


def test_a_file_without_samples_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RetorqueError, match="no arrays of samples"):
        open_table(write(tmp_path / "empty.h5", about=np.array([b"nothing"])))
