"""The planner as a policy of the one loop: it keeps the window, asks its workers, and acts by the plan in force."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from retorque.loop.health import Health
from retorque.physics.dynamics import Dynamics
from retorque.plan.feedback import PlanAction
from retorque.plan.modelling.model import Model
from retorque.plan.modelling.window import Samples, SampleWindow
from retorque.plan.modelling.window_fit import WindowFit
from retorque.plan.plan import Plan
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class Workers(Protocol):
    """Planner and modeller, wherever they run."""

    plan: Plan | None
    model: Model

    def reset(self) -> None:
        """A run begins."""

    def turn(self, samples: Samples, estimate: Array) -> None:
        """A sample has come."""


class MpcPolicy:
    """Acts by the newest plan.

    Each tick the sample joins the window, and the state now is taken from the end of the smoothed window (the last
    `smoothed` samples, with the parameters in force, first state unknown), never from the sample itself. With no plan
    left to follow, the last input fades to rest.

    Args:
        dynamics: of the robot.
        fit: smooths the window.
        workers: planner and modeller.
        length: samples in the window.
        smoothed: samples of the smoothed state; 0 takes a state as it is reported (the paper's leak with `--state
            true`, where the report is the truth).
    """

    period = 0.0

    def __init__(self, dynamics: Dynamics, fit: WindowFit, workers: Workers, *, length: int = 101, smoothed: int = 12):
        if not 0 <= smoothed <= length:
            raise RetorqueError(f"the smoothed window cannot be longer than the buffer of {length} samples")
        self.dynamics, self.fit, self.workers, self.smoothed = dynamics, fit, workers, smoothed
        n = dynamics.robot.n
        self.window = SampleWindow(length, 2 * n, dynamics.inputs, dynamics.timestep)
        self.health = Health.OK
        """Codes of this tick."""
        self._fade = 0.8

    def reset(self, state: State) -> None:
        self.window.reset()
        self.workers.reset()
        self.estimate = np.concatenate([state.position, state.velocity])
        self.truth: Array | None = None
        """(2 n,) true state, where the paper's leak is wanted."""
        self._last = np.zeros(self.dynamics.inputs)
        self.age = 0.0
        """Of the plan in force [s]."""
        self.codes: dict[str, int] = {}

    def act(self, state: State) -> PlanAction:
        measured = np.concatenate([state.position, state.velocity])
        sent = np.asarray(state.torque, dtype=float)[self.dynamics.actuated]
        self.health = Health.OK
        if not self.window.add(state.time, measured, sent):
            self.health |= Health.BAD_CLOCK if np.all(np.isfinite(measured)) else Health.BAD_STATE
        now = self.window.time
        if self.window.count >= 2:
            samples = self.window.samples()
            self.estimate = self._smoothed(samples)
            self.workers.turn(samples, self.estimate)
        elif self.window.count == 1:
            if self.smoothed == 0 or np.all(np.isfinite(measured)):
                self.estimate = measured if self.truth is None else self.truth
            self.workers.turn(self.window.samples(), self.estimate)
        return self._action(now)

    def _smoothed(self, samples: Samples) -> Array:
        """The state now."""
        if self.truth is not None:
            return self.truth
        if self.smoothed == 0:
            return samples.states[-1]
        model = self.workers.model
        recent = samples.last(self.smoothed + 1).less(model.offset)
        found = self.fit.fit(recent, model.p, np.zeros((0, 0)), free=False, iterations=3)
        if found is None or not np.all(np.isfinite(found.state)):
            return samples.states[-1]
        return found.state

    def _action(self, now: float) -> PlanAction:
        plan, size = self.workers.plan, len(self.estimate)
        if plan is None or not np.isfinite(now) or now >= plan.end + 0.5 * plan.timestep:
            self.health |= Health.STALE
            self._last = self._fade * self._last
            return PlanAction(self._last, np.zeros((len(self._last), size)), self.estimate, self.estimate)
        self.age = now - plan.start
        row = plan.index(now)
        self._last = plan.inputs[row]
        return PlanAction(plan.inputs[row], plan.gains[row], plan.states[row], self.estimate)
