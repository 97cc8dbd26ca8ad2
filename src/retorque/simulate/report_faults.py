"""Reports that lie: zero, scaled, turned, stuck, missing, slipped, and clocks that jump."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import unknown

SLIP = 0.1
"""How far an encoder slips [rad]."""
LOST = 0.05
"""Share of reports that are lost or repeated."""
SET_BACK, JITTER = 2.0, 0.4
"""How far the clock is set back [s], and how far stamps are off [control periods]."""


class FaultyReports:
    """A target whose reports go wrong for a while; what the robot does is not touched.

    Args:
        target: what reports.
        fault: one of `FAULTS`, or empty: its reports are right.
        start: when it begins [s].
        stop: when all is well again [s].
        joint: the joint that is struck where it is one; or which in each trial, (trials, n) of bool.
        seed: of reports that are lost at random.
    """

    takes: Literal["torque", "position"]

    def __init__(
        self,
        target: Target,
        fault: str,
        *,
        start: float = 3.0,
        stop: float = np.inf,
        joint: int | Array = 1,
        seed: int | np.random.Generator = 0,
    ):
        if fault and fault not in FAULTS:
            raise unknown("fault", fault, FAULTS)
        self.target, self.fault = target, fault
        self.struck = np.arange(target.position.shape[-1]) == joint if isinstance(joint, int) else joint
        """(n,) or (trials, n) joints that a fault of one joint strikes."""
        self.timestep, self.takes = target.timestep, target.takes
        self.position, self.velocity = target.position, target.velocity
        self._start, self._stop = start, stop
        self.rng = np.random.default_rng(seed)
        """Draws what is random."""
        self.first: State | None = None
        """The last report before the fault began."""
        self.last: State | None = None
        """The last report, as it was made up."""

    def read(self) -> State:
        """The target's report, or what the fault makes of it."""
        state = self.target.read()
        told = state
        now = state.time
        if self.fault and self._start <= now < self._stop:
            if self.first is None:
                self.first = self.last or state
            told = State(state.time, state.position.copy(), state.velocity.copy(), state.torque.copy())
            FAULTS[self.fault](self, told)
        self.last = told
        return told

    def write(self, command: Command) -> None:
        """Pass a command on."""
        self.target.write(command)

    def push(self, torque: Array | float) -> None:
        """External torque on the joints from now on, (..., n) [N·m]."""
        self.target.push(torque)


def _times(what: str, factor: float, one: bool = False) -> Callable[[FaultyReports, State], None]:
    def apply(faulty: FaultyReports, state: State) -> None:
        getattr(state, what)[...] *= np.where(faulty.struck, factor, 1.0) if one else factor

    return apply


def _kept(*what: str, one: bool = False) -> Callable[[FaultyReports, State], None]:
    """Numbers stay what they were when the fault began."""

    def apply(faulty: FaultyReports, state: State) -> None:
        assert faulty.first is not None
        for name in what:
            np.copyto(getattr(state, name), getattr(faulty.first, name), where=faulty.struck if one else True)

    return apply


def _dead(faulty: FaultyReports, state: State) -> None:
    _kept("position", one=True)(faulty, state)
    np.copyto(state.velocity, 0.0, where=faulty.struck)


def _slipped(faulty: FaultyReports, state: State) -> None:
    state.position[...] += np.where(faulty.struck, SLIP, 0.0)


def _lost(faulty: FaultyReports, state: State) -> Array:
    """Which trials are struck at random in this tick, (...)."""
    return np.asarray(faulty.rng.random(np.shape(state.position)[:-1]) < LOST)


def _missing(faulty: FaultyReports, state: State) -> None:
    struck = _lost(faulty, state)
    for array in (state.position, state.velocity, state.torque):
        array[struck] = np.nan


def _missing_joint(faulty: FaultyReports, state: State) -> None:
    np.copyto(state.position, np.nan, where=faulty.struck)


def _repeated(faulty: FaultyReports, state: State) -> None:
    struck, last = _lost(faulty, state), faulty.last or state
    for name in ("position", "velocity", "torque"):
        getattr(state, name)[struck] = getattr(last, name)[struck]


def _set_back(faulty: FaultyReports, state: State) -> None:
    state.time -= SET_BACK


def _jitter(faulty: FaultyReports, state: State) -> None:
    state.time += faulty.timestep * JITTER * float(faulty.rng.uniform(-1.0, 1.0))


FAULTS: dict[str, Callable[[FaultyReports, State], None]] = {
    "torque zero": _times("torque", 0.0),
    "torque flipped": _times("torque", -1.0),
    "torque scaled": _times("torque", 1.5),
    "torque stuck": _kept("torque"),
    "torque zero, one joint": _times("torque", 0.0, one=True),
    "velocity zero": _times("velocity", 0.0),
    "velocity flipped": _times("velocity", -1.0),
    "velocity scaled": _times("velocity", 1.5),
    "velocity stuck": _kept("velocity"),
    "velocity zero, one joint": _times("velocity", 0.0, one=True),
    "velocity flipped, one joint": _times("velocity", -1.0, one=True),
    "velocity scaled, one joint": _times("velocity", 1.5, one=True),
    "frozen joint": _kept("position", "velocity", one=True),
    "stuck position": _kept("position", one=True),
    "dead encoder": _dead,
    "slipped encoder": _slipped,
    "5 % missing": _missing,
    "missing joint": _missing_joint,
    "5 % repeated": _repeated,
    "clock set back": _set_back,
    "clock jitters": _jitter,
}
"""Every fault by its name."""
