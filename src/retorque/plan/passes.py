"""The two passes of iLQR, backwards for the feedback and forwards for the trajectory, in NumPy and compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from retorque.physics.backends.kernel_cache import load_kernels
from retorque.physics.backends.tree_dynamics import TreeDynamics
from retorque.physics.dynamics import Dynamics
from retorque.plan.cost import Expansion
from retorque.work.array import Array

FASTEST = 500.0
"""A plan with a joint faster than this has diverged [rad/s or m/s]."""


@dataclass(slots=True)
class Step:
    """What the backward pass found."""

    change: Array
    """(H, inputs) of the inputs."""
    gains: Array
    """(H, inputs, 2 nv)"""
    expected: tuple[float, float]
    """What the whole change gains, to first and second order."""


class Passes(Protocol):
    """iLQR's work on one robot."""

    def backward(
        self, states: Array, inputs: Array, costs: Expansion, p: Array | None, damping: float, warm: Array
    ) -> Step | None:
        """The best change within limits by the quadratic model, or None where that has no minimum."""
        ...

    def forward(
        self, x: Array, states: Array, inputs: Array, step: Step, share: float, p: Array | None
    ) -> tuple[Array, Array] | None:
        """States and inputs after a share of the change with its feedback, or None where they diverge."""
        ...


class ArrayPasses:
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


class CompiledPasses:
    """The compiled tree.

    Args:
        dynamics: of a robot on a fixed base.
        limit: (inputs,) largest input [N·m].
    """

    def __init__(self, dynamics: TreeDynamics, limit: Array):
        self.dynamics = dynamics
        self._low, self._high = -np.array(limit), np.array(limit)
        self._kernels = load_kernels("ilqr_kernels")
        self._a, self._g = np.empty((0, 0)), np.empty((0, 0, 0))
        self._nothing = tuple(np.zeros(0, dtype=x.dtype) for x in dynamics.numbers(None)[1])

    def backward(
        self, states: Array, inputs: Array, costs: Expansion, p: Array | None, damping: float, warm: Array
    ) -> Step | None:
        d, n = self.dynamics, self.dynamics.nv
        steps, size = inputs.shape
        if len(self._a) != steps:
            self._a, self._g = np.empty((steps, n)), np.empty((steps, n, 2 * n + size))
        a, g = self._a, self._g  # used again: fresh memory costs as much as the work
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
        done = self._kernels.rollout(
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
