"""Compiled trajectories of a tree on a fixed base, state after state (numba)."""

from __future__ import annotations

import math

import numpy as np

from retorque.physics.backends.tree.kernel import F1, F2, F3, kernel
from retorque.physics.backends.tree.loss_kernels import joint_loss
from retorque.physics.backends.tree.trajectory_kernels import BODYWISE, TREE

SCALAR = 40
"""Numbers of a body in a scalar pass: rotation 9, origin 3, axis 6, velocity 6, acceleration 6, inertia 10."""


@kernel(f"void({TREE}, {BODYWISE}, {F1}, {F1}, {F1}, float64, {F1}, {F1}, {F1}, {F1})")
def acceleration(tree, numbers, q, v, u, step, w, force, lower, a):
    """Acceleration (n,) of one state of a tree on a fixed base; w (n * SCALAR), force (n * 6), lower (pairs,)."""
    parent, kind = tree[0], tree[1]
    first_pair, ancestors, actuated, place, axis, gravity = tree[4], tree[5], tree[8], tree[9], tree[10], tree[11]
    inertial, own, terms, constants = numbers
    n = len(v)
    width = len(own) // n
    for b in range(n):
        o, e = b * SCALAR, place[12 * b : 12 * b + 12]
        if parent[b] >= 0:
            u0 = parent[b] * SCALAR
            a0, a1, a2, a3, a4, a5, a6, a7, a8 = (
                w[u0],
                w[u0 + 1],
                w[u0 + 2],
                w[u0 + 3],
                w[u0 + 4],
                w[u0 + 5],
                w[u0 + 6],
                w[u0 + 7],
                w[u0 + 8],
            )
            px, py, pz = w[u0 + 9], w[u0 + 10], w[u0 + 11]
            wx, wy, wz, ux, uy, uz = w[u0 + 18], w[u0 + 19], w[u0 + 20], w[u0 + 21], w[u0 + 22], w[u0 + 23]
            for c in range(6):
                w[o + 24 + c] = w[u0 + 24 + c]
        else:
            a0, a1, a2, a3, a4, a5, a6, a7, a8 = 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0
            px, py, pz, wx, wy, wz, ux, uy, uz = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
            for c in range(3):
                w[o + 24 + c], w[o + 27 + c] = 0.0, -gravity[c]
        px += a0 * e[9] + a1 * e[10] + a2 * e[11]
        py += a3 * e[9] + a4 * e[10] + a5 * e[11]
        pz += a6 * e[9] + a7 * e[10] + a8 * e[11]
        b0, b1, b2 = (
            a0 * e[0] + a1 * e[3] + a2 * e[6],
            a0 * e[1] + a1 * e[4] + a2 * e[7],
            a0 * e[2] + a1 * e[5] + a2 * e[8],
        )
        b3, b4, b5 = (
            a3 * e[0] + a4 * e[3] + a5 * e[6],
            a3 * e[1] + a4 * e[4] + a5 * e[7],
            a3 * e[2] + a4 * e[5] + a5 * e[8],
        )
        b6, b7, b8 = (
            a6 * e[0] + a7 * e[3] + a8 * e[6],
            a6 * e[1] + a7 * e[4] + a8 * e[7],
            a6 * e[2] + a7 * e[5] + a8 * e[8],
        )
        ax, ay, az = axis[3 * b], axis[3 * b + 1], axis[3 * b + 2]
        gx, gy, gz = b0 * ax + b1 * ay + b2 * az, b3 * ax + b4 * ay + b5 * az, b6 * ax + b7 * ay + b8 * az
        if kind[b] == 0:
            e0, h = math.cos(q[b]), math.sin(q[b])
            t = 1.0 - e0
            r0, r1, r2 = e0 + t * ax * ax, t * ax * ay - h * az, t * ax * az + h * ay
            r3, r4, r5 = t * ax * ay + h * az, e0 + t * ay * ay, t * ay * az - h * ax
            r6, r7, r8 = t * ax * az - h * ay, t * ay * az + h * ax, e0 + t * az * az
            b0, b1, b2, b3, b4, b5, b6, b7, b8 = (
                b0 * r0 + b1 * r3 + b2 * r6,
                b0 * r1 + b1 * r4 + b2 * r7,
                b0 * r2 + b1 * r5 + b2 * r8,
                b3 * r0 + b4 * r3 + b5 * r6,
                b3 * r1 + b4 * r4 + b5 * r7,
                b3 * r2 + b4 * r5 + b5 * r8,
                b6 * r0 + b7 * r3 + b8 * r6,
                b6 * r1 + b7 * r4 + b8 * r7,
                b6 * r2 + b7 * r5 + b8 * r8,
            )
            sx, sy, sz, tx, ty, tz = gx, gy, gz, py * gz - pz * gy, pz * gx - px * gz, px * gy - py * gx
        else:
            px, py, pz = px + gx * q[b], py + gy * q[b], pz + gz * q[b]
            sx, sy, sz, tx, ty, tz = 0.0, 0.0, 0.0, gx, gy, gz
        w[o], w[o + 1], w[o + 2], w[o + 3], w[o + 4], w[o + 5], w[o + 6], w[o + 7], w[o + 8] = (
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7,
            b8,
        )
        w[o + 9], w[o + 10], w[o + 11] = px, py, pz
        w[o + 12], w[o + 13], w[o + 14], w[o + 15], w[o + 16], w[o + 17] = sx, sy, sz, tx, ty, tz
        d = v[b]
        w[o + 24] += d * (wy * sz - wz * sy)
        w[o + 25] += d * (wz * sx - wx * sz)
        w[o + 26] += d * (wx * sy - wy * sx)
        w[o + 27] += d * (uy * sz - uz * sy + wy * tz - wz * ty)
        w[o + 28] += d * (uz * sx - ux * sz + wz * tx - wx * tz)
        w[o + 29] += d * (ux * sy - uy * sx + wx * ty - wy * tx)
        wx, wy, wz, ux, uy, uz = wx + sx * d, wy + sy * d, wz + sz * d, ux + tx * d, uy + ty * d, uz + tz * d
        w[o + 18], w[o + 19], w[o + 20], w[o + 21], w[o + 22], w[o + 23] = wx, wy, wz, ux, uy, uz
        ten = inertial[10 * b : 10 * b + 10]
        m = ten[0]
        rx = b0 * ten[1] + b1 * ten[2] + b2 * ten[3]
        ry = b3 * ten[1] + b4 * ten[2] + b5 * ten[3]
        rz = b6 * ten[1] + b7 * ten[2] + b8 * ten[3]
        xx, xy, yy, xz, yz, zz = ten[4], ten[5], ten[6], ten[7], ten[8], ten[9]
        k0, k1, k2 = b0 * xx + b1 * xy + b2 * xz, b0 * xy + b1 * yy + b2 * yz, b0 * xz + b1 * yz + b2 * zz
        k3, k4, k5 = b3 * xx + b4 * xy + b5 * xz, b3 * xy + b4 * yy + b5 * yz, b3 * xz + b4 * yz + b5 * zz
        k6, k7, k8 = b6 * xx + b7 * xy + b8 * xz, b6 * xy + b7 * yy + b8 * yz, b6 * xz + b7 * yz + b8 * zz
        s = 2.0 * (px * rx + py * ry + pz * rz) + m * (px * px + py * py + pz * pz)
        ixx = k0 * b0 + k1 * b1 + k2 * b2 + s - (2.0 * rx * px + m * px * px)
        ixy = k0 * b3 + k1 * b4 + k2 * b5 - (rx * py + px * ry + m * px * py)
        iyy = k3 * b3 + k4 * b4 + k5 * b5 + s - (2.0 * ry * py + m * py * py)
        ixz = k0 * b6 + k1 * b7 + k2 * b8 - (rx * pz + px * rz + m * px * pz)
        iyz = k3 * b6 + k4 * b7 + k5 * b8 - (ry * pz + py * rz + m * py * pz)
        izz = k6 * b6 + k7 * b7 + k8 * b8 + s - (2.0 * rz * pz + m * pz * pz)
        x, y, z = rx + m * px, ry + m * py, rz + m * pz
        w[o + 30], w[o + 31], w[o + 32], w[o + 33] = m, x, y, z
        w[o + 34], w[o + 35], w[o + 36], w[o + 37], w[o + 38], w[o + 39] = ixx, ixy, iyy, ixz, iyz, izz
        kx = ixx * wx + ixy * wy + ixz * wz + y * uz - z * uy
        ky = ixy * wx + iyy * wy + iyz * wz + z * ux - x * uz
        kz = ixz * wx + iyz * wy + izz * wz + x * uy - y * ux
        lx, ly, lz = m * ux + wy * z - wz * y, m * uy + wz * x - wx * z, m * uz + wx * y - wy * x
        ap, aq, ar, bx, by, bz = w[o + 24], w[o + 25], w[o + 26], w[o + 27], w[o + 28], w[o + 29]
        f = 6 * b
        force[f] = ixx * ap + ixy * aq + ixz * ar + y * bz - z * by + wy * kz - wz * ky + uy * lz - uz * ly
        force[f + 1] = ixy * ap + iyy * aq + iyz * ar + z * bx - x * bz + wz * kx - wx * kz + uz * lx - ux * lz
        force[f + 2] = ixz * ap + iyz * aq + izz * ar + x * by - y * bx + wx * ky - wy * kx + ux * ly - uy * lx
        force[f + 3] = m * bx + aq * z - ar * y + wy * lz - wz * ly
        force[f + 4] = m * by + ar * x - ap * z + wz * lx - wx * lz
        force[f + 5] = m * bz + ap * y - aq * x + wx * ly - wy * lx
        a[b] = 0.0
    for c in range(len(actuated)):
        a[actuated[c]] = u[c]
    for b in range(n - 1, -1, -1):
        o, f = b * SCALAR, 6 * b
        if parent[b] >= 0:
            for c in range(6):
                force[6 * parent[b] + c] += force[f + c]
            for c in range(10):
                w[parent[b] * SCALAR + 30 + c] += w[o + 30 + c]
        m, x, y, z = w[o + 30], w[o + 31], w[o + 32], w[o + 33]
        sx, sy, sz, tx, ty, tz = w[o + 12], w[o + 13], w[o + 14], w[o + 15], w[o + 16], w[o + 17]
        g0 = w[o + 34] * sx + w[o + 35] * sy + w[o + 37] * sz + y * tz - z * ty
        g1 = w[o + 35] * sx + w[o + 36] * sy + w[o + 38] * sz + z * tx - x * tz
        g2 = w[o + 37] * sx + w[o + 38] * sy + w[o + 39] * sz + x * ty - y * tx
        g3, g4, g5 = m * tx + sy * z - sz * y, m * ty + sz * x - sx * z, m * tz + sx * y - sy * x
        for k in range(first_pair[b], first_pair[b + 1]):
            j = ancestors[k] * SCALAR + 12
            lower[k] = g0 * w[j] + g1 * w[j + 1] + g2 * w[j + 2] + g3 * w[j + 3] + g4 * w[j + 4] + g5 * w[j + 5]
        lost, _, implicit, _ = joint_loss(own[b * width : (b + 1) * width], terms, constants, q[b], v[b])
        lower[first_pair[b + 1] - 1] += own[b * width + 12] + step * implicit
        a[b] -= lost + sx * force[f] + sy * force[f + 1] + sz * force[f + 2]
        a[b] -= tx * force[f + 3] + ty * force[f + 4] + tz * force[f + 5]
    for d in range(n - 1, -1, -1):
        begin, last = first_pair[d], first_pair[d + 1] - 1
        inverse = 1.0 / lower[last]
        lower[last] = inverse
        for k in range(last - 1, begin - 1, -1):
            row, share = first_pair[ancestors[k]], lower[k] * inverse
            for i in range(k - begin + 1):
                lower[row + i] -= share * lower[begin + i]
        for k in range(begin, last):
            lower[k] *= inverse
            a[ancestors[k]] -= lower[k] * a[d]
    for d in range(n):
        begin, last = first_pair[d], first_pair[d + 1] - 1
        total = a[d] * lower[last]
        for k in range(begin, last):
            total -= lower[k] * a[ancestors[k]]
        a[d] = total


