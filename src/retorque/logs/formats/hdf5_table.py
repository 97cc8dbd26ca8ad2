"""HDF5 files as tables: every dataset of numbers with as many rows as the longest is one or several columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from retorque.logs.table import BLOCK, Table
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class Hdf5Table(Table):
    """Datasets of one or two dimensions, side by side; groups only give them longer names."""

    datasets: tuple[str, ...] = ()
    rows: int = 0

    @classmethod
    def open(cls, path: Path) -> Hdf5Table:
        """Read names and shapes only: "q" of shape (samples, n) becomes columns q1..qn."""
        shapes: dict[str, tuple[int, ...]] = {}

        def visit(name: str, item: Any) -> None:
            dtype: Any = getattr(item, "dtype", None)
            shape: tuple[int, ...] = getattr(item, "shape", ())
            if dtype is not None and dtype.kind in "fiu" and len(shape) in (1, 2) and shape[0] > 1:
                shapes[name] = shape

        with _file(path) as file:
            file.visititems(visit)
        if not shapes:
            raise RetorqueError(f"'{path}' holds no arrays of samples")
        rows = max(shape[0] for shape in shapes.values())
        kept = {name: shape for name, shape in shapes.items() if shape[0] == rows}
        names: list[str] = []
        for name, shape in kept.items():
            stem = name.rsplit("/", 1)[-1]
            names += [stem] if len(shape) == 1 else [f"{stem}{k + 1}" for k in range(shape[1])]
        table = cls(path, tuple(names), len(names))
        table.datasets, table.rows = tuple(kept), rows
        return table

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        self.bad = {}
        with _file(self.path) as file:
            for start in range(0, self.rows, BLOCK):
                stop = min(start + BLOCK, self.rows)
                columns = [np.asarray(file[name][start:stop], dtype=float) for name in self.datasets]
                wide = [column[:, None] if column.ndim == 1 else column for column in columns]
                yield np.arange(start, stop), np.concatenate(wide, axis=1)


def _file(path: Path) -> Any:
    try:
        import h5py
    except ModuleNotFoundError as error:
        raise RetorqueError("HDF5 logs need h5py; run: pip install 'retorque[record]'") from error
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise RetorqueError(f"'{path}' is not an intact HDF5 file: {error}") from error
