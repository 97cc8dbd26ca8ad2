"""Every fault in any combination at any tick: finite, within limits, coded, and recovered from when it ends."""

from __future__ import annotations

import numpy as np
import pytest
from faults import ROBOT, TRIALS, Mess, N

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.state import State


class Moody(Adapter):
    """Adds 1 N·m, or fails as it is told."""

    learn_every = 10

    def __init__(self) -> None:
        super().__init__(ROBOT, TRIALS)
        self.mood: set[str] = set()

    def observe(self, state: State) -> None:
        if "observe raises" in self.mood:
            raise RuntimeError

    def learn(self) -> Belief | None:
        if "learn raises" in self.mood:
            raise RuntimeError
        return None if "learn stops" in self.mood else Belief.of("Moody", 0.0)

    def correct(self, state: State, nominal_torque: np.ndarray) -> np.ndarray:
        if "adapter raises" in self.mood:
            raise RuntimeError
        added = np.nan if "adapter nan" in self.mood else 1e6 if "adapter huge" in self.mood else 1.0
        return nominal_torque + added


def turn(supervisor: Supervisor, adapter: Moody, mess: Mess, sent: np.ndarray, faults: set[str]) -> np.ndarray:
    """One tick, checked."""
    adapter.mood = faults
    state = mess.report(sent, faults)
    supervisor.observe(state)
    if mess.tick % adapter.learn_every == 0:
        belief = supervisor.learn()
        if belief is not None:
            supervisor.adopt(belief)
    nominal = mess.nominal(faults)
    out = supervisor.correct(state, nominal)
    assert out.shape == (TRIALS, N) and np.isfinite(out).all()
    assert np.all(np.abs(out) <= ROBOT.torque_limit)
    assert np.all((supervisor.gain >= 0.0) & (supervisor.gain <= 1.0))
    if np.any(supervisor.gain < 1.0):
        assert supervisor.health.any()  # coded
    mess.tick += 1
    return out


def play(ticks: int, seed: int) -> Supervisor:
    """So many ticks of faults, then clean seconds until it has recovered.

    A slip that began or ended while reports were missing looks like one that lasts: it is coded, and its joint stays
    off until a reset.
    """
    adapter, mess = Moody(), Mess(seed)
    supervisor = Supervisor(adapter, SupervisorSettings(enable_ramp=0.05, rearm=2.0))
    sent = np.zeros((TRIALS, N))
    for _ in range(ticks):
        sent = turn(supervisor, adapter, mess, sent, mess.draw())
    mess.until.clear()
    for last in (False, True):
        for k in range(8000):
            sent = turn(supervisor, adapter, mess, sent, set())
            if k > 500 and not supervisor.health.any() and np.all(supervisor.gain == 1.0):
                break
        if not last and supervisor.health.any():
            assert np.all((supervisor.health == 0) | (supervisor.health & int(Health.SLIPPED) > 0))
            supervisor.reset()
    np.testing.assert_array_equal(supervisor.gain, 1.0)
    assert not supervisor.health.any(), [Health.names(int(code)) for code in supervisor.health]
    return supervisor


@pytest.mark.parametrize("seed", range(2))
def test_any_fault_at_any_tick(seed: int) -> None:
    supervisor = play(3000, seed)
    assert sum(count > 0 for count in supervisor.counts.values()) > 6


@pytest.mark.slow
def test_any_fault_for_a_million_ticks() -> None:
    supervisor = play(1_000_000, 100)
    assert sum(count > 0 for count in supervisor.counts.values()) > 15
