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
        fault: one of `FAULTS`.
        start: when it begins [s].
        stop: when all is well again [s].
        joint: the joint that is struck where it is one.
        seed: of reports that are lost at random.
    """

    takes: Literal["torque", "position"]

    def __init__(
        self, target: Target, fault: str, *, start: float = 3.0, stop: float = np.inf, joint: int = 1, seed: int = 0
    ):
        if fault not in FAULTS:
            raise unknown("fault", fault, FAULTS)
        self.target, self.fault, self.joint = target, fault, joint
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
        if self._start <= now < self._stop:
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
        array = getattr(state, what)
        array[..., faulty.joint if one else slice(None)] *= factor

    return apply


def _frozen(faulty: FaultyReports, state: State) -> None:
    assert faulty.first is not None
    state.position[..., faulty.joint] = faulty.first.position[..., faulty.joint]
    state.velocity[..., faulty.joint] = faulty.first.velocity[..., faulty.joint]


def _stuck_position(faulty: FaultyReports, state: State) -> None:
    assert faulty.first is not None
    state.position[..., faulty.joint] = faulty.first.position[..., faulty.joint]


def _dead(faulty: FaultyReports, state: State) -> None:
    _stuck_position(faulty, state)
    state.velocity[..., faulty.joint] = 0.0


def _slipped(faulty: FaultyReports, state: State) -> None:
    state.position[..., faulty.joint] += SLIP


def _struck(faulty: FaultyReports, state: State) -> Array:
    """Which trials are struck at random in this tick, (...)."""
    return np.asarray(faulty.rng.random(np.shape(state.position)[:-1]) < LOST)


def _missing(faulty: FaultyReports, state: State) -> None:
    struck = _struck(faulty, state)
    for array in (state.position, state.velocity, state.torque):
        array[struck] = np.nan


def _missing_joint(faulty: FaultyReports, state: State) -> None:
    state.position[..., faulty.joint] = np.nan


def _repeated(faulty: FaultyReports, state: State) -> None:
    struck = _struck(faulty, state)
    assert faulty.last is not None
    for name in ("position", "velocity", "torque"):
        getattr(state, name)[struck] = getattr(faulty.last, name)[struck]


def _set_back(faulty: FaultyReports, state: State) -> None:
    state.time -= SET_BACK


def _jitter(faulty: FaultyReports, state: State) -> None:
    state.time += faulty.timestep * JITTER * float(faulty.rng.uniform(-1.0, 1.0))


FAULTS: dict[str, Callable[[FaultyReports, State], None]] = {
    "torque zero": _times("torque", 0.0),
    "torque flipped": _times("torque", -1.0),
    "torque scaled": _times("torque", 1.5),
    "torque zero, one joint": _times("torque", 0.0, one=True),
    "velocity zero": _times("velocity", 0.0),
    "velocity zero, one joint": _times("velocity", 0.0, one=True),
    "velocity flipped, one joint": _times("velocity", -1.0, one=True),
    "velocity scaled, one joint": _times("velocity", 1.5, one=True),
    "frozen joint": _frozen,
    "stuck position": _stuck_position,
    "dead encoder": _dead,
    "slipped encoder": _slipped,
    "5 % missing": _missing,
    "missing joint": _missing_joint,
    "5 % repeated": _repeated,
    "clock set back": _set_back,
    "clock jitters": _jitter,
}
"""Every fault by its name."""
