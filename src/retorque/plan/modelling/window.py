"""The last samples of a run, as identification takes them: states, the inputs between them, and which can be used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.loop.clock import Clock
from retorque.work.array import Array


@dataclass(frozen=True, slots=True)
class Samples:
    """Consecutive samples, oldest first."""

    time: float
    """Of the newest [s]."""
    number: int
    """Of the newest, counted from the start of the run."""
    states: Array
    """(T+1, 2 n) as measured; a row that is not valid holds its neighbour."""
    inputs: Array
    """(T, inputs) that led from each to the next."""
    valid: Array
    """(T+1,) which rows were measured."""

    def last(self, count: int) -> Samples:
        """The newest `count` samples, or all there are."""
        count = min(count, len(self.states))
        keep = len(self.states) - count
        return Samples(self.time, self.number, self.states[keep:], self.inputs[keep:], self.valid[keep:])

    def less(self, offset: Array | float) -> Samples:
        """Without a constant error of the sensors."""
        return Samples(self.time, self.number, self.states - offset, self.inputs, self.valid)

    def before(self, back: int) -> Samples:
        """Without the newest `back` samples."""
        end = len(self.states) - back
        return Samples(self.time, self.number - back, self.states[:end], self.inputs[: end - 1], self.valid[:end])


class SampleWindow:
    """A sliding window of samples at a fixed period.

    A sample that is missing or not finite is marked and carries no weight; the inputs go on. A clock that runs back,
    or repeats, brings no sample; a long gap starts the window anew, as nobody knows what went on in it.

    Args:
        length: most samples.
        states: numbers in a state.
        inputs: numbers in an input.
        timestep: between samples [s].
    """

    def __init__(self, length: int, states: int, inputs: int, timestep: float):
        self.length, self._clock = length, Clock(timestep)
        self._states, self._inputs = np.zeros((2 * length, states)), np.zeros((2 * length, inputs))
        self._valid = np.zeros(2 * length, dtype=bool)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._clock.reset()
        self._end = 0
        self.number, self.time = -1, -np.inf
        self.skipped = 0
        """Samples that were left out so far."""

    @property
    def count(self) -> int:
        """Samples in it."""
        return min(self._end, self.length)

    def add(self, time: float, state: Array, input_before: Array) -> bool:
        """Take in a sample and the input (inputs,) that led to it; whether it could be used."""
        step = self._clock.ticks_since(time)
        if step == 0:
            self.skipped += 1
            return False
        usable = bool(np.all(np.isfinite(state)))
        steady = bool(np.all(np.isfinite(input_before)))
        if step > self.length // 2 or not steady:
            self._end = 0
        for _ in range(step - 1 if self._end else 0):
            self._put(self._states[self._end - 1], input_before, False)
        if not usable:
            self.skipped += 1
            if self._end:
                self._put(self._states[self._end - 1], input_before, False)
        else:
            self._put(state, input_before if steady else np.zeros_like(input_before), True)
        self.time, self.number = time, self.number + step
        return usable

    def samples(self, count: int | None = None) -> Samples:
        """Views of the newest `count` samples."""
        count = min(self.count if count is None else count, self.count)
        rows = slice(self._end - count, self._end)
        inputs = self._inputs[self._end - count + 1 : self._end]
        return Samples(self.time, self.number, self._states[rows].copy(), inputs.copy(), self._valid[rows].copy())

    def _put(self, state: Array, input_before: Array, valid: bool) -> None:
        if self._end == len(self._valid):
            for array in (self._states, self._inputs, self._valid):
                array[: self.length] = array[self.length :]
            self._end = self.length
        self._states[self._end], self._inputs[self._end], self._valid[self._end] = state, input_before, valid
        self._end += 1
