"""Planner and modeller beside the loop, in virtual time: what takes time comes late, and every run is repeatable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.plan.cost import Cost
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.plan.plan import Plan
from retorque.plan.planner import Planner
from retorque.plan.start_time import StartTime
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Durations:
    """What work takes in virtual time."""

    iteration: float = 0.002
    """An iteration of iLQR [s]."""
    overhead: float = 0.002
    """A solve besides its iterations [s]."""
    identification: float = 0.01
    """An identification, samples to parameters [s]."""
    search: float = 0.3
    """A search for a way out of a local minimum, beside the solves [s]."""
    jitter: float = 0.0
    """Standard deviation of the logarithm of a solve's duration, drawn for each."""


class VirtualWorkers:
    """A planner and a modeller that answer after virtual time has passed.

    Args:
        planner: makes plans.
        modeller: keeps the parameters.
        start_time: when plans begin.
        durations: what work takes.
        exploration: makes the objective of exploring from a model, where there is one.
        seed: of the jitter.
    """

    def __init__(
        self,
        planner: Planner,
        modeller: Modeller,
        start_time: StartTime,
        durations: Durations,
        *,
        exploration: Callable[[Model], Cost] | None = None,
        seed: int = 0,
    ):
        self.planner, self.modeller, self.start_time, self.durations = planner, modeller, start_time, durations
        self.exploration, self._seed = exploration, seed
        self.reset()

    def reset(self) -> None:
        """A run begins."""
        self.planner.reset()
        self.modeller.reset()
        self.start_time.reset()
        self._rng = np.random.default_rng(self._seed)
        self.model = self.modeller.model
        self.plan: Plan | None = None
        self._next_model: tuple[float, Model] | None = None
        self._next_plan: tuple[float, Plan] | None = None
        self._found: tuple[float, Plan] | None = None
        self._searched_until = -np.inf
        self.late = 0
        """Plans that came after they should have begun."""

    def turn(self, samples: Samples, estimate: Array) -> None:
        """A sample has come: results that are due are swapped in, and idle workers begin anew.

        Args:
            samples: the newest.
            estimate: (2 n,) the state now.
        """
        now = samples.time
        if self._next_model is not None and now >= self._next_model[0] - 1e-9:
            self.model, self._next_model = self._next_model[1], None
        if self._next_plan is not None and now >= self._next_plan[0] - 1e-9:
            self._take(self._next_plan[1], now)
            self._next_plan = None
        if self._found is not None and now >= self._found[0] - 1e-9:
            candidate, self._found = self._found[1], None
            if self.plan is None or self.planner.better(candidate, self.plan):
                self.plan, self._next_plan = candidate, None
        if self._next_model is None:
            self._next_model = (now + self.durations.identification, self.modeller.update(samples))
        p = self.modeller.free.whole(self.model.p)
        if self._next_plan is None:
            self._plan(now, estimate, p)
        self._search(now, estimate, p)

    def _take(self, plan: Plan, now: float) -> None:
        if plan.start < now - 0.5 * plan.timestep:
            self.late += 1
        self.plan = plan

    def _plan(self, now: float, estimate: Array, p: Array) -> None:
        """Begin a solve; the very first is made before the run."""
        if self.plan is None:
            self.plan = self.planner.first(estimate, now, p)
            return
        dt = self.planner.ilqr.dynamics.timestep
        lead = dt * np.ceil(self.start_time.lead() / dt - 1e-6)
        x = self.planner.predict(self.plan, estimate, now, now + lead, p)
        cost = self.exploration(self.model) if self.exploration is not None and self.model.exploring else None
        plan = self.planner.replan(self.plan, x, now + lead, p, parameters=self.model.version, cost=cost)
        if plan is None:
            return
        took = self.durations.overhead + self.durations.iteration * plan.iterations
        if self.durations.jitter:
            took *= float(np.exp(self.durations.jitter * self._rng.standard_normal()))
        self.start_time.solved(took, plan.iterations)
        self._next_plan = (max(now + took, plan.start), plan)

    def _search(self, now: float, estimate: Array, p: Array) -> None:
        """Begin a search where the plan does not arrive and none is under way."""
        plan = self.plan
        if plan is None or now < self._searched_until - 1e-9 or self.planner.arrives(plan) or self.model.exploring:
            return
        start = now + self.durations.search
        x = self.planner.predict(plan, estimate, now, start, p)
        found = self.planner.search(x, start, p, parameters=self.model.version)
        self._searched_until = start
        if found is not None:
            self._found = (start, found)
