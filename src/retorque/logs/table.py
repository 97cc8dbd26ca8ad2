"""Reading CSV, NPZ, Parquet and MCAP files as blocks of numbers, with a count of every row that is not numbers."""

from __future__ import annotations

import gzip
import io
import itertools
import re
import struct
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

BLOCK = 16_384
"""Rows read at a time."""
_LONGEST_LINE = 1 << 16
# what reading an archive raises on damage; a flipped bit can also claim encryption (RuntimeError) or odd sizes
_DAMAGE = (OSError, EOFError, zipfile.BadZipFile, zlib.error, struct.error, RuntimeError, OverflowError)
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(nan|inf|infinity)$", re.IGNORECASE)


@dataclass
class Table:
    """A file of columns that can be read block by block, as often as one likes."""

    path: Path
    names: tuple[str, ...] | None
    """The header, or None where the file has none."""
    width: int
    """Columns of a whole row."""
    bad: dict[str, Array] = field(default_factory=dict)
    """Rows of the last block that could not be used, by reason."""
    cut: bool = False
    """Whether the last whole reading met the broken end of a compressed file."""

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        """Row numbers (rows,) and values (rows, width); NaN where a field is not a number."""
        raise NotImplementedError

    def check(self, robot: Robot) -> None:
        """Refuse a table that says itself that it is of another robot."""


def open_table(path: str | Path) -> Table:
    """The table in a file, by its name's ending."""
    file = Path(path)
    if not file.exists():
        raise RetorqueError(f"there is no log '{file}'")
    if file.is_dir() and (file / "metadata.yaml").is_file():
        from retorque.logs.formats.ros_bag import RosTable

        return RosTable.open(file)
    if file.is_dir():
        raise RetorqueError(f"'{file}' is a folder; name a log file, or give --columns with a [files] table")
    suffixes = [part.lower() for part in file.suffixes]
    kind = suffixes[-2] if suffixes and suffixes[-1] == ".gz" and len(suffixes) > 1 else (suffixes or [""])[-1]
    try:
        if kind == ".npz":
            return NpzTable.open(file)
        if kind in (".h5", ".hdf5", ".he5"):
            from retorque.logs.formats.hdf5_table import Hdf5Table

            return Hdf5Table.open(file)
        if kind == ".db3":
            from retorque.logs.formats.ros_bag import RosTable

            return RosTable.open(file)
        if kind in (".parquet", ".pq"):
            return ParquetTable.open(file)
        if kind == ".mcap":
            return _mcap(file)
        return TextTable.open(file)
    except (*_DAMAGE, UnicodeError) as error:
        raise RetorqueError(f"'{file}' cannot be read as {kind or 'text'}: {error}") from error


def _mcap(path: Path) -> Table:
    """A recording of ours, or anyone's joint states."""
    from retorque.logs.formats.mcap_log import RecordingTable
    from retorque.logs.formats.ros_bag import RosTable

    try:
        return RecordingTable.open(path)
    except RetorqueError as error:
        try:
            return RosTable.open(path)
        except RetorqueError:
            raise error from None


