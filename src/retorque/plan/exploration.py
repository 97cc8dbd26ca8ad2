"""Objectives that excite what is unknown: the paper's minus confidence, and gain of information."""

from __future__ import annotations

import numpy as np

from retorque.plan.cost import Expansion, QuadraticCost
from retorque.plan.modelling.confidence import Confidence
from retorque.plan.modelling.window_fit import WindowFit
from retorque.work.array import Array

CHANGE = 1e-5
"""By which states are moved for the gradient of a score [rad or rad/s]."""
LEASH = 0.05
"""Share of the task's final weights that stay on, so that exploring does not run away."""


class Exploration:
    """Minimise -gain(x) + the task's effort, with the task's end on a leash; the gain is expanded to first order.

    Args:
        task: its effort, target and final weights.
        weight: of the gain against them.
    """

    def __init__(self, task: QuadraticCost, weight: float):
        self.task, self.weight = task, weight

    def gain(self, states: Array) -> float:
        """How much the states (H+1, 2 n) show."""
        raise NotImplementedError

    def slope(self, states: Array) -> Array:
        """Its gradient, (H+1, 2 n)."""
        raise NotImplementedError

    def value(self, states: Array, inputs: Array) -> float:
        effort = 0.5 * float(np.sum((inputs @ self.task.effort) * inputs))
        return effort + self.ending(states) - self.weight * self.gain(states)

    def ending(self, states: Array) -> float:
        return LEASH * self.task.ending(states)

    def expand(self, states: Array, inputs: Array) -> Expansion:
        plain = self.task.expand(states, inputs)
        gradient = -self.weight * self.slope(states)
        error = self.task.error(states[-1])
        gradient[-1] += LEASH * self.task.final @ error
        hessian = np.stack([np.zeros_like(self.task.final), LEASH * self.task.final])
        return Expansion(gradient, hessian, plain.input_gradient, plain.input_hessian)


class ConfidenceExploration(Exploration):
    """f_exp = -w (section III-C): the scores themselves, by finite differences.

    Args:
        task: the task's cost.
        confidence: the scores.
        timestep: [s]
        weight: of a unit of score.
    """

    def __init__(self, task: QuadraticCost, confidence: Confidence, timestep: float, weight: float = 1.0):
        super().__init__(task, weight)
        self.confidence, self.timestep = confidence, timestep

    def gain(self, states: Array) -> float:
        return float(np.sum(self.confidence.scores(states, self.timestep)))

    def slope(self, states: Array) -> Array:
        """Each state touches two terms of the sum at most: three colours of states are moved at a time."""
        out = np.zeros_like(states)
        for k in range(len(states)):
            near = slice(max(0, k - 1), k + 3)
            here = states[near].copy()
            row = k - near.start
            for i in range(states.shape[1]):
                kept = here[row, i]
                ends = []
                for sign in (1.0, -1.0):
                    here[row, i] = kept + sign * CHANGE
                    ends.append(float(np.sum(self.confidence.scores(here, self.timestep))) if len(here) > 1 else 0.0)
                here[row, i] = kept
                out[k, i] = (ends[0] - ends[1]) / (2.0 * CHANGE)
        return out


class InformationExploration(Exploration):
    """Gain of information: how much the plan's samples would add to what is known, log det(prior + sum P' P / s²).

    The sensitivity of a step is taken alone, dx'/dp at each knot, whose squares add up to a lower bound of the
    information of the path. Its dependence on the state is followed by finite differences.

    Args:
        task: the task's cost.
        fit: the dynamics, the parameters and the noise.
        prior: (size, size) information there is.
        p: (size,) where the parameters are believed to be.
        weight: of a nat.
    """

    def __init__(self, task: QuadraticCost, fit: WindowFit, prior: Array, p: Array, weight: float = 1.0):
        super().__init__(task, weight)
        self.fit, self.prior, self.p = fit, prior, p

    def gain(self, states: Array) -> float:
        return 0.5 * float(np.linalg.slogdet(self.prior + np.sum(self._terms(states[:-1]), axis=0))[1])

    def slope(self, states: Array) -> Array:
        inverse = np.linalg.inv(self.prior + np.sum(self._terms(states[:-1]), axis=0))
        out = np.zeros_like(states)
        for i in range(states.shape[1]):
            step = CHANGE * np.eye(states.shape[1])[i]
            change = (self._terms(states[:-1] + step) - self._terms(states[:-1] - step)) / (2.0 * CHANGE)
            out[:-1, i] = 0.5 * np.einsum("tij,ji->t", change, inverse)
        return out

    def _terms(self, states: Array) -> Array:
        """Information of each step, (H, size, size), at rest inputs: what the parameters move by themselves."""
        d = self.fit.dynamics
        inputs = np.zeros((len(states), d.inputs))
        _, _, by_p = d.linearise(states, inputs, self.fit.free.whole(self.p))
        rows = by_p[:, :, self.fit.free.columns] / self.fit.noise[:, None]
        return np.einsum("tik,til->tkl", rows, rows)
