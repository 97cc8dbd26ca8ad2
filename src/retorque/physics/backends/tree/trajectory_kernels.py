"""Compiled steps and linearisations of whole trajectories of a tree (numba).

A tree is one tuple of arrays, made by `tree_dynamics`. A step is v' = v + h a, q' = q + h v', with the slope of
friction acting implicitly; the derivatives of v' by (q, v, u, p) are all there is to know of it.
"""

from __future__ import annotations

import numpy as np

from retorque.physics.backends.tree.kernel import F1, F2, F3, I1, kernel
from retorque.physics.backends.tree.lanes import LANES, dot, load, store
from retorque.physics.backends.tree.loss_kernels import ARMATURE, STIFFNESS, by_number, losses
from retorque.physics.backends.tree.tree_kernels import (
    BODY,
    DOF,
    PAIR,
    QIJ,
    QJI,
    VIJ,
    VJI,
    _force,
    _inertia,
    derivatives,
    kinematics,
    mass_and_bias,
)
from retorque.physics.backends.tree.tree_solver import factor, solve

TREE = f"Tuple(({', '.join([I1] * 9 + [F1] * 3)}))"
"""parent, kind, dof, body_of, first_pair, ancestors, low, high, actuated; place, axis, gravity"""
BODYWISE = f"Tuple(({F1}, {F1}, {I1}, {F1}))"
"""Numbers that can change: inertial, losses (joints * width), friction terms, their constants."""
CHOSEN = f"Tuple(({I1}, {F1}, {I1}, {F1}))"
"""Free parameters: (link, column) pairs and ten numbers each; (joint, number, column) triples and a weight each."""


@kernel(f"void({TREE}, {BODYWISE}, {F1}, {F1}, {F1}, {F1}, float64, {F1}, {F1}, {F1}, {F1}, {F1})")
def accelerate(tree, numbers, w, q, v, torque, step, pairs, lower, lost, diagonal, a):
    """Acceleration of a block under joint torques, all (freedoms * LANES); leaves the workspace for derivatives."""
    parent, kind, dof, body_of, first_pair, ancestors = tree[:6]
    place, axis, gravity = tree[9:]
    inertial, own, terms, constants = numbers
    freedoms = len(body_of)
    passed = 6 if kind[0] == 2 else 0
    joints = freedoms - passed
    width = len(own) // joints
    block = freedoms * LANES
    kinematics(w, parent, kind, dof, place, axis, gravity, inertial, q, v)
    mass_and_bias(w, parent, body_of, first_pair, ancestors, pairs, a)
    losses(own, width, terms, constants, q, v, passed, lost)
    for d in range(freedoms):
        rotor = own[(d - passed) * width + ARMATURE] if d >= passed else 0.0
        e = d * LANES
        store(diagonal, e, rotor + step * load(lost, 2 * block + e))
        store(a, e, load(torque, e) - load(a, e) - load(lost, e))
    factor(pairs, first_pair, ancestors, diagonal, lower)
    solve(lower, first_pair, ancestors, a, 1, 0, freedoms, 0, 1)


@kernel(f"void({F2}, {F2}, {F2}, {I1}, int64, {F1}, {F1}, {F1})")
def _load(q, v, u, actuated, begin, qb, vb, tb):
    """Turn eight rows to lanes; past the end the last row is repeated."""
    for i in range(LANES):
        row = min(begin + i, len(q) - 1)
        for c in range(q.shape[1]):
            qb[c * LANES + i] = q[row, c]
        for d in range(v.shape[1]):
            vb[d * LANES + i] = v[row, d]
        for c in range(len(actuated)):
            tb[actuated[c] * LANES + i] = u[row, c]


