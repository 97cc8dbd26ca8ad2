"""An adapter whose every call runs in the compiled core."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from retorque.adapt.recursive.adapter import Recursive
from retorque.loop.adapter import MEMORY, MEMORY_FORMAT, TURNS, Adapter
from retorque.loop.belief import Belief
from retorque.loop.memory import collect
from retorque.loop.single import Single
from retorque.robots.state import State
from retorque.runtime.compiled.build import build, load
from retorque.runtime.compiled.constants import constants_of
from retorque.runtime.compiled.learnt import Learnt, borrowed
from retorque.runtime.compiled.structures import Constants, filled, structure
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

CORE = "core"
"""In a file of memory: all bytes of the cores, for the same core to go on to the bit."""
ALIGNED = 64
"""Bytes that a core's memory is aligned to."""


class CompiledAdapter(Adapter):
    """Stands in for a NumPy adapter that has a core: the same calls, the same torques, a fraction of the time.

    What it learns is its own: it starts where the adapter starts, and does not touch it. Its beliefs are rows of
    numbers (..., size), time first, that any core of the same model can adopt.

    Args:
        adapter: what it stands in for, for one robot or a batch.
        library: the compiled core; default: built where it is not there yet.
        supervisor: the constants of a supervisor around it; default: it runs bare.
    """

    def __init__(self, adapter: Adapter, library: Path | None = None, *, supervisor: Constants | None = None):
        self.model = adapter.adapter if isinstance(adapter, Single) else adapter
        """The NumPy adapter whose constants it has."""
        self.constants: Constants = {**constants_of(self.model), **({"supervisor": supervisor} if supervisor else {})}
        self.robot, self.trials = adapter.robot, adapter.trials
        self.timestep, self.seed = adapter.timestep, adapter.seed
        self.learn_every = adapter.learn_every
        lead = np.shape(adapter.health)
        self._shape = (*lead, self.robot.n)
        path = library or build()
        self.engine = f"C ({path.name})"
        self._calls = calls = load(path)
        self._model, self._arrays = filled("rt_model", self.constants)
        model = ctypes.addressof(self._model)
        calls.rt_model_bytes.restype = ctypes.c_size_t
        if calls.rt_model_bytes() != ctypes.sizeof(self._model):
            raise RetorqueError(f"the compiled core '{path}' was made of other sources; delete it")
        calls.rt_bytes.restype = calls.rt_memory_bytes.restype = ctypes.c_size_t
        calls.rt_make.restype = calls.rt_memory.restype = ctypes.c_void_p
        each = calls.rt_bytes(ctypes.c_void_p(model))
        self._size = calls.rt_belief_size(ctypes.c_void_p(model))
        self._store = np.zeros(self.trials * each + ALIGNED, dtype=np.uint8)
        start = self._store.ctypes.data + -self._store.ctypes.data % ALIGNED
        cores = [calls.rt_make(ctypes.c_void_p(model), ctypes.c_void_p(start + k * each)) for k in range(self.trials)]
        if not all(cores):
            raise RetorqueError(f"robot '{self.robot.name}' has too many joints for the compiled core ({self.robot.n})")
        self._cores = np.array(cores, dtype=np.uintp)
        self._learnt = Learnt(calls, self._cores, self.robot.n)
        self._time = np.zeros(1)
        self._report = np.zeros((3, *self._shape))
        self._nominal, self._sent = np.zeros((2, *self._shape))
        self.health = np.zeros(lead, dtype=np.int64)
        self._batch = structure("rt_batch")(
            self._cores.ctypes.data,
            self.trials,
            self._time.ctypes.data,
            *(row.ctypes.data for row in self._report),
            self._nominal.ctypes.data,
            self._sent.ctypes.data,
            self.health.ctypes.data,
        )
        # A tick of a few microseconds keeps the interpreter's lock; learning lets go of it.
        quick = ctypes.PyDLL(str(path))
        self._at = ctypes.c_void_p(ctypes.addressof(self._batch))
        self._observe, self._correct = quick.rt_batch_observe, quick.rt_batch_correct
        self._observe.restype = self._correct.restype = None
        self._position, self._velocity, self._torque = self._report

    def reset(self) -> None:
        self._calls.rt_batch_reset(self._at)

    def carry(self) -> None:
        self._calls.rt_batch_carry(self._at)

    def resume(self) -> None:
        if isinstance(self.model, Recursive):
            with borrowed(self.model) as model:
                self._learnt.give(model)
                self._begin_with(model)
        else:
            self.reset()

    def observe(self, state: State) -> None:
        self._time[0] = state.time
        self._position[...] = state.position
        self._velocity[...] = state.velocity
        self._torque[...] = state.torque
        self._observe(self._at)

    def learn(self) -> Belief | None:
        numbers = np.empty((*self._shape[:-1], self._size))
        if not self._calls.rt_batch_learn(self._at, ctypes.c_void_p(numbers.ctypes.data)):
            return None
        return Belief.of(type(self.model).__name__, float(numbers.flat[0]), numbers=numbers)

    def adopt(self, belief: Belief) -> None:
        numbers = belief.arrays["numbers"]
        if belief.kind != type(self.model).__name__ or numbers.shape != (*self._shape[:-1], self._size):
            raise RetorqueError(
                f"a belief of {belief.kind} cannot be adopted by a compiled {type(self.model).__name__}"
            )
        self._calls.rt_batch_adopt(self._at, ctypes.c_void_p(numbers.ctypes.data))

    def correct(self, state: State, nominal_torque: Array) -> Array:
        self._time[0] = state.time
        self._position[...] = state.position
        self._velocity[...] = state.velocity
        self._nominal[...] = nominal_torque
        self._correct(self._at)
        return self._sent.copy()

    def save(self, path: str | Path) -> None:
        """Write all that was learnt: for this core to the bit, and what the NumPy adapter can load as well."""
        arrays = {CORE: np.stack(self._memories()), TURNS: np.array(self._turns)}
        if isinstance(self.model, Recursive):
            with borrowed(self.model) as model:
                self._learnt.give(model)
                arrays |= collect(model)
        save_tensors(path, arrays, MEMORY, MEMORY_FORMAT, {**self._identity(), CORE: self.engine})

    def load(self, path: str | Path, *, mid_run: bool = False) -> None:
        """Begin with what `save` wrote, here or in NumPy; `mid_run` the same core goes on to the bit."""
        arrays, header = load_tensors(path, MEMORY, MEMORY_FORMAT)
        self._check_identity(path, header)
        own, kept = self._memories(), arrays.get(CORE)
        lasts = isinstance(self.model, Recursive)
        fits = header.get(CORE) == self.engine and kept is not None and kept.shape == (len(own), len(own[0]))
        if kept is not None and fits and (mid_run or not lasts):
            for memory, saved in zip(own, kept, strict=True):
                memory[:] = saved
            self._turns = int(arrays[TURNS])
            if not mid_run:
                self.resume()
        elif isinstance(self.model, Recursive):
            with borrowed(self.model) as model:
                model.load(path)
                self._begin_with(model)
        else:
            raise RetorqueError(
                f"'{path}' was saved by another engine; {type(self.model).__name__} learns anew within seconds, so "
                "start without it"
            )

    def _begin_with(self, model: Recursive) -> None:
        """Begin anew with what a NumPy adapter has learnt."""
        self.reset()
        self._learnt.take(model)
        self._turns = 0

    def _memories(self) -> list[Array]:
        """What each core has learnt, as bytes in place."""
        count = self._calls.rt_memory_bytes(ctypes.c_void_p(ctypes.addressof(self._model)))
        kind = ctypes.c_uint8 * count
        at = [self._calls.rt_memory(ctypes.c_void_p(int(core))) for core in self._cores]
        return [np.frombuffer(kind.from_address(address), dtype=np.uint8) for address in at]

    def _identity(self) -> dict[str, object]:
        return self.model._identity()
