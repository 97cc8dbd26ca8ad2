"""Arrays that one process writes and others read at any time, whole and without locks."""

from __future__ import annotations

from collections.abc import Mapping
from multiprocessing import shared_memory

import numpy as np

from retorque.work.array import Array

Layout = Mapping[str, tuple[int, ...]]
"""The shape of each array; all hold float64."""
HEADER = 4
"""Numbers before the arrays: version, and room."""
TRIES = 100


class SharedArrays:
    """Two copies of some arrays in shared memory: the writer fills one, then says which is the newest.

    There is one writer. A reader copies the newest; should the writer have come round to the same copy meanwhile, it
    reads again, so that what it gets is always from one write.

    Args:
        layout: names and shapes.
        name: of an existing block to open; default: a new one is made, whose maker must `unlink` it.
    """

    def __init__(self, layout: Layout, name: str | None = None):
        self.layout = dict(layout)
        sizes = {key: int(np.prod(shape)) for key, shape in self.layout.items()}
        self._size = sum(sizes.values())
        count = HEADER + 2 * self._size
        if name is None:
            self._block = shared_memory.SharedMemory(create=True, size=8 * count)
        else:
            self._block = shared_memory.SharedMemory(name=name)
        self._all: Array = np.ndarray(count, dtype=np.float64, buffer=self._block.buf)
        if name is None:
            self._all[:] = 0.0
        self._version = np.ndarray(1, dtype=np.int64, buffer=self._block.buf)
        self._views: list[dict[str, Array]] = []
        for copy in range(2):
            start, views = HEADER + copy * self._size, {}
            for key, shape in self.layout.items():
                views[key] = self._all[start : start + sizes[key]].reshape(shape)
                start += sizes[key]
            self._views.append(views)

    @property
    def name(self) -> str:
        """By which another process opens it."""
        return self._block.name

    @property
    def version(self) -> int:
        """Writes so far."""
        return int(self._version[0])

    def write(self, **arrays: Array | float) -> None:
        """Put arrays in the older copy, those not given as they were, and make it the newest."""
        version = int(self._version[0])
        new, old = self._views[(version + 1) % 2], self._views[version % 2]
        for key in self.layout:
            new[key][...] = arrays[key] if key in arrays else old[key]
        self._version[0] = version + 1  # one aligned store: readers see the old copy or the new one

    def read(self) -> dict[str, Array] | None:
        """Copies of the newest arrays; None where nothing was written yet, or the writer is always faster."""
        for _ in range(TRIES):
            version = int(self._version[0])
            if version == 0:
                return None
            found = {key: value.copy() for key, value in self._views[version % 2].items()}
            if int(self._version[0]) - version < 1:
                return found
            if int(self._version[0]) == version + 1:  # the other copy was written: this one is still whole
                return found
        return None

    def close(self) -> None:
        """Let go of the memory in this process."""
        self._views.clear()
        del self._all, self._version
        self._block.close()

    def unlink(self) -> None:
        """Give the memory back; its maker does so once."""
        self._block.unlink()
