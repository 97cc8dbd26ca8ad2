"""The two passes of iLQR, backwards for the feedback and forwards for the trajectory, in NumPy and compiled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from retorque.physics.backends.kernel_cache import load_kernels
from retorque.physics.backends.tree_dynamics import TreeDynamics
from retorque.physics.dynamics import Dynamics
from retorque.plan.cost import Cost, Expansion, QuadraticCost
from retorque.work.array import Array

FASTEST = 500.0
"""A plan with a joint faster than this has diverged [rad/s or m/s]."""
SHARES = 0.5 ** np.arange(9)
"""Of the change that the line search tries."""
LEAST_GAIN = 1e-4
"""Share of the expected decrease that a step must bring."""


@dataclass(slots=True)
class Step:
    """What the backward pass found."""

    change: Array
    """(H, inputs) of the inputs."""
    gains: Array
    """(H, inputs, 2 nv)"""
    expected: tuple[float, float]
    """What the whole change gains, to first and second order."""


@dataclass(slots=True)
class Trajectory:
    """States (H+1, 2 n), inputs (H, inputs) and gains (H, inputs, 2 n) with their cost."""

    states: Array
    inputs: Array
    gains: Array
    cost: float
    iterations: int = 0
    converged: bool = False


class Passes(ABC):
    """iLQR's work on one robot."""

    @abstractmethod
    def backward(
        self, states: Array, inputs: Array, costs: Expansion, p: Array | None, damping: float, warm: Array
    ) -> Step | None:
        """The best change within limits by the quadratic model, or None where that has no minimum."""

    @abstractmethod
    def forward(
        self, x: Array, states: Array, inputs: Array, step: Step, share: float, p: Array | None
    ) -> tuple[Array, Array] | None:
        """States and inputs after a share of the change with its feedback, or None where they diverge."""

    def rollouts(self, x: Array, inputs: Array, p: Array | None) -> Array:
        """States (samples, H+1, 2 n) under inputs (samples, H, inputs); not a number where they diverge."""
        samples, steps, size = inputs.shape
        nothing = Step(np.zeros((steps, size)), np.zeros((steps, size, len(x))), (0.0, 0.0))
        still = np.zeros((steps + 1, len(x)))
        out = np.full((samples, steps + 1, len(x)), np.nan)
        for k in range(samples):
            found = self.forward(x, still, np.ascontiguousarray(inputs[k]), nothing, 0.0, p)
            if found is not None:
                out[k] = found[0]
        return out

    def iterate(
        self, x: Array, cost: Cost, now: Trajectory, p: Array | None, damping: float
    ) -> tuple[Step | None, tuple[Array, Array, float] | None]:
        """One iteration: the step, None where it has no minimum; states, inputs and cost after the first share of it
        that is an improvement, None where none is."""
        costs = cost.expand(now.states, now.inputs)
        step = self.backward(now.states, now.inputs, costs, p, damping, np.zeros_like(now.inputs))
        if step is None:
            return None, None
        first, second = step.expected
        for share in SHARES:
            found = self.forward(x, now.states, now.inputs, step, float(share), p)
            if found is None:
                continue
            value = cost.value(*found)
            if value < now.cost + LEAST_GAIN * share * (first + share * second) and value < now.cost:
                return step, (*found, value)
        return step, None


