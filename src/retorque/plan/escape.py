"""A way out of local minima: a search over long, coarse sequences of inputs, beside iLQR.

A terminal cost alone leaves a heavy pole hanging: every small change of the inputs makes it worse. The search draws
waves, rolls them out, and draws again around the best (cross-entropy method); where a trajectory comes nearest to the
target it ends, so that it is as long as it needs to be. iLQR then makes a plan of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.plan.cost import QuadraticCost
from retorque.plan.ilqr import ILQR, Trajectory
from retorque.plan.pumping import pumped as pumped_inputs
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class EscapeSettings:
    """Settings of the search."""

    duration: float = 8.0
    """Longest plan [s]."""
    samples: int = 128
    """Trajectories a generation."""
    generations: int = 12
    """Of samples."""
    elite: int = 12
    """Samples that the next generation is drawn around."""
    knot: float = 0.2
    """Between the points of an input, which is straight between them [s]."""
    frequencies: tuple[float, float] = (0.3, 1.3)
    """Of the first waves [Hz]."""
    price: float = 5.0
    """Cost of a second of plan: a shorter one is better."""
    iterations: int = 40
    """Of iLQR on what was found."""
    emphasis: float = 50.0
    """By how much the end counts more in plans that arrive: with the task's weights their effort would outweigh it, and
    the last stretch to the target would be put off again and again."""
    reach: float = 3.0
    """How far from the target such plans may end: one that a new estimate of the parameters has thrown off is brought
    back there, instead of being let go."""


class Escape:
    """Searches for a plan that ends near the target.

    Args:
        ilqr: whose dynamics and limits hold.
        cost: the task's.
        settings: sizes of the search.
        seed: of the samples.
    """

    def __init__(self, ilqr: ILQR, cost: QuadraticCost, settings: EscapeSettings | None = None, seed: int = 0):
        self.ilqr, self.cost, self.settings = ilqr, cost, settings or EscapeSettings()
        self._rng = np.random.default_rng(seed)
        self._steps = round(self.settings.duration / ilqr.dynamics.timestep)
        self.emphasised = emphasised(cost, self.settings.emphasis)
        self._memory: tuple[float, Array] | None = None

    def merit(self, states: Array, steps: int) -> float:
        """What a plan of so many steps is worth: how far from the target it ends, and how late; less is better."""
        return self.cost.ending(states) + self.settings.price * steps * self.ilqr.dynamics.timestep

    def cost_of(self, states: Array) -> QuadraticCost:
        """What a plan is improved by that ended so far."""
        near = np.linalg.norm(self.cost.error(states[-1])) < self.settings.reach
        return self.emphasised if near else self.cost

    def reset(self) -> None:
        """Forget what earlier searches found."""
        self._memory = None

    def search(self, x: Array, p: Array | None, start: float = 0.0) -> Trajectory | None:
        """The best trajectory that was found from a state at a time on; goes on from the last search's best."""
        s, dt, limit = self.settings, self.ilqr.dynamics.timestep, self.ilqr.limit
        steps, size = self._steps, len(self.ilqr.limit)
        times = np.arange(steps) * dt
        knots = np.linspace(0.0, steps * dt, 1 + round(steps * dt / s.knot))
        where, share = _places(times, knots)
        drawn = self._waves(knots) * limit
        if self._memory is not None:
            late = start - self._memory[0] + knots
            old = np.stack([np.interp(late, knots, column) for column in self._memory[1].T], axis=-1)
            half = s.samples // 2
            drawn[:half] = old + 0.2 * limit * self._rng.standard_normal((half, *old.shape))
            drawn[0] = old
        rows = np.minimum(np.round(knots / dt).astype(int), steps - 1)
        pumped = pumped_inputs(self.ilqr, self.cost, x, p, steps)[: s.samples - 1, rows]
        drawn[1 : 1 + len(pumped)] = pumped
        mean, spread = drawn[0], np.zeros_like(drawn[0])
        best, best_inputs, best_value, best_steps = drawn[0], np.zeros((0, size)), np.inf, 0
        for generation in range(s.generations):
            if generation:
                drawn = mean + spread * self._rng.standard_normal((s.samples, len(knots), size))
                drawn[0], drawn[1] = best, mean
            drawn = np.clip(drawn, -limit, limit)
            inputs = drawn[:, where] * (1.0 - share)[:, None] + drawn[:, where + 1] * share[:, None]
            value, at = self._values(x, inputs, p)
            order = np.argsort(value, kind="stable")[: s.elite]
            if value[order[0]] < best_value:
                best_value, best_steps = float(value[order[0]]), int(at[order[0]])
                best, best_inputs = drawn[order[0]].copy(), inputs[order[0], :best_steps]
            if generation == 0:
                mean, spread = best, np.broadcast_to((0.35 if self._memory is None else 0.2) * limit, best.shape)
            else:
                elite = drawn[order]
                mean, spread = np.mean(elite, axis=0), 0.9 * np.std(elite, axis=0) + 0.02 * limit
        if not np.isfinite(best_value):
            return None
        self._memory = (start, best)
        horizon = self.ilqr.settings.horizon
        if best_steps < horizon:
            best_inputs = np.concatenate([best_inputs, np.zeros((horizon - best_steps, size))])
        found = [self.ilqr.solve(x, self.emphasised, best_inputs, p=p, iterations=s.iterations)]
        for length in sorted(
            {horizon, (horizon + steps) // 2}
        ):  # from rest: all that a robot with all its motors needs
            rest = np.zeros((length, size))
            found.append(self.ilqr.solve(x, self.emphasised, rest, p=p, iterations=s.iterations))
        there = [each for each in found if each is not None]
        return min(there, key=lambda each: self.merit(each.states, len(each.inputs)), default=None)

    def _waves(self, knots: Array) -> Array:
        """First samples (samples, knots, inputs), of size one: sines of any phase that slowly change their pace."""
        count, size = self.settings.samples, len(self.ilqr.limit)
        low, high = (2.0 * np.pi * f for f in self.settings.frequencies)
        rng = self._rng
        pace = rng.uniform(low, high, (count, 1, size)) + 0.15 * rng.standard_normal((count, 1, size))
        phase = rng.uniform(0.0, 2.0 * np.pi, (count, 1, size))
        height = 1.3 * rng.uniform(0.3, 1.0, (count, 1, size))
        return height * np.sin(pace * knots[:, None] + phase) + 0.15 * rng.standard_normal((count, len(knots), size))

    def _values(self, x: Array, inputs: Array, p: Array | None) -> tuple[Array, Array]:
        """The merit of each sample where it is best, and the step at which that is."""
        paths = self.ilqr.rollouts(x, inputs, p)
        error = self.cost.error(paths)
        ending = 0.5 * np.sum((error @ self.cost.final) * error, axis=-1)
        steps = np.arange(paths.shape[1])
        value = np.where(np.isfinite(ending), ending, np.inf)
        value = value + self.settings.price * self.ilqr.dynamics.timestep * steps
        first = self.ilqr.settings.horizon // 2
        at = first + np.argmin(value[:, first:], axis=1)
        return value[np.arange(len(value)), at], at


def emphasised(cost: QuadraticCost, times: float) -> QuadraticCost:
    """The same cost with its end so many times as important."""
    out = object.__new__(QuadraticCost)
    out.__dict__.update(cost.__dict__)
    out.final = times * cost.final
    return out


def _places(times: Array, knots: Array) -> tuple[Array, Array]:
    """Which knot each time comes after, and the share of the way to the next."""
    where = np.clip(np.searchsorted(knots, times, side="right") - 1, 0, len(knots) - 2)
    return where, (times - knots[where]) / (knots[where + 1] - knots[where])
