"""An adapter whose `learn` runs elsewhere: in a second process, or on another machine."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.single import Single
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.records import pack_record, unpack_record

FORMAT = 1
"""Of the record that holds a belief."""
BEHIND = 10
"""Learning periods of waiting reports from which on a twin skips to the newest."""


class LearnerLink(Protocol):
    """The way to where `learn` runs."""

    refused: Counter[str]
    """What came and was not taken, by reason."""

    def send(self, row: Array) -> None:
        """Hand over a report (1 + 3 n,): time, positions, velocities, torques."""

    def newest(self) -> bytes | None:
        """A record that has come since the last call."""

    def close(self) -> None:
        """The other side may go."""


class RemoteLearning(Adapter):
    """Any adapter for one robot, learning elsewhere: reports go out, beliefs come back, and the tick never waits.

    `learn` only looks whether a belief has come. One that is late, repeated, altered, foreign or not finite is refused
    and counted in `refused`; where none comes, the supervisor sees the belief grow old (STALE).

    Args:
        adapter: what observes, adopts and corrects here; its twin learns at the other end.
        link: the way there.
        longest_delay: a belief that rests on reports older than this is late [s].
    """

    learn_every = 1

    def __init__(self, adapter: Adapter, link: LearnerLink, longest_delay: float = 0.1):
        if np.shape(adapter.health) != ():
            raise RetorqueError("learning elsewhere serves one robot; make the adapter without trials")
        if not adapter.learn_every:
            raise RetorqueError(f"{type(inner_of(adapter)).__name__} does not learn; run it without a remote learner")
        self.adapter, self.link, self.longest_delay = adapter, link, longest_delay
        self.robot, self.trials = adapter.robot, adapter.trials
        self.timestep, self.seed = adapter.timestep, adapter.seed
        self.health = adapter.health
        self.kind = type(inner_of(adapter)).__name__
        self.refused = link.refused
        """Beliefs that were not taken, by reason."""
        self.beliefs = 0
        """Beliefs that were taken: the number of the one in use."""
        self._row = np.zeros(1 + 3 * adapter.robot.n)
        self._last = -np.inf
        self._now = -np.inf
        own = getattr(inner_of(adapter), "belief", None)
        self._shapes = _shapes(own) if isinstance(own, Belief) else {}

    def reset(self) -> None:
        self._last = -np.inf
        self.adapter.reset()

    def carry(self) -> None:
        self.adapter.carry()

    def resume(self) -> None:
        self._last = -np.inf
        self.adapter.resume()

    def save(self, path: str | Path) -> None:
        raise RetorqueError("what was learnt lies at the other end; save it there")

    def load(self, path: str | Path, *, mid_run: bool = False) -> None:
        self.adapter.load(path, mid_run=mid_run)

    def observe(self, state: State) -> None:
        n, row = self.robot.n, self._row
        row[0] = self._now = state.time
        row[1 : 1 + n], row[1 + n : 1 + 2 * n], row[1 + 2 * n :] = state.position, state.velocity, state.torque
        self.link.send(row)
        self.adapter.observe(state)

    def learn(self) -> Belief | None:
        data = self.link.newest()
        if data is None:
            return None
        belief = self._accepted(data)
        if belief is not None:
            self.beliefs += 1
            self._last = belief.time
        return belief

    def adopt(self, belief: Belief) -> None:
        self.adapter.adopt(belief)

    def correct(self, state: State, nominal_torque: Array) -> Array:
        return self.adapter.correct(state, nominal_torque)

    def close(self) -> None:
        """The other side may go."""
        self.link.close()

    def _accepted(self, data: bytes) -> Belief | None:
        """The belief in a record, or nothing and a count of why."""
        try:
            belief, health = decode_belief(data)
        except RetorqueError:
            self.refused["altered"] += 1
            return None
        shapes = _shapes(belief)
        if belief.kind != self.kind or (self._shapes and shapes != self._shapes):
            reason = "foreign"
        elif belief.time <= self._last:
            reason = "repeated"
        elif not self._now - self.longest_delay <= belief.time <= self._now + self.timestep:
            reason = "late"
        elif not all(np.isfinite(array).all() for array in belief.arrays.values() if array.dtype.kind == "f"):
            reason = "not finite"
        else:
            self._shapes = shapes
            self.health = np.array(health)
            return belief
        self.refused[reason] += 1
        return None


def inner_of(adapter: Any) -> Any:
    """The adapter itself, without what makes it serve one robot."""
    return adapter.adapter if isinstance(adapter, Single) else adapter


def _shapes(belief: Belief) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in belief.arrays.items()}


def encode_belief(belief: Belief, health: int = 0) -> bytes:
    """A belief, and the codes that its adapter set, as bytes."""
    kind = np.frombuffer(belief.kind.encode(), dtype=np.uint8)
    about = np.array([belief.time, FORMAT, health])
    return pack_record({":kind": kind, ":about": about, **belief.arrays})


def decode_belief(data: bytes) -> tuple[Belief, int]:
    """The belief and the codes in bytes; what is none is refused."""
    arrays = unpack_record(data)
    kind, about = arrays.pop(":kind", None), arrays.pop(":about", None)
    if kind is None or about is None or about.shape != (3,) or about[1] != FORMAT or not 0 <= about[2] < 2**53:
        raise RetorqueError("this record holds no belief of this version; update both sides")
    return Belief.of(kind.tobytes().decode(errors="replace"), float(about[0]), **arrays), int(about[2])


def report_of(row: Array, n: int) -> State:
    """The report in a row (1 + 3 n,)."""
    return State(float(row[0]), row[1 : 1 + n], row[1 + n : 1 + 2 * n], row[1 + 2 * n :])


class Twin:
    """The other end: the same adapter, fed with the reports, learning at its own rate.

    Args:
        adapter: made like the one that corrects.
    """

    def __init__(self, adapter: Adapter):
        self.adapter = adapter

    def take(self, rows: Array) -> bytes | None:
        """Observe reports (count, 1 + 3 n) in order and learn where it is due; the newest belief as bytes, if any.

        Where it has fallen behind, it learns from the newest reports only: an old belief would be refused.
        """
        newest = None
        behind = len(rows) > BEHIND * self.adapter.learn_every
        with np.errstate(all="ignore"):
            for left, row in zip(range(len(rows) - 1, -1, -1), rows, strict=True):
                self.adapter.observe(report_of(row, self.adapter.robot.n))
                if self.adapter.due() and not (behind and left >= self.adapter.learn_every):
                    newest = self._learnt() or newest
        return None if newest is None else encode_belief(newest, int(self.adapter.health))

    def _learnt(self) -> Belief | None:
        belief = self.adapter.learn()
        if belief is not None:
            self.adapter.adopt(belief)
        return belief
