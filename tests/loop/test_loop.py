"""The loop: order of calls, segments, events, what is recorded."""

from __future__ import annotations

import numpy as np

from retorque.control import DirectTorque, TorqueAction
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Segment, run
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.target import Target

PANDA = Robot.load("panda")


class Hold:
    """The gravity torque at home plus a constant."""

    def __init__(self, duration: float, extra: float = 0.0):
        self.duration = duration
        self.times: list[float] = []
        self._torque = np.broadcast_to(RigidBody(PANDA).gravity(PANDA.home) + extra, (2, 7))

    def at(self, time: float) -> TorqueAction:
        self.times.append(time)
        return TorqueAction(self._torque)


class Noting(Adapter):
    """Changes nothing and notes what is called."""

    learn_every = 20

    def __init__(self) -> None:
        super().__init__(PANDA, 2)
        self.calls: list[str] = []

    def reset(self) -> None:
        self.calls.append("reset")

    def observe(self, state) -> None:
        self.calls.append("observe")

    def learn(self) -> None:
        self.calls.append("learn")

    def correct(self, state, nominal_torque):
        self.calls.append("correct")
        return nominal_torque


def _target() -> Target:
    return Target(PANDA, Parameters.ideal(PANDA, 2), threads=1)


def test_a_tick_is_observe_then_learn_then_correct() -> None:
    adapter = Noting()
    run(_target(), [Segment(Hold(0.1), DirectTorque())], adapter)
    assert adapter.calls.count("observe") == adapter.calls.count("correct") == 100
    assert adapter.calls.count("learn") == 5
    assert adapter.calls[:3] == ["observe", "learn", "correct"]
    assert adapter.calls[3:5] == ["observe", "correct"]


def test_each_segments_clock_starts_at_zero_and_reset_is_asked_for() -> None:
    adapter, first, second = Noting(), Hold(0.05), Hold(0.03)
    segments = [Segment(first, DirectTorque()), Segment(second, DirectTorque(), reset_adapter=True)]
    trace = run(_target(), segments, adapter)
    assert first.times[0] == second.times[0] == 0.0
    assert (len(first.times), len(second.times)) == (50, 30)
    assert adapter.calls.count("reset") == 1
    assert adapter.calls[: adapter.calls.index("reset")].count("correct") == 50
    np.testing.assert_allclose(trace.time, np.arange(1, 9) * 0.01)


def test_trace_holds_true_positions_commands_and_counts_progress() -> None:
    done: list[int] = []
    target = _target()
    trace = run(target, [Segment(Hold(0.1), DirectTorque())], Noting(), progress=done.append, every=5)
    assert trace.position.shape == trace.torque.shape == (20, 2, 7)
    assert sum(done) == 100
    np.testing.assert_array_equal(trace.position[-1], target.position)
    np.testing.assert_allclose(trace.torque[0], Hold(1.0).at(0.0).torque)


def test_external_torque_and_events_come_at_their_time() -> None:
    happened: list[float] = []
    target = _target()

    def external(time: float) -> np.ndarray:
        return np.full((2, 7), 5.0 if time >= 0.05 else 0.0)

    events = {30: lambda: happened.append(target.time)}
    trace = run(target, [Segment(Hold(0.1), DirectTorque())], Noting(), external=external, events=events)
    np.testing.assert_allclose(happened, [0.03])
    moved = np.abs(trace.position - PANDA.home).max(axis=(1, 2))
    assert moved[4] < 1e-9 and moved[-1] > 1e-3
