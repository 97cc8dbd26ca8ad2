"""Reports that are wrong: stuck, zero, scaled or flipped values, dead encoders, gaps, and clocks not to be trusted."""

from __future__ import annotations

from typing import Literal

import numpy as np

from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import unknown

WHOLE = {"zero": 0.0, "scaled": 1.5, "flipped": -1.0}
"""What a report is multiplied by."""
FAULTS = (
    *(f"{quantity}-{fault}" for quantity in ("torque", "velocity") for fault in (*WHOLE, "stuck")),
    "velocity-zero-joint",
    "encoder-dead",
    "nan",
    "repeated",
    "jitter",
    "clock-back",
)
BEGIN, END = 4.0, 12.0
"""When lasting faults begin and end [s]."""
SHORT = {"velocity-flipped": 0.3, "encoder-dead": 2.0}
"""How long those last under which no controller could stand [s]."""
RARE = 0.05
"""Share of the reports that are lost or repeated."""
JITTER = 0.4
"""Largest error of a stamp, in periods."""
SET_BACK = 2.0
"""[s]"""


class BrokenReports:
    """A target whose reports are wrong; what it really does is unchanged.

    Args:
        target: the robots.
        fault: one of `FAULTS`, or empty.
        seed: of what is random: joints, which reports, jitter.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, target: Target, fault: str, seed: int):
        if fault and fault not in FAULTS:
            raise unknown("fault", fault, FAULTS)
        self.target, self._fault = target, fault
        self.timestep = target.timestep
        self.position, self.velocity = target.position, target.velocity
        self._rng = np.random.default_rng([seed, 7])
        trials, n = target.position.shape
        self._joint = np.zeros((trials, n), dtype=bool)
        self._joint[np.arange(trials), self._rng.integers(0, n, trials)] = True
        self._kept: State | None = None

    def push(self, torque: Array | float) -> None:
        self.target.push(torque)

    def write(self, command: Command) -> None:
        self.target.write(command)

    def read(self) -> State:
        state = self.target.read()
        time, fault = state.time, self._fault
        if fault == "jitter":
            return self._with(state, time=time + JITTER * self.timestep * self._rng.uniform(-1.0, 1.0))
        if fault == "clock-back":
            return self._with(state, time=time - SET_BACK if time >= 0.5 * (BEGIN + END) else time)
        if fault in ("nan", "repeated"):
            return self._rarely(state)
        if not fault or not BEGIN <= time < min(END, BEGIN + SHORT.get(fault, np.inf)):
            self._kept = state
            return state
        return self._lasting(state)

    def _rarely(self, state: State) -> State:
        """Now and then a trial's report is lost, or the last one comes again."""
        last, self._kept = self._kept, state
        hit = self._rng.uniform(size=(len(self.position), 1)) < RARE
        if last is None:
            return state
        right = np.array(_values(state))
        wrong = np.full_like(right, np.nan) if self._fault == "nan" else np.array(_values(last))
        found = State(state.time, *np.where(hit, wrong, right))
        if self._fault == "repeated":
            self._kept = found
        return found

    def _lasting(self, state: State) -> State:
        position, velocity, torque = _values(state)
        assert self._kept is not None
        kept = _values(self._kept)
        if self._fault == "encoder-dead":
            position, velocity = np.where(self._joint, kept[0], position), np.where(self._joint, 0.0, velocity)
        elif self._fault == "velocity-zero-joint":
            velocity = np.where(self._joint, 0.0, velocity)
        else:
            quantity, _, how = self._fault.partition("-")
            if quantity == "torque":
                torque = kept[2] if how == "stuck" else WHOLE[how] * torque
            else:
                velocity = kept[1] if how == "stuck" else WHOLE[how] * velocity
        return State(state.time, position, velocity, torque)

    @staticmethod
    def _with(state: State, time: float) -> State:
        return State(time, *_values(state))


def _values(state: State) -> tuple[Array, Array, Array]:
    return state.position, state.velocity, state.torque