def _stream(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return open(path, "rb")


def _lines(path: Path, broken: Callable[[], None]) -> Iterator[str]:
    """Text lines, whatever the bytes; a broken end of a compressed file ends the lines, and `broken` is told."""
    with _stream(path) as file:
        wide = _encoding(path)
        if wide:
            text = io.TextIOWrapper(cast("Any", file), encoding=wide, errors="replace")
            try:
                for wide_line in text:
                    yield wide_line.strip("\ufeff\r\n\x00 \t")
            except (OSError, EOFError, zlib.error):
                broken()
            return
        while True:
            try:
                line = file.readline(_LONGEST_LINE)
            except (OSError, EOFError, zlib.error):
                broken()
                return
            if not line:
                return
            yield line.decode("utf-8", errors="replace").strip("\ufeff\r\n\x00 \t")


def _encoding(path: Path) -> str:
    """UTF-16, where a file begins with its mark or every other byte is zero, as spreadsheets and drives write it."""
    try:
        with _stream(path) as file:
            head = file.read(64)
    except _DAMAGE:
        return ""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    if len(head) >= 16 and not any(head[1::2]) and all(head[0::2]):
        return "utf-16-le"
    return ""


def _odd(lines: list[str]) -> float:
    """Part of the characters that no text has."""
    text = "".join(lines)
    return sum(mark == "\ufffd" or (mark < " " and mark != "\t") for mark in text) / len(text)


def _refuse_double_commas(path: Path, sample: list[str], delimiter: str | None) -> None:
    """Refuse commas that part columns and decimals alike: nothing says which is which."""
    if delimiter != "," or len(sample) < 3:
        return
    body = [_split(line, ",") for line in sample[1:]]
    whole = all(re.fullmatch(r"[+-]?\d+", part) for row in body for part in row if part)
    named = not any(_NUMBER.match(part) for part in _split(sample[0], ","))
    more = named and len(body[0]) > 1.5 * len(_split(sample[0], ","))
    long = sum(len(part) > 2 and part[0] == "0" for row in body for part in row) > len(body)
    if whole and (more or long):
        raise RetorqueError(
            f"'{path}' seems to have commas both between columns and in numbers (0,01); export it with semicolons or "
            "tabs between columns, or with decimal points"
        )


def _split(line: str, delimiter: str | None) -> list[str]:
    return [part.strip().strip('"') for part in line.split(delimiter)]


REMEMBERED = 4
"""Blocks of text up to which a file is remembered once it has been read: parsing is most of the work."""
_LAST: dict[str, Any] = {}


def _stamp(path: Path) -> tuple[str, int, int]:
    """What tells a file from another, and from itself after a change."""
    about = path.stat()
    return str(path.resolve()), about.st_mtime_ns, about.st_size


class TextTable(Table):
    """Comma, semicolon, tab or blank separated text, with or without a header line; # starts a comment."""

    delimiter: str | None = None
    skip: int = 0
    decimal_comma: bool = False

    @classmethod
    def open(cls, path: Path) -> TextTable:
        """Find the delimiter, the header and the number of columns from the first lines."""
        damage: list[bool] = []
        lines = _lines(path, lambda: damage.append(True))
        first = [(number, line) for number, line in enumerate(itertools.islice(lines, 200))]
        kept = [(number, line) for number, line in first if line and not line.startswith("#")]
        if not kept:
            raise RetorqueError(f"'{path}' {'is not an intact gzip file' if damage else 'holds no rows'}")
        sample = [line for _, line in kept]
        if _odd(sample) > 0.1:
            raise RetorqueError(
                f"'{path}' is not text; a log's ending says what it is: .csv, .npz, .parquet or .mcap (and .gz)"
            )
        second = sample[min(1, len(sample) - 1)]
        # a comma beside a semicolon or a tab is a decimal comma
        delimiter = next((mark for mark in (";", "\t", ",") if mark in second), None)
        head = _split(sample[0], delimiter)
        _refuse_double_commas(path, sample, delimiter)
        # a header has no numbers at all; a corrupt first row of numbers usually keeps some
        decimal_comma = delimiter != "," and "," in second
        named = not any(_NUMBER.match(part.replace(",", ".") if decimal_comma else part) for part in head)
        if named and len(sample) == 1:
            raise RetorqueError(f"'{path}' holds one line without numbers and no rows after it")
        body = sample[1:] if named else sample
        width = len(head) if named else Counter(len(_split(line, delimiter)) for line in body).most_common(1)[0][0]
        table = cls(path, tuple(head) if named else None, width)
        table.delimiter, table.decimal_comma = delimiter, decimal_comma
        table.skip = kept[0][0] + 1 if named else 0
        return table

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        key, last = _stamp(self.path), dict(_LAST)
        if last.get("key") != key:
            _LAST.clear()
            kept: list[tuple[Array, Array, dict[str, Array]]] = []
            for number, (rows, values) in enumerate(self._read()):
                if number < REMEMBERED:
                    kept.append((rows, values, self.bad))
                else:
                    kept.clear()
                yield rows, values
            if kept:
                _LAST.update(key=key, blocks=kept, cut=self.cut)
            return
        for rows, values, bad in last["blocks"]:
            self.bad = bad
            yield rows, values
        self.cut = last["cut"]

    def _read(self) -> Iterator[tuple[Array, Array]]:
        self.cut = False
        lines = itertools.islice(_lines(self.path, self._broken), self.skip, None)
        wanted = (line for line in lines if line and not line.startswith("#"))
        number = 0
        while chunk := list(itertools.islice(wanted, BLOCK)):
            values, whole = self._parse(chunk)
            self.bad = {"rows with missing or extra columns": number + np.flatnonzero(~whole)}
            yield number + np.flatnonzero(whole), values
            number += len(chunk)

    def _broken(self) -> None:
        self.cut = True

    def _parse(self, lines: list[str]) -> tuple[Array, Array]:
        """Numbers of the rows that have every column, and which rows those are."""
        if self.decimal_comma:
            lines = [line.replace(",", ".") for line in lines]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                values = np.loadtxt(lines, delimiter=self.delimiter, ndmin=2, comments=None)
            if values.shape == (len(lines), self.width):
                return values, np.ones(len(lines), dtype=bool)
        except (ValueError, UserWarning):
            pass
        parts = [_split(line, self.delimiter) for line in lines]
        whole = np.array([len(row) == self.width for row in parts], dtype=bool)
        rows = [[_number(text) for text in row] for row, good in zip(parts, whole, strict=True) if good]
        return np.array(rows, dtype=float).reshape(-1, self.width), whole


def _number(text: str) -> float:
    try:
        return float(text) if "_" not in text else np.nan
    except ValueError:
        return np.nan


class NpzTable(Table):
    """Arrays of one or two dimensions, side by side; read as a stream, so their size does not matter."""

    @classmethod
    def open(cls, path: Path) -> NpzTable:
        """Names "q" of shape (samples, n) become columns q1..qn."""
        names: list[str] = []
        with _seekable(path) as file, zipfile.ZipFile(file) as archive:
            for member, (_, shape, _) in _members(archive, path):
                stem = member.removesuffix(".npy")
                names += [stem] if len(shape) == 1 else [f"{stem}{k + 1}" for k in range(shape[1])]
        if not names:
            raise RetorqueError(f"'{path}' holds no arrays of samples")
        return cls(path, tuple(names), len(names))

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        with _seekable(self.path) as file, zipfile.ZipFile(file) as archive:
            readers = [_Reader(archive, member, *header) for member, header in _members(archive, self.path)]
            rows = min(reader.rows for reader in readers)
            self.bad = {"samples that not every array has": np.arange(rows, max(reader.rows for reader in readers))}
            for start in range(0, rows, BLOCK):
                count = min(BLOCK, rows - start)
                try:
                    columns = [reader.take(count) for reader in readers]
                except (*_DAMAGE, ValueError) as error:
                    raise RetorqueError(f"'{self.path}' is damaged or cut short: {error}") from error
                yield np.arange(start, start + count), np.concatenate(columns, axis=1)
                self.bad = {}


class _Reader:
    """Reads one array of an archive row by row."""

    def __init__(self, archive: zipfile.ZipFile, member: str, offset: int, shape: tuple[int, ...], dtype: np.dtype):
        self.stream = archive.open(member)
        self.stream.read(offset)
        self.rows, self.width, self.dtype = shape[0], int(np.prod(shape[1:], dtype=int)), dtype

    def take(self, count: int) -> Array:
        """The next rows (count, width)."""
        data = self.stream.read(count * self.width * self.dtype.itemsize)
        return np.frombuffer(data, self.dtype).reshape(count, self.width).astype(float)


def _seekable(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        with gzip.open(path, "rb") as file:
            return io.BytesIO(file.read())
    return open(path, "rb")


def _members(archive: zipfile.ZipFile, path: Path) -> Iterator[tuple[str, tuple[int, tuple[int, ...], np.dtype]]]:
    """Every array with its header's length, shape and type."""
    for member in archive.namelist():
        with archive.open(member) as stream:
            head = io.BytesIO(stream.read(4096))
        try:
            version = np.lib.format.read_magic(head)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = read(head)
        except Exception as error:
            raise RetorqueError(f"'{path}' holds '{member}', which is not a plain array: {error}") from error
        if dtype.kind not in "fiu" or len(shape) not in (1, 2):
            continue  # names, settings and the like
        if fortran and len(shape) == 2 and min(shape) > 1:
            raise RetorqueError(
                f"'{member}' in '{path}' is stored column by column and cannot be read as a stream; "
                "save it with numpy.ascontiguousarray"
            )
        if shape[0] > 1:
            yield member, (head.tell(), shape, dtype)


class ParquetTable(Table):
    """The number columns of a Parquet file."""

    @classmethod
    def open(cls, path: Path) -> ParquetTable:
        """Read the schema only."""
        names = [field.name for field in _parquet(path).schema_arrow if _is_number(field)]
        if not names:
            raise RetorqueError(f"'{path}' has no number columns")
        return cls(path, tuple(names), len(names))

    def blocks(self) -> Iterator[tuple[Array, Array]]:
        start = 0
        try:
            for batch in _parquet(self.path).iter_batches(batch_size=BLOCK, columns=list(self.names or ())):
                columns = [column.cast("double", safe=False).to_numpy(zero_copy_only=False) for column in batch.columns]
                yield np.arange(start, start + len(batch)), np.stack(columns, axis=1)
                start += len(batch)
        except (OSError, ValueError) as error:  # pyarrow's own errors are subclasses of these
            raise RetorqueError(f"'{self.path}' is damaged: {error}") from error


def _is_number(field: object) -> bool:
    return str(getattr(field, "type", "")) in {
        "double",
        "float",
        "halffloat",
        *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)),
    }


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise RetorqueError("Parquet logs need pyarrow; run: pip install 'retorque[identify]'") from error
    try:
        return parquet.ParquetFile(_seekable(path) if path.suffix.lower() == ".gz" else path)
    except (OSError, ValueError) as error:
        raise RetorqueError(f"'{path}' is not a Parquet file: {error}") from error