@kernel(f"int64({TREE}, {BODYWISE}, {F1}, {F2}, {F2}, {F2}, {F3}, float64, {F1}, {F1}, float64, float64, {F2}, {F2})")
def rollout(tree, numbers, x0, states, inputs, change, gains, share, low, high, step, fastest, new_states, new_inputs):
    """Follow inputs + share * change + gains (x - states) within limits from a first state; steps done before it fails.

    Args:
        tree, numbers: of the robot.
        x0: (2 n,).
        states, inputs, change, gains: (H+1, 2 n), (H, inputs), (H, inputs), (H, inputs, 2 n).
        share: of the change.
        low, high: (inputs,) limits.
        step: [s].
        fastest: beyond this velocity a trajectory has diverged.
        new_states, new_inputs: (H+1, 2 n), (H, inputs), filled.
    """
    horizon, n, count = len(inputs), len(x0) // 2, len(low)
    w, force = np.zeros(n * SCALAR), np.zeros(6 * n)
    lower, a = np.zeros(len(tree[5])), np.zeros(n)
    q, v, u = np.empty(n), np.empty(n), np.empty(count)
    for i in range(n):
        q[i], v[i] = x0[i], x0[n + i]
    for i in range(2 * n):
        new_states[0, i] = x0[i]
    for t in range(horizon):
        for i in range(count):
            total = inputs[t, i] + share * change[t, i]
            for j in range(n):
                total += gains[t, i, j] * (q[j] - states[t, j]) + gains[t, i, n + j] * (v[j] - states[t, n + j])
            u[i] = min(max(total, low[i]), high[i])
            new_inputs[t, i] = u[i]
        acceleration(tree, numbers, q, v, u, step, w, force, lower, a)
        for i in range(n):
            v[i] += step * a[i]
            q[i] += step * v[i]
            if not abs(v[i]) < fastest:
                return t
            new_states[t + 1, i], new_states[t + 1, n + i] = q[i], v[i]
    return horizon
