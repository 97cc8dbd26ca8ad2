"""The planning worker's job: from a predicted state and the newest parameters to the next plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from retorque.plan.cost import Cost, QuadraticCost
from retorque.plan.escape import Escape
from retorque.plan.ilqr import ILQR, Trajectory
from retorque.plan.plan import Plan
from retorque.work.array import Array

FIRST = 60
"""Iterations of the plan before a run."""


class Planner:
    """Plans again and again, each time from where the last plan left off.

    A plan may be longer than the horizon when a search found one that needs longer to reach the target; it is then
    shortened from its beginning as time goes on, down to the horizon.

    Args:
        ilqr: the solver.
        cost: the task's.
        escape: the search beside it; None: plain iLQR.
        near: how far from the target a plan may end that arrives there.
    """

    def __init__(self, ilqr: ILQR, cost: QuadraticCost, escape: Escape | None = None, near: float = 0.5):
        self.ilqr, self.cost, self.escape, self.near = ilqr, cost, escape, near
        self.version = 0

    def reset(self) -> None:
        """Forget the plans so far."""
        self.version = 0
        if self.escape is not None:
            self.escape.reset()

    def replan(
        self,
        last: Plan | None,
        x: Array,
        start: float,
        p: Array | None,
        *,
        parameters: int = 0,
        cost: Cost | None = None,
        over: Callable[[], bool] = lambda: False,
    ) -> Plan | None:
        """The next plan; None where even doing nothing diverges.

        Args:
            last: the plan in force.
            x: (2 n,) predicted state at `start`.
            start: when the plan begins [s].
            p: the selection's vector.
            parameters: version of the parameters.
            cost: another objective than the task's (exploration).
            over: whether the time is up; the best plan so far is returned.
        """
        horizon = self.ilqr.settings.horizon
        around = None
        if last is None:
            inputs = np.zeros((horizon, len(self.ilqr.limit)))
        else:
            remaining = int(np.round((last.end - start) / last.timestep))
            horizon = horizon if cost is not None else max(horizon, remaining)
            states, inputs, gains = last.shifted(start, horizon)
            around = (states, gains)
        chosen: Cost = self.cost if cost is None else cost
        if cost is None and self.escape is not None and last is not None:
            chosen = self.escape.cost_of(last.states)
        found = self.ilqr.solve(x, chosen, inputs, p=p, around=around, over=over)
        return None if found is None else self._made(found, start, parameters)

    def first(self, x: Array, start: float, p: Array | None) -> Plan | None:
        """The plan before a run begins: nobody waits, so iLQR may converge and the search takes part."""
        inputs = np.zeros((self.ilqr.settings.horizon, len(self.ilqr.limit)))
        found = self.ilqr.solve(x, self.cost, inputs, p=p, iterations=FIRST)
        if found is None:
            return None
        plan = self._made(found, start, 0)
        beside = None if self.arrives(plan) else self.search(x, start, p)
        return beside if beside is not None and self.better(beside, plan) else plan

    def search(self, x: Array, start: float, p: Array | None, *, parameters: int = 0) -> Plan | None:
        """A plan by the search beside iLQR."""
        if self.escape is None:
            return None
        found = self.escape.search(x, p, start)
        return None if found is None else self._made(found, start, parameters)

    def better(self, candidate: Plan, now: Plan) -> bool:
        """Whether a plan that was found beside should replace the one in force."""
        if self.escape is None:
            return False
        late = max(0, round((candidate.end - now.end) / now.timestep))
        return self.escape.merit(candidate.states, late) < self.escape.merit(now.states, 0)

    def arrives(self, plan: Plan) -> bool:
        """Whether a plan ends near the target."""
        return bool(np.linalg.norm(self.cost.error(plan.states[-1])) < self.near)

    def predict(self, plan: Plan | None, x: Array, now: float, start: float, p: Array | None) -> Array:
        """The state at `start` when the plan in force is followed from a state now."""
        dt = self.ilqr.dynamics.timestep
        steps = max(0, int(np.round((start - now) / dt)))
        if steps == 0 or plan is None:
            inputs = np.zeros((steps, len(self.ilqr.limit)))
            return x if steps == 0 else self._end(self.ilqr.rollouts(x, inputs[None], p)[0], x)
        rows = [plan.index(now + (k + 0.5) * dt) for k in range(steps)]
        for row in rows:
            u = np.clip(plan.inputs[row] + plan.gains[row] @ (x - plan.states[row]), -self.ilqr.limit, self.ilqr.limit)
            x = self.ilqr.dynamics.step(x, u, p)
        return x

    @staticmethod
    def _end(path: Array, x: Array) -> Array:
        return path[-1] if np.all(np.isfinite(path[-1])) else x

    def _made(self, found: Trajectory, start: float, parameters: int) -> Plan:
        self.version += 1
        plan = self.ilqr.plan(found, start, self.version, parameters)
        if not plan.gains.any():  # no iteration was made: hold the inputs without feedback
            plan = replace(plan, iterations=0)
        return plan