@kernel(f"void({TREE}, {BODYWISE}, {F2}, {F2}, {F2}, float64, {F2})")
def accelerations(tree, numbers, q, v, u, step, out):
    """Accelerations (knots, freedoms) of states (knots, coordinates), (knots, freedoms) by inputs (knots, inputs)."""
    freedoms, actuated = v.shape[1], tree[8]
    w = np.zeros((len(tree[0]) * BODY + freedoms * DOF + 2 * BODY) * LANES)
    pairs, lower = np.empty(len(tree[5]) * PAIR * LANES), np.empty(len(tree[5]) * LANES)
    lost, diagonal, a = np.empty(4 * freedoms * LANES), np.empty(freedoms * LANES), np.empty(freedoms * LANES)
    qb, vb, tb = np.zeros(q.shape[1] * LANES), np.zeros(freedoms * LANES), np.zeros(freedoms * LANES)
    for begin in range(0, len(q), LANES):
        _load(q, v, u, actuated, begin, qb, vb, tb)
        accelerate(tree, numbers, w, qb, vb, tb, step, pairs, lower, lost, diagonal, a)
        for i in range(min(LANES, len(q) - begin)):
            for d in range(freedoms):
                out[begin + i, d] = a[d * LANES + i]


@kernel(f"void({TREE}, {BODYWISE}, {CHOSEN}, {F1}, {F1}, {F1}, {F1}, float64, int64, int64, {F1})")
def _by_parameters(tree, numbers, chosen, w, q, v, a, step, columns, first, right):
    """Minus the derivative of the equations of motion by the free parameters, to the columns from `first`."""
    parent, kind, dof, first_pair, ancestors = tree[0], tree[1], tree[2], tree[4], tree[5]
    freedoms = len(v) // LANES
    passed, base = (6, 1) if kind[0] == 2 else (0, 0)
    dofs = len(parent) * BODY * LANES
    spare = dofs + freedoms * DOF * LANES + BODY * LANES
    links, tens, joints, weights = chosen
    for m in range(len(links) // 2):
        link, column = links[2 * m], first + links[2 * m + 1]
        o = link * BODY * LANES
        for k in range(0, 24 * LANES, LANES):  # the same motion with another inertia
            store(w, spare + k, load(w, o + k))
        _inertia(w, spare, tens[10 * m : 10 * m + 10])
        _force(w, spare, spare + 18 * LANES)
        last = dof[link] + (5 if kind[link] == 2 else 0)
        for k in range(first_pair[last], first_pair[last + 1]):
            s = dofs + ancestors[k] * DOF * LANES
            e = (ancestors[k] * columns + column) * LANES
            store(right, e, load(right, e) - dot(w, s, w, spare + 352, 6))
    width = len(numbers[1]) // (freedoms - passed)
    for m in range(len(weights)):
        joint, field, column = joints[3 * m], joints[3 * m + 1], first + joints[3 * m + 2]
        own = numbers[1][joint * width : (joint + 1) * width]
        d = joint + passed
        for i in range(LANES):
            e = d * LANES + i
            value = by_number(own, numbers[2], numbers[3], q[(d + base) * LANES + i], v[e], a[e], step, field)
            right[(d * columns + column) * LANES + i] -= weights[m] * value


@kernel(f"void({TREE}, {BODYWISE}, {CHOSEN}, {F2}, {F2}, {F2}, float64, {F2}, {F3})")
def linearise(tree, numbers, chosen, q, v, u, step, acceleration, out):
    """Accelerations (knots, freedoms) and their derivatives (knots, freedoms, 2 freedoms + inputs + parameters)."""
    parent, kind, dof, body_of, first_pair, ancestors, low, high, actuated = tree[:9]
    freedoms, inputs, columns = v.shape[1], len(actuated), out.shape[2]
    passed = 6 if kind[0] == 2 else 0
    block = freedoms * LANES
    w = np.zeros((len(parent) * BODY + freedoms * DOF + 2 * BODY) * LANES)
    pairs, lower = np.empty(len(ancestors) * PAIR * LANES), np.empty(len(ancestors) * LANES)
    lost, diagonal, a = np.empty(4 * block), np.empty(block), np.empty(block)
    qb, vb, tb = np.zeros(q.shape[1] * LANES), np.zeros(block), np.zeros(block)
    right = np.empty(freedoms * columns * LANES)
    for begin in range(0, len(q), LANES):
        _load(q, v, u, actuated, begin, qb, vb, tb)
        accelerate(tree, numbers, w, qb, vb, tb, step, pairs, lower, lost, diagonal, a)
        derivatives(w, parent, kind, dof, body_of, first_pair, ancestors, vb, a, pairs)
        right[:] = 0.0
        for d in range(freedoms):
            for k in range(first_pair[d], first_pair[d + 1]):
                j, e = ancestors[k], k * PAIR * LANES
                ij, ji = (d * columns + j) * LANES, (j * columns + d) * LANES
                vij, vji = ij + freedoms * LANES, ji + freedoms * LANES
                store(right, ij, -load(pairs, e + QIJ * LANES))
                store(right, vij, -load(pairs, e + VIJ * LANES))
                store(right, ji, -load(pairs, e + QJI * LANES))
                store(right, vji, -load(pairs, e + VJI * LANES))
            if d >= passed:
                own = numbers[1][(d - passed) * (len(numbers[1]) // (freedoms - passed)) :]
                e, f = (d * columns + d) * LANES, (d * columns + freedoms + d) * LANES
                k = d * LANES
                store(right, e, load(right, e) - own[STIFFNESS])
                slope = load(lost, block + k) + step * load(lost, 3 * block + k) * load(a, k)
                store(right, f, load(right, f) - slope)
        for c in range(inputs):
            e = (actuated[c] * columns + 2 * freedoms + c) * LANES
            store(right, e, 1.0)
        _by_parameters(tree, numbers, chosen, w, qb, vb, a, step, columns, 2 * freedoms + inputs, right)
        begin_branch = 0
        while begin_branch < freedoms:  # a branch from the ground: the rest of its rows are zero
            lo, hi = low[begin_branch], high[begin_branch]
            solve(lower, first_pair, ancestors, right, columns, lo, hi, lo, hi)
            solve(lower, first_pair, ancestors, right, columns, lo, hi, freedoms + lo, freedoms + hi)
            if lo == 0 and hi == freedoms:
                solve(lower, first_pair, ancestors, right, columns, lo, hi, 2 * freedoms, columns)
            else:
                for c in range(inputs):
                    if lo <= actuated[c] < hi:
                        k = 2 * freedoms + c
                        solve(lower, first_pair, ancestors, right, columns, lo, hi, k, k + 1)
                solve(lower, first_pair, ancestors, right, columns, lo, hi, 2 * freedoms + inputs, columns)
            begin_branch = hi
        for i in range(min(LANES, len(q) - begin)):
            for d in range(freedoms):
                acceleration[begin + i, d] = a[d * LANES + i]
                for c in range(columns):
                    out[begin + i, d, c] = right[(d * columns + c) * LANES + i]


@kernel(f"void({TREE}, {BODYWISE}, {F1}, {F3}, float64, {F3})")
def rollouts(tree, numbers, x0, inputs, step, states):
    """States (samples, H+1, 2 n) from one first state on under inputs (samples, H, inputs), eight samples at a time."""
    samples, horizon, n = len(inputs), inputs.shape[1], len(x0) // 2
    actuated, block = tree[8], n * LANES
    w = np.zeros((len(tree[0]) * BODY + n * DOF + 2 * BODY) * LANES)
    pairs, lower = np.empty(len(tree[5]) * PAIR * LANES), np.empty(len(tree[5]) * LANES)
    lost, diagonal, a = np.empty(4 * block), np.empty(block), np.empty(block)
    q, v, torque = np.empty(block), np.empty(block), np.zeros(block)
    for begin in range(0, samples, LANES):
        count = min(LANES, samples - begin)
        for d in range(n):
            store(q, d * LANES, x0[d])
            store(v, d * LANES, x0[n + d])
        for i in range(count):
            states[begin + i, 0] = x0
        for t in range(horizon):
            for i in range(LANES):
                row = min(begin + i, samples - 1)
                for c in range(len(actuated)):
                    torque[actuated[c] * LANES + i] = inputs[row, t, c]
            accelerate(tree, numbers, w, q, v, torque, step, pairs, lower, lost, diagonal, a)
            for e in range(0, block, LANES):
                after = load(v, e) + step * load(a, e)
                store(v, e, after)
                store(q, e, load(q, e) + step * after)
            for i in range(count):
                row = states[begin + i, t + 1]
                for d in range(n):
                    row[d], row[n + d] = q[d * LANES + i], v[d * LANES + i]
