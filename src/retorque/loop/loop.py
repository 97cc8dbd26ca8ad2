"""The one loop: policy, controller, adapter, plant, tick by tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.control.action import Action
from retorque.control.controller import Controller
from retorque.loop.adapter import Adapter
from retorque.loop.learner import InlineLearner, ThreadLearner
from retorque.loop.plant import Plant, Simulation
from retorque.loop.policy import Policy
from retorque.loop.trace import Trace
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.work.errors import RetorqueError


@dataclass(slots=True)
class Tick:
    """What went through the loop in one tick."""

    state: State
    """What the plant reported."""
    action: Action
    """What the policy asked for."""
    nominal: Command
    """What the controller wanted the ideal robot to be told."""
    command: Command
    """What the plant was told."""


class Loop:
    """A policy, a controller and an adapter around a plant; `tick` is one turn, and whoever calls it owns the `for`.

    Args:
        plant: starts where it is now.
        policy: acts at its own period.
        controller: turns actions into commands for the ideal robot.
        adapter: corrects torques; None where the plant takes positions, or nothing is to be corrected.
        learner: who calls the adapter's `learn`; default: the tick itself.
    """

    def __init__(
        self,
        plant: Plant,
        policy: Policy,
        controller: Controller,
        adapter: Adapter | None = None,
        *,
        learner: InlineLearner | ThreadLearner | None = None,
    ):
        if adapter is not None and plant.takes != "torque":
            raise RetorqueError(f"an adapter corrects torques, but this robot takes {plant.takes}s; leave it out")
        if adapter is not None and abs(adapter.timestep - plant.timestep) > 1e-9:
            raise RetorqueError(
                f"the adapter runs at {1.0 / adapter.timestep:.0f} Hz, the robot at {1.0 / plant.timestep:.0f} Hz; "
                f"make the adapter with timestep={plant.timestep}"
            )
        self.plant, self.adapter = plant, adapter
        self._learner = learner or (InlineLearner(adapter) if adapter is not None else None)
        self._fresh, self._acted_at, self._act_at = True, -np.inf, -np.inf
        self._action = Action()
        self._begin(policy, controller)

    def switch(self, policy: Policy, controller: Controller, *, forget: bool = False) -> None:
        """Go on with another policy and controller; the adapter carries on, or forgets what it learnt."""
        if self.adapter is not None:
            if forget:
                self.adapter.reset()
            else:
                self.adapter.carry()
        self._begin(policy, controller)

    def tick(self) -> Tick:
        """Read, observe, learn where it is due, act, command, correct, write."""
        state = self.plant.read()
        if self._fresh:
            self._fresh = False
            self.policy.reset(state)
            self.controller.reset(state)
        adapter = self.adapter
        if adapter is not None:
            adapter.observe(state)
            assert self._learner is not None
            self._learner.turn()
        if not self._acted_at <= state.time < self._act_at:  # earlier: the robot's clock was set back
            self._acted_at, self._act_at = state.time, state.time + self.policy.period - 1e-9
            self._action = self.policy.act(state)
        nominal = self.controller.command(state, self._action)
        command = nominal
        if adapter is not None:
            assert nominal.torque is not None
            command = Command(torque=adapter.correct(state, nominal.torque), gripper=nominal.gripper)
        self.plant.write(command)
        return Tick(state, self._action, nominal, command)

    def _begin(self, policy: Policy, controller: Controller) -> None:
        if controller.gives != self.plant.takes:
            raise RetorqueError(
                f"{type(controller).__name__} gives {controller.gives}s, but this robot takes {self.plant.takes}s"
            )
        self.policy, self.controller = policy, controller
        self._fresh, self._acted_at, self._act_at = True, -np.inf, -np.inf


def run(
    loop: Loop,
    duration: float,
    *,
    before: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
    every: int = 10,
) -> Trace:
    """Tick for a while and keep what happened.

    Args:
        loop: goes on where it is.
        duration: [s]
        before: called with the number of each tick just before it (a push, a payload picked up).
        progress: called with the number of ticks done since the last call.
        every: keep every so many ticks.
    """
    plant, dt = loop.plant, loop.plant.timestep
    truth = plant if isinstance(plant, Simulation) else None
    kept = round(duration / dt) // every
    position: list[np.ndarray] = []
    torque: list[np.ndarray] = []
    for tick in range(1, round(duration / dt) + 1):
        if before is not None:
            before(tick - 1)
        done = loop.tick()
        if tick % every == 0:
            at = done.state.position if truth is None else truth.position
            sent = done.command.torque
            position.append(np.array(at))
            torque.append(np.zeros_like(at) if sent is None else np.array(sent))
            if progress is not None:
                progress(every)
    return Trace(np.arange(1, kept + 1) * every * dt, np.array(position), np.array(torque))
