"""Pacing by absolute time, and what is asked of the system."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from retorque.runtime.realtime import Pacer, RealtimeSettings, realtime
from retorque.work.errors import RetorqueError


class Time:
    """A clock that only moves when something sleeps or works."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + 2e-5  # every sleep is a little late


def test_lateness_does_not_add_up() -> None:
    time = Time()
    pacer = Pacer(1e-3, time, time.sleep)
    for _ in range(1000):
        pacer.wait()
        time.now += 3e-4  # the tick's own work
    assert time.now - 100.0 == pytest.approx(0.999 + 3e-4 + 2e-5, abs=1e-9)
    assert pacer.overruns == pacer.skipped == 0
    assert np.allclose(pacer.lateness()[1:], 2e-5)


def test_a_priority_that_cannot_be_changes_nothing() -> None:
    cores = os.sched_getaffinity(0)
    for priority in (-1, 100):
        with (
            pytest.raises(RetorqueError, match="between 1 and 99"),
            realtime(RealtimeSettings(priority=priority, core=min(cores))),
        ):
            pass
    assert os.sched_getaffinity(0) == cores and gc.isenabled()
    assert Pacer(1e-3).words() == "no ticks"


def test_an_overrun_is_counted_and_its_periods_are_skipped() -> None:
    time = Time()
    pacer = Pacer(1e-3, time, time.sleep)
    for k in range(10):
        pacer.wait()
        time.now += 3.5e-3 if k == 4 else 1e-4
    assert (pacer.overruns, pacer.skipped) == (1, 2)
    before = time.now
    pacer.wait()
    assert time.now - before < 1e-3  # still on the old grid
    assert "1 overruns" in pacer.words()
    with pytest.raises(RetorqueError, match="longer than 0"):
        Pacer(0.0)


def test_what_the_system_refuses_is_said_and_everything_is_put_back() -> None:
    cores, policy = os.sched_getaffinity(0), os.sched_getscheduler(0)
    with realtime(RealtimeSettings(core=4000, priority=1)) as said:
        assert not gc.isenabled()
        assert any("core 4000 not granted" in line for line in said) and any("SCHED_FIFO" in line for line in said)
    assert gc.isenabled() and os.sched_getaffinity(0) == cores and os.sched_getscheduler(0) == policy
    with realtime(RealtimeSettings(core=min(cores))) as said:
        assert os.sched_getaffinity(0) == {min(cores)} and said == [f"on core {min(cores)}"]
    assert os.sched_getaffinity(0) == cores
    with pytest.raises(RetorqueError, match="priority"), realtime(RealtimeSettings(priority=200)):
        pass
