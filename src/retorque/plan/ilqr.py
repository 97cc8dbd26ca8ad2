"""iLQR with input limits: the best plan so far at any time, from where the last one left off (algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.physics.dynamics import Dynamics
from retorque.plan.cost import Cost
from retorque.plan.passes import Step, Trajectory, make_passes
from retorque.plan.plan import Plan
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class PlannerSettings:
    """Settings of iLQR."""

    horizon: int = 100
    """Steps of a plan."""
    iterations: int = 5
    """Most a solve takes."""
    tolerance: float = 1e-4
    """A solve ends when the cost falls by less than this share."""
    damping: float = 1e-6
    """Least that is added to the inputs' Hessian."""
    most_damping: float = 1e8
    """Where a solve gives up."""

    def __post_init__(self) -> None:
        if not 1 <= self.horizon <= 10_000 or not 1 <= self.iterations <= 10_000:
            raise RetorqueError("a plan needs between 1 and 10000 steps, and a solve between 1 and 10000 iterations")


class ILQR:
    """Solves for a plan from a state on; remembers nothing but its damping.

    Args:
        dynamics: of a robot on a fixed base; every motor needs a torque limit.
        settings: horizon and tolerances.
    """

    def __init__(self, dynamics: Dynamics, settings: PlannerSettings | None = None):
        if dynamics.passed:
            raise RetorqueError(f"robot '{dynamics.robot.name}' has a free base; plans are for robots on a fixed one")
        limit = dynamics.input_limit
        if not np.all(np.isfinite(limit)):
            raise RetorqueError("a planner needs a limit on every input; give the joints' torque limits in the card")
        self.dynamics, self.settings, self.limit = dynamics, settings or PlannerSettings(), limit
        self._passes = make_passes(dynamics, limit)

    def solve(
        self,
        x: Array,
        cost: Cost,
        inputs: Array,
        *,
        p: Array | None = None,
        around: tuple[Array, Array] | None = None,
        iterations: int | None = None,
        over: Callable[[], bool] = lambda: False,
    ) -> Trajectory | None:
        """Improve a sequence of inputs; None only where even the first guess diverges.

        Args:
            x: (2 n,) first state.
            cost: the objective.
            inputs: (H, inputs) first guess.
            p: free parameters.
            around: states (H+1, 2 n) and gains (H, inputs, 2 n) of the plan that the guess is from: it is followed
                with its feedback, so that a first state off the plan does not spoil it.
            iterations: most; default: the settings'.
            over: called between iterations: whether the time is up.
        """
        now = self._start(x, cost, np.clip(inputs, -self.limit, self.limit), p, around)
        if now is None:
            return None
        damping = self.settings.damping
        for _ in range(self.settings.iterations if iterations is None else iterations):
            if over():
                break
            step, better = self._passes.iterate(x, cost, now, p, damping)
            now.iterations += 1
            if step is None:
                damping = max(1e-3, 10.0 * damping)
                if damping > self.settings.most_damping:
                    break
                continue
            now.gains = step.gains
            if better is None:
                if -sum(step.expected) < self.settings.tolerance * (1.0 + abs(now.cost)):
                    now.converged = True
                    break
                damping = max(1e-3, 10.0 * damping)
                if damping > self.settings.most_damping:
                    break
                continue
            states, new_inputs, value = better
            fell = now.cost - value
            now.states, now.inputs, now.cost = states, new_inputs, value
            damping = max(self.settings.damping, 0.2 * damping)
            if fell < self.settings.tolerance * (1e-3 + abs(value)):
                now.converged = True
                break
        return now

    def rollouts(self, x: Array, inputs: Array, p: Array | None) -> Array:
        """States (samples, H+1, 2 n) under inputs (samples, H, inputs); not a number where they diverge."""
        return self._passes.rollouts(x, inputs, p)

    def plan(self, trajectory: Trajectory, start: float, version: int, parameters: int) -> Plan:
        """A trajectory as a plan from a time on."""
        return Plan(
            start=start,
            timestep=self.dynamics.timestep,
            states=trajectory.states,
            inputs=trajectory.inputs,
            gains=trajectory.gains,
            cost=trajectory.cost,
            iterations=trajectory.iterations,
            version=version,
            parameters=parameters,
        )

    def _start(
        self, x: Array, cost: Cost, inputs: Array, p: Array | None, around: tuple[Array, Array] | None
    ) -> Trajectory | None:
        """The first trajectory: the guess with its feedback or without, whichever is cheaper, or no input at all."""
        steps, size = inputs.shape
        none = np.zeros((steps, size, 2 * self.dynamics.nv))
        still = np.broadcast_to(x, (steps + 1, len(x))).copy()
        guesses = [(still, inputs, none), (still, np.zeros_like(inputs), none)]
        if around is not None:
            guesses.insert(0, (around[0], inputs, around[1]))
        best: Trajectory | None = None
        for index, (states, guess, gains) in enumerate(guesses):
            if best is not None and index == len(guesses) - 1:
                break  # doing nothing is for where all else diverges
            found = self._passes.forward(x, states, guess, Step(np.zeros_like(guess), gains, (0.0, 0.0)), 0.0, p)
            if found is None:
                continue
            value = cost.value(*found)
            if np.isfinite(value) and (best is None or value < best.cost):
                best = Trajectory(found[0], found[1], none, value)
        return best
