"""Runs to hold NumPy and the compiled core against each other, clean and with everything that goes wrong on a robot."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.joint_impedance import JointImpedance
from retorque.loop.adapter import Adapter
from retorque.loop.learner import InlineLearner
from retorque.loop.loop import Loop
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, gains
from retorque.work.array import Array


@dataclass(frozen=True)
class Recording:
    """What one robot reported and what its controller asked for, tick by tick."""

    time: Array
    """(ticks,) stamps [s]."""
    report: Array
    """(ticks, 3, n) positions [rad], velocities [rad/s], torques [N·m]."""
    nominal: Array
    """(ticks, n) [N·m]"""
    reset: Array
    """(ticks,) where everything learnt is forgotten just before the tick."""
    carry: Array
    """(ticks,) where another controller takes over just before the tick."""


@dataclass(frozen=True)
class Replayed:
    """What an adapter answered to a recording."""

    torque: Array
    """(ticks, n) [N·m]"""
    health: Array
    """(ticks,) codes."""


def record(robot: Robot, ticks: int, seed: int, *, payload_step: float = 0.5, timestep: float = 1e-3) -> Recording:
    """A run of a simulated robot with hidden parameters, sensor noise, contact and a payload that is picked up."""
    settings = TrackingSettings(
        trials=1, seed=seed, duration=ticks * timestep, noise=True, contact=True, payload_step=payload_step
    )
    task = TrackingTask(robot, settings)
    target = task.target(threads=1, timestep=timestep)
    softer = max(1.0, timestep / 1e-3)  # gains of 1000 Hz would shake a robot that is told less often
    stiffness, damping = gains(robot, task.profile)
    controller = JointImpedance(robot, stiffness / softer, damping / softer)
    loop, events = Loop(target, task.reference, controller), task.events(target)
    time, report, nominal = np.empty(ticks), np.empty((ticks, 3, robot.n)), np.empty((ticks, robot.n))
    for tick in range(ticks):
        events(tick)
        done = loop.tick()
        state = done.state
        assert done.nominal.torque is not None
        time[tick] = state.time
        report[tick] = state.position[0], state.velocity[0], state.torque[0]
        nominal[tick] = done.nominal.torque[0]
    never = np.zeros(ticks, dtype=bool)
    return Recording(time, report, nominal, never, never)


def troubled(clean: Recording, robot: Robot, seed: int) -> Recording:
    """The same run with rows of NaN, gaps, clocks that repeat, run back or are set anew, saturation, frozen joints, a
    dead encoder, absurd reports, nominal torques that are not finite, a reset and a change of controllers."""
    rng = np.random.default_rng(seed)
    time, report, nominal = clean.time.copy(), clean.report.copy(), clean.nominal.copy()
    reset, carry = clean.reset.copy(), clean.carry.copy()
    (ticks, n), step = nominal.shape, float(time[1] - time[0])

    def spans(count: int, longest: int) -> list[slice]:
        starts = rng.integers(0, ticks, max(1, count))
        return [slice(int(s), int(s + rng.integers(1, longest + 1))) for s in starts]

    for span in [*spans(ticks // 200, 6), *spans(2, ticks // 40)]:  # short ones are bridged, long ones are not
        report[span, rng.integers(3), rng.integers(n)] = rng.choice([np.nan, np.inf, -np.inf])
    for span in spans(ticks // 400, 40):
        report[span] = report[span.start]  # frozen in motion
    for span in spans(ticks // 800, 30):
        report[span, 2] = 1.5 * np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 100.0)
    for span in spans(ticks // 800, 30):
        report[span, 0, rng.integers(n)] += rng.choice([-1.0, 1.0]) * 30.0
    for span in spans(ticks // 400, ticks // 40):
        nominal[span, rng.integers(n)] = np.nan
    for span in spans(ticks // 400, 4):
        time[span] = time[max(span.start - 1, 0)]  # repeated
    for start in rng.integers(0, ticks, max(1, ticks // 400)):
        time[start:] += step * rng.integers(1, 30)  # missed ticks
    for start in rng.integers(0, ticks, 2):
        time[start:] -= 5.0  # set back
    time[rng.integers(0, ticks, max(1, ticks // 400))] = np.nan
    time += rng.uniform(-0.2 * step, 0.2 * step, ticks)
    dead, joint = slice(int(0.8 * ticks), int(0.9 * ticks)), rng.integers(n)
    report[dead, 0, joint], report[dead, 1, joint] = report[dead.start, 0, joint], 0.0
    reset[int(0.45 * ticks)] = carry[int(0.7 * ticks)] = True
    return replace(clean, time=time, report=report, nominal=nominal, reset=reset, carry=carry)


def joined(first: Recording, second: Recording) -> Recording:
    """One run after the other, on one clock, with everything forgotten between them."""
    reset = second.reset.copy()
    reset[0] = True
    later = second.time - second.time[np.isfinite(second.time)][0] + 2.0 * first.time[-1] - first.time[-2]
    parts = [
        (first.time, later),
        (first.report, second.report),
        (first.nominal, second.nominal),
        (first.reset, reset),
        (first.carry, second.carry),
    ]
    return Recording(*(np.concatenate(both) for both in parts))


def replay(adapter: Adapter, recording: Recording) -> Replayed:
    """What an adapter of one trial (1, n), bare or supervised, answers to a recording; learning is within the tick."""
    learner = InlineLearner(adapter)
    ticks, n = recording.nominal.shape
    torque, health = np.empty((ticks, n)), np.empty(ticks, dtype=np.int64)
    for tick in range(ticks):
        if recording.reset[tick]:
            adapter.reset()
        if recording.carry[tick]:
            adapter.carry()
        q, qd, applied = recording.report[tick][:, None]
        state = State(float(recording.time[tick]), q, qd, applied)
        adapter.observe(state)
        learner.turn()
        torque[tick] = adapter.correct(state, recording.nominal[tick][None])[0]
        health[tick] = adapter.health[0]
    return Replayed(torque, health)
