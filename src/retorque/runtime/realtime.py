"""Real time: absolute pacing, the scheduling class and the core where the system allows, and overruns counted."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array
from retorque.work.errors import RetorqueError

REMEMBERED = 60_000
"""Ticks whose times are kept for the statistics."""


@dataclass(frozen=True, kw_only=True)
class RealtimeSettings:
    """What a control process asks of the operating system."""

    priority: int = 0
    """SCHED_FIFO priority, 1 to 99; 0: stay in the usual class. It needs the right to ask (`ulimit -r`)."""
    core: int = -1
    """Processor core to stay on; -1: any."""


@contextmanager
def realtime(settings: RealtimeSettings) -> Iterator[list[str]]:
    """Run in the scheduling class and on the core asked for, with garbage collection held; what was granted, in words.

    What the system refuses is said, not raised: the loop runs on as it can, and its overruns are counted.
    """
    if settings.priority and not 1 <= settings.priority <= 99:
        raise RetorqueError(f"--priority must be between 1 and 99, not {settings.priority}")
    said: list[str] = []
    before = os.sched_getaffinity(0)
    policy, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    if settings.core >= 0:
        try:
            os.sched_setaffinity(0, {settings.core})
            said.append(f"on core {settings.core}")
        except OSError as error:
            said.append(f"core {settings.core} not granted ({error.strerror})")
    if settings.priority:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(settings.priority))
            said.append(f"SCHED_FIFO priority {settings.priority}")
        except OSError as error:
            said.append(f"SCHED_FIFO not granted ({error.strerror}); allow it with `ulimit -r` or run as root")
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()  # one collection takes longer than a tick
    try:
        yield said
    finally:
        if collecting:
            gc.enable()
        os.sched_setaffinity(0, before)
        if os.sched_getscheduler(0) != policy:
            os.sched_setscheduler(0, policy, parameter)


class Pacer:
    """Keeps a loop at its rate: each tick begins at start + k x period, whatever the one before it took.

    A tick that begins more than a period late counts as an overrun, and the periods that passed are skipped, not made
    up for: a robot must not be sent two commands in a row.

    Args:
        period: [s]
        clock: time now [s]; for tests.
        sleep: waits so many seconds; for tests.
    """

    def __init__(
        self,
        period: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ):
        if not period > 0.0:
            raise RetorqueError(f"a control period is longer than 0 s, not {period}")
        self.period = period
        self._clock, self._sleep = clock, sleep
        self._late = np.zeros(REMEMBERED)
        self._next = float("nan")
        self.ticks = 0
        """Ticks begun."""
        self.overruns = 0
        """Ticks that began more than a period late."""
        self.skipped = 0
        """Periods without a tick."""

    def wait(self) -> float:
        """Sleep until the next tick is due; how late it is [s]."""
        now = self._clock()
        if self._next != self._next:  # the first one
            self._next = now
        rest = self._next - now
        if rest > 0.0:
            self._sleep(rest)
            now = self._clock()
        late = now - self._next
        self._late[self.ticks % REMEMBERED] = late
        self.ticks += 1
        self._next += self.period
        if late > self.period:
            missed = int(late / self.period)
            self.overruns += 1
            self.skipped += missed
            self._next += missed * self.period
        return late

    def lateness(self) -> Array:
        """How late the last ticks began, (ticks,) [s]."""
        return self._late[: min(self.ticks, REMEMBERED)]

    def words(self) -> str:
        """One line."""
        late = 1e6 * self.lateness()
        if not len(late):
            return "no ticks"
        return (
            f"{self.ticks} ticks, late by {np.median(late):.0f} us (p50), {np.percentile(late, 99.0):.0f} us (p99), "
            f"{late.max():.0f} us (most); {self.overruns} overruns"
        )
