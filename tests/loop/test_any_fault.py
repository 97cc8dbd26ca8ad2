"""Every fault in any combination at any tick: finite, within limits, coded, and recovered from when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.loop.adapter import Adapter
from retorque.loop.belief import Belief
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.robot import Robot
from retorque.robots.state import State

ROBOT = Robot.load("panda")
TRIALS, N, DT = 2, ROBOT.n, 1e-3
KINDS = (
    *("nan", "inf", "huge", "torque zero", "torque flipped", "torque scaled", "velocity zero", "velocity flipped"),
    *("frozen", "slip", "shape", "clock late", "clock back", "clock nan", "clock ahead"),
    *("nominal nan", "nominal shape", "nominal huge", "adapter raises", "adapter nan", "adapter huge"),
    *("observe raises", "learn raises", "learn stops"),
)


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


class Mess:
    """Draws which faults hold, on which trial and joint, and makes reports and nominal torques of it."""

    def __init__(self, seed: int):
        self.rng = np.random.default_rng(seed)
        self.until: dict[str, int] = {}
        self.where: dict[str, tuple[int | slice, int | slice]] = {}
        self.frozen = np.zeros((2, TRIALS, N))
        self.tick, self.back = 0, 0.0

    def draw(self) -> set[str]:
        """The faults of this tick."""
        rng = self.rng
        if rng.random() < 0.01:
            kind = str(rng.choice(KINDS))
            self.until[kind] = self.tick + int(rng.choice([1, 3, 20, 200]))
            joint = int(rng.integers(N)) if rng.random() < 0.7 else slice(None)
            self.where[kind] = (int(rng.integers(TRIALS)), joint)
            if kind == "clock back":
                self.back += rng.uniform(0.1, 5.0)
        return {kind for kind, end in self.until.items() if end > self.tick}

    def report(self, sent: np.ndarray, faults: set[str]) -> State:
        """What the robot says."""
        rng, t = self.rng, self.tick * DT
        rate = 1.5 + 0.1 * np.arange(N)
        q = ROBOT.home + 0.3 * np.sin(rate * t) + 1e-4 * rng.standard_normal((TRIALS, N))
        v = 0.3 * rate * np.cos(rate * t) + 1e-3 * rng.standard_normal((TRIALS, N))
        rows = {"q": q, "v": v, "t": sent.copy()}
        if "frozen" not in faults:
            self.frozen[:] = q, v
        for kind in faults:
            at = self.where[kind]
            if kind in ("nan", "inf", "huge"):
                rows[str(rng.choice(["q", "v", "t"]))][at] = {"nan": np.nan, "inf": np.inf, "huge": 1e300}[kind]
            elif kind.startswith("torque"):
                rows["t"][at] *= {"torque zero": 0.0, "torque flipped": -1.0, "torque scaled": 1.7}[kind]
            elif kind.startswith("velocity"):
                rows["v"][at] *= {"velocity zero": 0.0, "velocity flipped": -1.0}[kind]
            elif kind == "frozen":
                rows["q"][at], rows["v"][at] = self.frozen[0][at], self.frozen[1][at]
            elif kind == "slip":
                rows["q"][at] += 0.15
        stamp = t - self.back
        if "clock late" in faults:
            stamp -= 0.003
        if "clock nan" in faults:
            stamp = np.nan
        if "clock ahead" in faults:
            stamp += 0.05
        if "shape" in faults:
            return State(stamp, np.zeros(3), np.zeros((5, 2)), np.zeros(()))
        return State(stamp, rows["q"], rows["v"], rows["t"])

    def nominal(self, faults: set[str]) -> np.ndarray:
        """What the controller wants."""
        torque = 0.2 * ROBOT.torque_limit * np.sin(self.tick * DT + np.arange(TRIALS)[:, None])
        torque = np.broadcast_to(torque, (TRIALS, N)).copy()
        if "nominal nan" in faults:
            torque[self.where["nominal nan"]] = np.nan
        if "nominal huge" in faults:
            torque[self.where["nominal huge"]] = -1e12
        return np.zeros(4) if "nominal shape" in faults else torque


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
    if np.any(supervisor.gain < 1.0) or supervisor.health.any():
        assert supervisor.health.any()  # coded
    mess.tick += 1
    return out


def play(ticks: int, seed: int) -> Supervisor:
    """So many ticks of faults, then ten clean seconds."""
    adapter, mess = Moody(), Mess(seed)
    supervisor = Supervisor(adapter, SupervisorSettings(enable_ramp=0.05, rearm=2.0))
    sent = np.zeros((TRIALS, N))
    for _ in range(ticks):
        sent = turn(supervisor, adapter, mess, sent, mess.draw())
    mess.until.clear()
    for _ in range(8000):
        sent = turn(supervisor, adapter, mess, sent, set())
        if mess.tick > ticks + 500 and not supervisor.health.any() and np.all(supervisor.gain == 1.0):
            break
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
