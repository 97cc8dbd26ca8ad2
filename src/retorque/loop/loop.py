"""The one loop: policy, controller, adapter, robot, tick by tick."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from retorque.control.controller import Controller
from retorque.loop.adapter import Adapter
from retorque.robots.state import State
from retorque.work.array import Array


class Policy(Protocol):
    """Anything that acts."""

    duration: float

    def at(self, time: float) -> Any:
        """The action at a time [s]."""


class Plant(Protocol):
    """A robot, or a batch of them: it reports states and takes torques."""

    timestep: float
    trials: int
    position: Array

    def read(self) -> State:
        """What the sensors say now."""

    def step(self, command: Array, external: Array | float = 0.0) -> State:
        """Send a torque for one control period; the next report."""


@dataclass(frozen=True)
class Segment:
    """A stretch of the run under one policy and one controller."""

    policy: Policy
    controller: Controller
    reset_adapter: bool = False
    """Whether the adapter forgets what it learnt when the segment begins."""


@dataclass(frozen=True)
class Trace:
    """What happened: one row a tick."""

    time: Array
    """(ticks,) [s]"""
    position: Array
    """(ticks, trials, n) true positions after each tick [rad]."""
    torque: Array
    """(ticks, trials, n) commands [N·m]."""


def run(
    plant: Plant,
    segments: Sequence[Segment],
    adapter: Adapter,
    *,
    external: Callable[[float], Array] | None = None,
    events: dict[int, Callable[[], None]] | None = None,
    progress: Callable[[int], None] | None = None,
    every: int = 10,
) -> Trace:
    """Drive a plant through segments, one after the other.

    Args:
        plant: starts where it is now.
        segments: policies with their controllers; each policy's clock starts at zero.
        adapter: between controller and plant.
        external: external torque on the joints by time, (trials, n) [N·m].
        events: what to do just before a tick, by tick (a payload picked up).
        progress: called with the number of ticks done since the last call.
        every: record every so many ticks.
    """
    dt = plant.timestep
    ticks = [round(segment.policy.duration / dt) for segment in segments]
    total = sum(ticks)
    state = plant.read()
    kept = total // every
    position = np.empty((kept, *plant.position.shape))
    torque = np.empty_like(position)
    tick = 0
    for segment, count in zip(segments, ticks, strict=True):
        if segment.reset_adapter:
            adapter.reset()
        elif tick:
            adapter.carry()
        for local in range(count):
            if events and tick in events:
                events[tick]()
            adapter.observe(state)
            if adapter.learn_every and tick % adapter.learn_every == 0:
                adapter.learn()
            nominal = segment.controller.torque(state, segment.policy.at(local * dt))
            command = adapter.correct(state, nominal)
            state = plant.step(command, external(tick * dt) if external is not None else 0.0)
            tick += 1
            if tick % every == 0:
                position[tick // every - 1] = plant.position
                torque[tick // every - 1] = command
                if progress is not None:
                    progress(every)
    return Trace(np.arange(1, kept + 1) * every * dt, position, torque)
