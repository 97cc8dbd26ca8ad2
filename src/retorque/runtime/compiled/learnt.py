"""What an estimate has learnt, carried between the compiled core and NumPy: the same numbers in both."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from retorque.adapt.recursive.adapter import Recursive
from retorque.loop.memory import collect, restore
from retorque.runtime.compiled.structures import layouts, structure
from retorque.work.array import Array


class Learnt:
    """The learnt numbers of the cores of a batch, in place; for adapters of the recursive family.

    They are those of `Recursive.learnt`.

    Args:
        calls: the loaded core.
        cores: where each robot's core is.
        joints: of the robot.
    """

    def __init__(self, calls: ctypes.CDLL, cores: Array, joints: int):
        self._calls, self._cores, self._n = calls, cores, joints

    def give(self, adapter: Recursive) -> None:
        """The NumPy adapter has learnt what the cores have."""
        adapter.reset()
        for trial, (core, own) in enumerate(self._pairs(adapter)):
            for name, place in own.items():
                place[trial] = core[name]
        adapter._refresh()
        adapter.belief = adapter._believe()

    def take(self, adapter: Recursive) -> None:
        """The cores, which know nothing yet, have learnt what the NumPy adapter has."""
        for trial, (core, own) in enumerate(self._pairs(adapter)):
            for name, place in own.items():
                core[name][...] = place[trial]
            self._calls.rt_learnt_changed(ctypes.c_void_p(int(self._cores[trial])))

    def _pairs(self, adapter: Recursive) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
        """Each core's numbers, and the adapter's arrays (trials, ...) of the same names."""
        for core in self._cores:
            yield self._views(int(core)), adapter.learnt()

    def _views(self, core: int) -> dict[str, Array]:
        found = structure("rt_learnt")()
        self._calls.rt_learnt_of(ctypes.c_void_p(core), ctypes.c_void_p(ctypes.addressof(found)))
        counts = {"mean": found.size, "root": found.size * found.step, "evidence": 1}
        views = {}
        for field in layouts()["rt_learnt"]:
            if field.pointer:
                kind = ctypes.c_double * counts.get(field.name, self._n)
                views[field.name] = np.ctypeslib.as_array(kind.from_address(getattr(found, field.name)))
        views["root"] = views["root"].reshape(found.size, found.step)[:, : found.size]
        return views


@contextmanager
def borrowed(adapter: Recursive) -> Iterator[Recursive]:
    """An adapter to write to for a moment; afterwards it has learnt what it had before."""
    before, turns = {name: np.array(array) for name, array in collect(adapter).items()}, adapter._turns
    try:
        yield adapter
    finally:
        restore(adapter, before)
        adapter._turns = turns
        adapter._restored()
