"""Memory that several processes see: a record that is swapped whole, and a queue of rows from one writer to one reader.

No lock anywhere: neither side ever waits for the other, and either may be killed at any time.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import zlib
from types import TracebackType

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

_HEAD = 64
"""Bytes before the first slot or row."""
_RECORD, _QUEUE = 0x52455430_31524543, 0x52455430_31524E47
"""First word of each kind of block; the digits are the layout's version."""
_SLOTS = 3
"""Versions kept: a reader has two further publications' time to copy one."""
_SLOT = struct.Struct("<QQQQ")
"""Version, length, checksum and once more the version, before each slot's bytes."""


class SharedBlock:
    """Zeroed bytes without a file: they go when the last process that uses them goes, however it ends.

    Other processes of this user open them by `path` while the one that made them lives; what is open stays open.

    Args:
        size: how many bytes; ignored where `path` is given.
        path: of a block that another process made.
    """

    def __init__(self, size: int = 0, path: str = ""):
        try:
            self._file = os.open(path, os.O_RDWR) if path else os.memfd_create("retorque")
            if not path:
                os.ftruncate(self._file, size)
            self.memory = mmap.mmap(self._file, os.fstat(self._file).st_size)
        except (OSError, ValueError) as error:
            raise RetorqueError(
                f"cannot share memory at '{path or 'a new place'}' ({error}); start both anew"
            ) from error
        self.path = path or f"/proc/{os.getpid()}/fd/{self._file}"

    def word(self, offset: int) -> int:
        """The 64-bit number at a byte."""
        return _WORD.unpack_from(self.memory, offset)[0]

    def set_word(self, offset: int, value: int) -> None:
        """Write a 64-bit number at a byte; aligned, so that no reader sees half of it."""
        _WORD.pack_into(self.memory, offset, value)

    def close(self) -> None:
        """Give the bytes back; arrays that still look at them keep them alive."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            with contextlib.suppress(BufferError):  # a view of a row is still held somewhere
                self.memory.close()

    def __enter__(self) -> SharedBlock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_WORD = struct.Struct("<Q")


class SharedRecord(SharedBlock):
    """The newest version of some bytes, published by one process and read by any: never half of one.

    Args:
        capacity: most bytes of a record.
        path: of one that another process made.
    """

    def __init__(self, capacity: int = 0, path: str = ""):
        super().__init__(_HEAD + _SLOTS * (_SLOT.size + capacity), path)
        if path:
            if self.word(0) != _RECORD:
                raise RetorqueError(f"'{path}' holds no shared record of this version; update both sides")
        else:
            self.set_word(16, capacity)
            self.set_word(0, _RECORD)
        self.capacity = self.word(16)

    @property
    def version(self) -> int:
        """Number of the newest one; 0: none yet."""
        return self.word(8)

    def publish(self, data: bytes) -> int:
        """Make this the newest version; its number."""
        if len(data) > self.capacity:
            raise RetorqueError(
                f"a record of {len(data)} bytes does not fit into {self.capacity}; share a larger block"
            )
        version = self.version + 1
        at = self._at(version)
        _SLOT.pack_into(self.memory, at, 0, len(data), zlib.crc32(data), version)
        self.memory[at + _SLOT.size : at + _SLOT.size + len(data)] = data
        self.set_word(at, version)
        self.set_word(8, version)
        return version

    def newest(self, after: int = 0) -> tuple[int, bytes] | None:
        """The newest version and its bytes, where it is newer than `after`; None also where it is being replaced."""
        version = self.version
        if version <= after:
            return None
        at = self._at(version)
        first, length, checksum, last = _SLOT.unpack_from(self.memory, at)
        if not first == last == version or length > self.capacity:
            return None
        data = self.memory[at + _SLOT.size : at + _SLOT.size + length]
        if self.word(at) != version or zlib.crc32(data) != checksum:
            return None
        return version, data

    def _at(self, version: int) -> int:
        return _HEAD + version % _SLOTS * (_SLOT.size + self.capacity)


class SharedQueue(SharedBlock):
    """Rows of 64-bit numbers from one process to another, in order; a full one refuses new rows and counts them.

    Args:
        rows: how many it holds.
        width: numbers in a row.
        path: of one that another process made.
    """

    def __init__(self, rows: int = 0, width: int = 0, path: str = ""):
        super().__init__(_HEAD + 8 * rows * width, path)
        if path:
            if self.word(0) != _QUEUE:
                raise RetorqueError(f"'{path}' holds no shared queue of this version; update both sides")
        else:
            self.set_word(32, rows)
            self.set_word(40, width)
            self.set_word(0, _QUEUE)
        self.rows, self.width = self.word(32), self.word(40)
        self.table = np.frombuffer(self.memory, np.float64, self.rows * self.width, _HEAD).reshape(
            self.rows, self.width
        )
        """(rows, width) the queue itself."""
        self._written = self.word(8)

    @property
    def written(self) -> int:
        """Rows since the start, those refused not counted."""
        return self.word(8)

    @property
    def taken(self) -> int:
        """Rows that the reader is done with."""
        return self.word(16)

    @property
    def refused(self) -> int:
        """Rows that found it full."""
        return self.word(24)

    def slot(self) -> int:
        """Index of the row to be written next; -1 where it is full, which is counted."""
        if self._written - _WORD.unpack_from(self.memory, 16)[0] >= self.rows:
            self.set_word(24, self.word(24) + 1)
            return -1
        return self._written % self.rows

    def commit(self) -> None:
        """The row at `slot` is complete."""
        self._written += 1
        _WORD.pack_into(self.memory, 8, self._written)

    def add(self, row: Array) -> bool:
        """Write a row (width,); whether there was room."""
        index = self.slot()
        if index < 0:
            return False
        self.table[index] = row
        self.commit()
        return True

    def waiting(self, after: int | None = None) -> Array:
        """Copies of the rows (count, width) from row number `after` on, default: those not taken yet."""
        start, stop = self.taken if after is None else after, self.written
        return self.table[np.arange(start, stop) % self.rows]

    def take(self, upto: int) -> None:
        """The rows before this number may be written over."""
        self.set_word(16, upto)

    def close(self) -> None:
        del self.table
        super().close()
