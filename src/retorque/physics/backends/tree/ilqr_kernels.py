"""One iteration of iLQR for a quadratic cost, compiled: expansion, derivatives, backward pass, line search (numba)."""

from __future__ import annotations

import math

import numpy as np

from retorque.physics.backends.tree.backward_kernels import backward as backward
from retorque.physics.backends.tree.kernel import F1, F2, F3, I1, kernel
from retorque.physics.backends.tree.rollout_kernels import rollout
from retorque.physics.backends.tree.trajectory_kernels import BODYWISE, CHOSEN, TREE, linearise

WEIGHTS = f"Tuple(({F1}, {I1}, {F2}, {F2}, {F2}))"
"""target (2 n,), which states are angles on the circle (2 n,), running, final (2 n, 2 n), effort (inputs, inputs)"""
TURN = 2.0 * math.pi
FAILED, NO_STEP = -2, -1
"""Answers of `iteration` where the backward pass failed, and where no share of its step is an improvement."""


@kernel(f"float64({F1}, {F2}, {F1})")
def _half_square(error, weights, slope):
    """error' W error / 2, and its gradient W error."""
    total = 0.0
    for i in range(len(error)):
        value = 0.0
        for j in range(len(error)):
            value += weights[i, j] * error[j]
        slope[i] = value
        total += 0.5 * value * error[i]
    return total


@kernel(f"void({WEIGHTS}, {F1}, {F1})")
def _from_target(weights, state, error):
    """A state's error, angles by the nearest way."""
    target, circle = weights[0], weights[1]
    for i in range(len(state)):
        error[i] = state[i] - target[i]
        if circle[i] == 1:
            error[i] -= TURN * np.rint(error[i] / TURN)


@kernel(f"float64({WEIGHTS}, int64, {F2}, {F2}, {F2}, {F2})")
def expand(weights, runs, states, inputs, lx, lu):
    """Equation 9 of a trajectory, and its gradients by states (H+1, 2 n) and inputs (H, inputs).

    `runs` is 1 where there are running costs; else their gradients are zero.
    """
    horizon, total = len(inputs), 0.0
    error = np.empty(states.shape[1])
    for t in range(horizon):
        total += _half_square(inputs[t], weights[4], lu[t])
        if runs == 1:
            _from_target(weights, states[t], error)
            total += _half_square(error, weights[2], lx[t])
        else:
            lx[t] = 0.0
    _from_target(weights, states[horizon], error)
    return total + _half_square(error, weights[3], lx[horizon])


@kernel(
    f"Tuple((int64, float64))({TREE}, {BODYWISE}, {CHOSEN}, {WEIGHTS}, int64, {F1}, {F2}, {F2}, float64, "
    f"{F1}, {F1}, float64, float64, float64, float64, {F1}, {F3}, {F2}, {F3}, {F1}, {F2}, {F2})"
)
def iteration(
    tree,
    numbers,
    nothing,
    weights,
    runs,
    x0,
    states,
    inputs,
    value,
    low,
    high,
    step,
    damping,
    fastest,
    least,
    shares,
    g,
    change,
    gains,
    expected,
    new_states,
    new_inputs,
):
    """Improve a trajectory: which of `shares` of the step was taken, or one of the answers above; and the new cost.

    Args:
        tree, numbers: of the robot; `nothing` of it is free.
        weights, runs: of `expand`.
        x0: (2 n,) first state.
        states, inputs, value: (H+1, 2 n), (H, inputs) of the trajectory, and its cost.
        low, high: (inputs,) limits.
        step: [s].
        damping: of the inputs' Hessian.
        fastest: beyond this velocity a trajectory has diverged.
        least: share of the expected decrease that a step must bring.
        shares: of the step that are tried, one after the other.
        g: (H, n, 2 n + inputs) scratch.
        change, gains, expected: of `backward`.
        new_states, new_inputs: (H+1, 2 n), (H, inputs), filled.
    """
    horizon, n = len(inputs), len(x0) // 2
    q, v, a = np.empty((horizon, n)), np.empty((horizon, n)), np.empty((horizon, n))
    for t in range(horizon):
        for i in range(n):
            q[t, i], v[t, i] = states[t, i], states[t, n + i]
    linearise(tree, numbers, nothing, q, v, inputs, step, a, g)
    lx, lu = np.empty((horizon + 1, 2 * n)), np.empty((horizon, inputs.shape[1]))
    expand(weights, runs, states, inputs, lx, lu)
    lxx, luu = np.empty((2, 2 * n, 2 * n)), np.empty((1, inputs.shape[1], inputs.shape[1]))
    lxx[0], lxx[1], luu[0] = weights[2], weights[3], weights[4]
    if backward(g, lx, lxx, lu, luu, inputs, low, high, step, damping, change, gains, expected) >= 0:
        return FAILED, value
    for k in range(len(shares)):
        share = shares[k]
        done = rollout(
            tree, numbers, x0, states, inputs, change, gains, share, low, high, step, fastest, new_states, new_inputs
        )
        if done < horizon:
            continue
        new = expand(weights, runs, new_states, new_inputs, lx, lu)
        if new < value and new < value + least * share * (expected[0] + share * expected[1]):
            return k, new
    return NO_STEP, value