class ArrayPasses(Passes):
    """Any backend, in NumPy.

    Args:
        dynamics: of a robot on a fixed base.
        limit: (inputs,) largest input [N·m].
    """

    def __init__(self, dynamics: Dynamics, limit: Array):
        self.dynamics, self.limit = dynamics, limit

    def backward(
        self, states: Array, inputs: Array, costs: Expansion, p: Array | None, damping: float, warm: Array
    ) -> Step | None:
        a, b, _ = self.dynamics.linearise(states, inputs, p)
        steps, size = inputs.shape
        gains, change = np.zeros((steps, size, a.shape[1])), np.zeros_like(inputs)
        vx, vxx = costs.state_gradient[-1], costs.state_hessian_at(-1)
        first = second = 0.0
        for t in range(steps - 1, -1, -1):
            qx, qu = costs.state_gradient[t] + a[t].T @ vx, costs.input_gradient[t] + b[t].T @ vx
            qxx, qux = costs.state_hessian_at(t) + a[t].T @ vxx @ a[t], b[t].T @ vxx @ a[t]
            quu = costs.input_hessian_at(t) + b[t].T @ vxx @ b[t]
            quu = 0.5 * (quu + quu.T)
            damped = quu + damping * np.eye(size)
            found = box_minimum(damped, qu, -self.limit - inputs[t], self.limit - inputs[t], warm[t])
            if found is None:
                return None
            k, free = found
            gain = np.zeros_like(qux)
            gain[free] = -np.linalg.solve(damped[np.ix_(free, free)], qux[free])
            change[t], gains[t] = k, gain
            first, second = first + float(k @ qu), second + 0.5 * float(k @ quu @ k)
            vx = qx + gain.T @ (qu + quu @ k) + qux.T @ k
            vxx = qxx + gain.T @ (quu @ gain + qux) + qux.T @ gain
            vxx = 0.5 * (vxx + vxx.T)
        return Step(change, gains, (first, second))

    def forward(
        self, x: Array, states: Array, inputs: Array, step: Step, share: float, p: Array | None
    ) -> tuple[Array, Array] | None:
        new_states, new_inputs = np.empty((len(inputs) + 1, len(x))), np.empty_like(inputs)
        new_states[0] = x
        for t in range(len(inputs)):
            u = inputs[t] + share * step.change[t] + step.gains[t] @ (new_states[t] - states[t])
            new_inputs[t] = np.clip(u, -self.limit, self.limit)
            new_states[t + 1] = self.dynamics.step(new_states[t], new_inputs[t], p)
            if not np.all(np.abs(new_states[t + 1, self.dynamics.nq :]) < FASTEST):
                return None
        return new_states, new_inputs


