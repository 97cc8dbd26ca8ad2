"""The compiled default adapter against NumPy where something really changes: a payload, one joint, a lasting push."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.default.adapter import Default
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.robot import Robot
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.parity import Recording, replay
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask

AT_ONCE = SupervisorSettings(enable_ramp=0.0)
CHANGE = 1000


def payload(target: Target) -> None:
    p = target.parameters
    target.set_parameters(p.with_payload(p.payload_mass + 2.0))


def bias(target: Target) -> None:
    shifted = target.parameters.torque_bias.copy()
    shifted[:, 2] += 8.0
    target.set_parameters(replace(target.parameters, torque_bias=shifted))


def push(target: Target) -> None:
    target.push_frame("end_effector", np.array([[15.0, 5.0, -10.0]]))


CASES = {"payload": (payload, 1400), "joint": (bias, 1700), "touch": (push, 3000)}
RELEASED = 2700
"""Tick at which a lasting push ends."""


def recorded(core: Path, what: str) -> Recording:
    """A run in which the adapter drives and something changes."""
    robot, (change, ticks) = Robot.load("panda"), CASES[what]
    task = TrackingTask(robot, TrackingSettings(trials=1, seed=3, duration=8.0, noise=True))
    target = task.target(threads=1)
    adapter = CompiledSupervisor(Supervisor(make("default", robot, 1), AT_ONCE), core)
    loop = Loop(target, task.reference, task.controller(), adapter)
    report, nominal = np.empty((ticks, 3, robot.n)), np.empty((ticks, robot.n))
    for tick in range(ticks):
        if tick == CHANGE:
            change(target)
        if what == "touch" and tick == RELEASED:
            target.push_frame("end_effector", np.zeros((1, 3)))
        done = loop.tick()
        report[tick] = done.state.position[0], done.state.velocity[0], done.state.torque[0]
        assert done.nominal.torque is not None
        nominal[tick] = done.nominal.torque[0]
    never = np.zeros(ticks, dtype=bool)
    return Recording(1e-3 * np.arange(ticks), report, nominal, never, never)


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """How often the estimate was opened to a payload or a joint, renewed or let walk under a touch."""
    found = dict.fromkeys(("payload", "joint", "renew", "walk"), 0)
    opened, renewed, walked = Default._open, SquareRootFilter.renew, SquareRootFilter.walk

    def open_to(self, equation, payload, joint, which):
        found["payload"] += int(payload.sum())
        found["joint"] += int(joint.sum())
        opened(self, equation, payload, joint, which)

    def renew(self, trials, part):
        found["renew"] += len(trials)
        renewed(self, trials, part)

    def walk(self, trials, part, deviation):
        found["walk"] += len(trials)
        walked(self, trials, part, deviation)

    with (
        mock.patch.object(Default, "_open", open_to),
        mock.patch.object(SquareRootFilter, "renew", renew),
        mock.patch.object(SquareRootFilter, "walk", walk),
    ):
        yield found


@pytest.mark.parametrize("what", list(CASES))
def test_what_changes_is_told_alike(core: Path, what: str) -> None:
    robot, run = Robot.load("panda"), recorded(core, what)
    compiled = CompiledSupervisor(Supervisor(make("default", robot, 1), AT_ONCE), core)
    with counted() as found:
        expected = replay(Supervisor(make("default", robot, 1), AT_ONCE), run)
    answered = replay(compiled, run)
    assert np.abs(answered.torque - expected.torque).max() <= 1e-9
    assert (answered.health == expected.health).all()
    if what == "touch":
        assert found["renew"] >= 1 and found["walk"] >= 1 and found["payload"] == 0
    else:
        assert found[what] >= 1