class CompiledPasses(Passes):
    """The compiled tree.

    Args:
        dynamics: of a robot on a fixed base.
        limit: (inputs,) largest input [N·m].
    """

    def __init__(self, dynamics: TreeDynamics, limit: Array):
        self.dynamics = dynamics
        self._low, self._high = -np.array(limit), np.array(limit)
        self._kernels, self._roll = load_kernels("ilqr_kernels"), load_kernels("rollout_kernels").rollout
        self._g = np.empty((0, 0, 0))
        self._nothing = tuple(np.zeros(0, dtype=x.dtype) for x in dynamics.numbers(None)[1])

    def backward(
        self, states: Array, inputs: Array, costs: Expansion, p: Array | None, damping: float, warm: Array
    ) -> Step | None:
        d, n = self.dynamics, self.dynamics.nv
        steps, size = inputs.shape
        a, g = np.empty((steps, n)), self._scratch(steps)
        q, v = states[:-1, :n].copy(), states[:-1, n:].copy()
        d.kernels.linearise(d.tree, d.numbers(p)[0], self._nothing, q, v, inputs, d.timestep, a, g)
        change, gains, expected = warm.copy(), np.empty((steps, size, 2 * n)), np.empty(2)
        failed = self._kernels.backward(
            g,
            costs.state_gradient,
            costs.state_hessian,
            costs.input_gradient,
            costs.input_hessian,
            inputs,
            self._low,
            self._high,
            d.timestep,
            damping,
            change,
            gains,
            expected,
        )
        return Step(change, gains, (float(expected[0]), float(expected[1]))) if failed < 0 else None

    def forward(
        self, x: Array, states: Array, inputs: Array, step: Step, share: float, p: Array | None
    ) -> tuple[Array, Array] | None:
        d = self.dynamics
        new_states, new_inputs = np.empty((len(inputs) + 1, len(x))), np.empty_like(inputs)
        done = self._roll(
            d.tree,
            d.numbers(p)[0],
            x,
            states,
            inputs,
            step.change,
            step.gains,
            share,
            self._low,
            self._high,
            d.timestep,
            FASTEST,
            new_states,
            new_inputs,
        )
        return (new_states, new_inputs) if done == len(inputs) else None

    def iterate(
        self, x: Array, cost: Cost, now: Trajectory, p: Array | None, damping: float
    ) -> tuple[Step | None, tuple[Array, Array, float] | None]:
        """One call of compiled code where the cost is quadratic."""
        if not isinstance(cost, QuadraticCost):
            return super().iterate(x, cost, now, p, damping)
        d, (steps, size) = self.dynamics, now.inputs.shape
        change, gains, expected = np.zeros_like(now.inputs), np.empty((steps, size, 2 * d.nv)), np.empty(2)
        states, inputs = np.empty_like(now.states), np.empty_like(now.inputs)
        taken, value = self._kernels.iteration(
            d.tree,
            d.numbers(p)[0],
            self._nothing,
            cost.weights,
            cost.runs,
            x,
            now.states,
            now.inputs,
            now.cost,
            self._low,
            self._high,
            d.timestep,
            damping,
            FASTEST,
            LEAST_GAIN,
            SHARES,
            self._scratch(steps),
            change,
            gains,
            expected,
            states,
            inputs,
        )
        if taken == self._kernels.FAILED:
            return None, None
        step = Step(change, gains, (float(expected[0]), float(expected[1])))
        return step, (states, inputs, value) if taken >= 0 else None

    def rollouts(self, x: Array, inputs: Array, p: Array | None) -> Array:
        d, within = self.dynamics, np.ascontiguousarray(np.clip(inputs, self._low, self._high))
        out = np.empty((len(inputs), inputs.shape[1] + 1, len(x)))
        d.kernels.rollouts(d.tree, d.numbers(p)[0], np.ascontiguousarray(x), within, d.timestep, out)
        fast = np.max(np.abs(out[..., d.nv :]), axis=(1, 2))
        out[~(fast < FASTEST)] = np.nan
        return out

    def _scratch(self, steps: int) -> Array:
        """Room for derivatives, used again: fresh memory costs as much as the work."""
        if len(self._g) != steps:
            d = self.dynamics
            self._g = np.empty((steps, d.nv, 2 * d.nv + d.inputs))
        return self._g


def make_passes(dynamics: Dynamics, limit: Array) -> Passes:
    """The compiled passes where the dynamics are a compiled tree on a fixed base, else NumPy's."""
    if isinstance(dynamics, TreeDynamics) and not dynamics.passed:
        return CompiledPasses(dynamics, limit)
    return ArrayPasses(dynamics, limit)


def box_minimum(hessian: Array, gradient: Array, low: Array, high: Array, x: Array) -> tuple[Array, Array] | None:
    """The minimum of x' H x / 2 + g' x within limits by projected Newton steps, and which inputs are free of them."""
    x = np.clip(x, low, high)
    free = np.ones(len(x), dtype=bool)
    if np.min(np.linalg.eigvalsh(hessian)) <= 1e-14:
        return None
    for _ in range(20):
        slope = gradient + hessian @ x
        free = ~(((x <= low) & (slope > 0.0)) | ((x >= high) & (slope < 0.0)))
        if not np.any(free) or np.max(np.abs(slope[free])) < 1e-9:
            break
        way = np.zeros_like(x)
        way[free] = -np.linalg.solve(hessian[np.ix_(free, free)], slope[free])
        value = 0.5 * x @ (slope + gradient)
        for share in 0.5 ** np.arange(12):
            tried = np.clip(x + share * way, low, high)
            if tried @ (gradient + 0.5 * hessian @ tried) <= value + 0.1 * slope @ (tried - x) + 1e-15:
                break
        else:
            break
        moved, x = np.max(np.abs(tried - x)), tried
        if moved < 1e-12:
            break
    return x, free
