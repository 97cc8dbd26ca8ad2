"""Compiled rigid-body algebra of a tree, eight knots at a time, with analytic derivatives (numba).

Everything is in world axes about the world's origin, so that the derivatives of inverse dynamics need only sums over
subtrees (Singh, Russo, Wensing 2022): with S a joint's axis, I, B, f the inertia, the Coriolis matrix and the force of
the subtree behind it, and a dash for what the parent's motion does to the axis, for j an ancestor of i

    d tau_i / d q_j  = S_i (2 B_i S'_j + I_i S''_j),   d tau_j / d q_i  = S_j (2 B_i S'_i + I_i S''_i + S_i x* f_i)
    d tau_i / d qd_j = S_i (2 B_i S_j + 2 I_i S'_j),   d tau_j / d qd_i = S_j (2 B_i S_i + 2 I_i S'_i)

2 B is [[T, 0], [-2 l x, 0]] with l the linear momentum. Arrays are flat, field after field with the eight knots of a
block beside each other (structure of arrays), which `lanes` handles as one value. Only ancestors are ever visited, so
branches cost nothing to each other.
"""

from __future__ import annotations

import math

import numpy as np

from retorque.physics.backends.tree.kernel import F1, I1, kernel
from retorque.physics.backends.tree.lanes import LANES, dot, load, loads, store, stores

REVOLUTE, PRISMATIC, FREE = 0, 1, 2

# Fields of a body, each LANES numbers.
R, P, V, A = 0, 9, 12, 18  # rotation, origin, velocity (angular, linear), acceleration (gravity as acceleration)
OWN, COM, F, T, L = 24, 34, 44, 50, 59  # inertia alone and with the subtree, force, T and l of the Coriolis matrix
BODY = 62
# Fields of a degree of freedom.
S, SP, SUM, SPP = 0, 6, 12, 18  # axis, its change by the parent's motion, that plus its own change, second change
FI, FB, FQ, FV = 24, 30, 33, 39  # I S, (2 B)' S (angular part), the two forces of the module's equations
DOF = 45
# Fields of a pair of a degree of freedom and one of its ancestors or itself.
MASS, QIJ, QJI, VIJ, VJI = 0, 1, 2, 3, 4
PAIR = 5


@kernel(f"void({F1}, int64, {F1})")
def _root(w, o, gravity):
    """The world's own pose and motion: gravity is an acceleration of the ground."""
    for k in range(24):
        store(w, o + k * LANES, 0.0)
    store(w, o, 1.0)
    store(w, o + 32, 1.0)
    store(w, o + 64, 1.0)
    stores(w, o + 168, (-gravity[0], -gravity[1], -gravity[2]))


@kernel(f"void({F1}, int64, int64, {F1}, {F1}, {F1})")
def _free(w, o, s, gravity, q, v):
    """A free base: pose from a position and a quaternion, velocity in its own axes, linear first (Pinocchio's)."""
    _root(w, o, gravity)
    x, y, z, r = loads(q, 24, 4)
    stores(
        w,
        o,
        (
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y - r * z),
            2.0 * (x * z + r * y),
            2.0 * (x * y + r * z),
            1.0 - 2.0 * (x * x + z * z),
            2.0 * (y * z - r * x),
            2.0 * (x * z - r * y),
            2.0 * (y * z + r * x),
            1.0 - 2.0 * (x * x + y * y),
        ),
    )
    px, py, pz = loads(q, 0, 3)
    stores(w, o + 72, (px, py, pz))
    for k in range(3):
        ex, ey, ez = load(w, o + 8 * k), load(w, o + 24 + 8 * k), load(w, o + 48 + 8 * k)
        a, b = s + k * DOF * LANES, s + (k + 3) * DOF * LANES
        stores(w, a, (0.0, 0.0, 0.0, ex, ey, ez))
        stores(w, b, (ex, ey, ez, py * ez - pz * ey, pz * ex - px * ez, px * ey - py * ex))
        slide, turn = load(v, k * LANES), load(v, (k + 3) * LANES)
        for c in range(6):
            moved = load(w, a + 8 * c) * slide + load(w, b + 8 * c) * turn
            store(w, o + 96 + 8 * c, load(w, o + 96 + 8 * c) + moved)
    wx, wy, wz, ux, uy, uz = loads(w, o + 96, 6)
    for k in range(6):
        a = s + k * DOF * LANES
        ax, ay, az, bx, by, bz = loads(w, a, 6)
        stores(w, a + 48, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        stores(w, a + 96, (wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax))
        cx = uy * az - uz * ay + wy * bz - wz * by
        cy = uz * ax - ux * az + wz * bx - wx * bz
        cz = ux * ay - uy * ax + wx * by - wy * bx
        stores(w, a + 120, (cx, cy, cz))


@kernel(f"void({F1}, int64, {F1})")
def _inertia(w, o, ten):
    """A body's inertia about the world's origin, and its Coriolis matrix, also as the start of the subtree's."""
    m, hx, hy, hz = ten[0], ten[1], ten[2], ten[3]
    xx, xy, yy, xz, yz, zz = ten[4], ten[5], ten[6], ten[7], ten[8], ten[9]
    a0, a1, a2, a3, a4, a5, a6, a7, a8, px, py, pz = loads(w, o, 12)
    rx, ry, rz = a0 * hx + a1 * hy + a2 * hz, a3 * hx + a4 * hy + a5 * hz, a6 * hx + a7 * hy + a8 * hz
    k0, k1, k2 = a0 * xx + a1 * xy + a2 * xz, a0 * xy + a1 * yy + a2 * yz, a0 * xz + a1 * yz + a2 * zz
    k3, k4, k5 = a3 * xx + a4 * xy + a5 * xz, a3 * xy + a4 * yy + a5 * yz, a3 * xz + a4 * yz + a5 * zz
    k6, k7, k8 = a6 * xx + a7 * xy + a8 * xz, a6 * xy + a7 * yy + a8 * yz, a6 * xz + a7 * yz + a8 * zz
    e = 2.0 * (px * rx + py * ry + pz * rz) + m * (px * px + py * py + pz * pz)
    ixx = k0 * a0 + k1 * a1 + k2 * a2 + e - (2.0 * rx * px + m * px * px)
    ixy = k0 * a3 + k1 * a4 + k2 * a5 - (rx * py + px * ry + m * px * py)
    iyy = k3 * a3 + k4 * a4 + k5 * a5 + e - (2.0 * ry * py + m * py * py)
    ixz = k0 * a6 + k1 * a7 + k2 * a8 - (rx * pz + px * rz + m * px * pz)
    iyz = k3 * a6 + k4 * a7 + k5 * a8 - (ry * pz + py * rz + m * py * pz)
    izz = k6 * a6 + k7 * a7 + k8 * a8 + e - (2.0 * rz * pz + m * pz * pz)
    x, y, z = rx + m * px, ry + m * py, rz + m * pz
    stores(w, o + 192, (m, x, y, z, ixx, ixy, iyy, ixz, iyz, izz, m, x, y, z, ixx, ixy, iyy, ixz, iyz, izz))
    p, q, r, ux, uy, uz = loads(w, o + 96, 6)
    kx = ixx * p + ixy * q + ixz * r + y * uz - z * uy
    ky = ixy * p + iyy * q + iyz * r + z * ux - x * uz
    kz = ixz * p + iyz * q + izz * r + x * uy - y * ux
    # w x I + its transpose, less the symmetric part of the moving first moment, less k x.
    g = 2.0 * (ux * x + uy * y + uz * z)
    t00 = 2.0 * (q * ixz - r * ixy) - 2.0 * ux * x + g
    t11 = 2.0 * (r * ixy - p * iyz) - 2.0 * uy * y + g
    t22 = 2.0 * (p * iyz - q * ixz) - 2.0 * uz * z + g
    t01 = q * iyz - r * iyy + r * ixx - p * ixz - (ux * y + uy * x)
    t02 = q * izz - r * iyz + p * ixy - q * ixx - (ux * z + uz * x)
    t12 = r * ixz - p * izz + p * iyy - q * ixy - (uy * z + uz * y)
    stores(
        w,
        o + 400,
        (
            t00,
            t01 + kz,
            t02 - ky,
            t01 - kz,
            t11,
            t12 + kx,
            t02 + ky,
            t12 - kx,
            t22,
            m * ux + q * z - r * y,
            m * uy + r * x - p * z,
            m * uz + p * y - q * x,
        ),
    )


@kernel(f"void({F1}, int64, int64)")
def _force(w, o, a):
    """A body's own force, inertia times the acceleration at offset `a` plus what its velocity does."""
    m, x, y, z, ixx, ixy, iyy, ixz, iyz, izz = loads(w, o + 192, 10)
    p, q, r, ux, uy, uz = loads(w, o + 96, 6)
    ap, aq, ar, bx, by, bz = loads(w, a, 6)
    kx = ixx * p + ixy * q + ixz * r + y * uz - z * uy
    ky = ixy * p + iyy * q + iyz * r + z * ux - x * uz
    kz = ixz * p + iyz * q + izz * r + x * uy - y * ux
    lx, ly, lz = m * ux + q * z - r * y, m * uy + r * x - p * z, m * uz + p * y - q * x
    stores(
        w,
        o + 352,
        (
            ixx * ap + ixy * aq + ixz * ar + y * bz - z * by + q * kz - r * ky + uy * lz - uz * ly,
            ixy * ap + iyy * aq + iyz * ar + z * bx - x * bz + r * kx - p * kz + uz * lx - ux * lz,
            ixz * ap + iyz * aq + izz * ar + x * by - y * bx + p * ky - q * kx + ux * ly - uy * lx,
            m * bx + aq * z - ar * y + q * lz - r * ly,
            m * by + ar * x - ap * z + r * lx - p * lz,
            m * bz + ap * y - aq * x + p * ly - q * lx,
        ),
    )


@kernel(f"void({F1}, {I1}, {I1}, {I1}, {F1}, {F1}, {F1}, {F1}, {F1}, {F1})")
def kinematics(w, parent, kind, dof, place, axis, gravity, inertial, q, v):
    """Poses, axes, velocities, accelerations at rest of the joints, inertias, forces and Coriolis matrices of bodies.

    Args:
        w: the workspace: BODY fields a body, DOF a degree of freedom, then two more bodies, the world and a spare.
        parent, kind, dof: (bodies,) parent body or -1, kind of joint, first degree of freedom.
        place, axis: (bodies * 12), (bodies * 3) rotation and position of each joint in its parent, and its axis.
        gravity: (3,) [m/s²].
        inertial: (bodies * 10) of the links.
        q, v: (coordinates * LANES), (freedoms * LANES); a free base has a position and a quaternion (x, y, z, w).
    """
    bodies = len(parent)
    dofs = bodies * BODY * LANES
    world = dofs + len(v) * DOF
    _root(w, world, gravity)
    first = 7 if kind[0] == FREE else 0
    co, si = np.empty(LANES), np.empty(LANES)
    for b in range(bodies):
        o = b * BODY * LANES
        d = dof[b]
        s = dofs + d * DOF * LANES
        ax, ay, az = axis[3 * b], axis[3 * b + 1], axis[3 * b + 2]
        if kind[b] == FREE:
            _free(w, o, s, gravity, q, v)
        else:
            k = first + d - (6 if first else 0)
            if kind[b] == REVOLUTE:
                for i in range(LANES):
                    co[i], si[i] = math.cos(q[k * LANES + i]), math.sin(q[k * LANES + i])
            else:
                store(co, 0, 1.0)
                store(si, 0, 0.0)
            e = place[12 * b : 12 * b + 12]
            e0, e1, e2, e3, e4, e5, e6, e7, e8 = e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8]
            ex, ey, ez = e[9], e[10], e[11]
            u = parent[b] * BODY * LANES if parent[b] >= 0 else world
            a0, a1, a2, a3, a4, a5, a6, a7, a8 = loads(w, u, 9)
            px = load(w, u + 72) + a0 * ex + a1 * ey + a2 * ez
            py = load(w, u + 80) + a3 * ex + a4 * ey + a5 * ez
            pz = load(w, u + 88) + a6 * ex + a7 * ey + a8 * ez
            b0, b1, b2 = a0 * e0 + a1 * e3 + a2 * e6, a0 * e1 + a1 * e4 + a2 * e7, a0 * e2 + a1 * e5 + a2 * e8
            b3, b4, b5 = a3 * e0 + a4 * e3 + a5 * e6, a3 * e1 + a4 * e4 + a5 * e7, a3 * e2 + a4 * e5 + a5 * e8
            b6, b7, b8 = a6 * e0 + a7 * e3 + a8 * e6, a6 * e1 + a7 * e4 + a8 * e7, a6 * e2 + a7 * e5 + a8 * e8
            gx, gy, gz = b0 * ax + b1 * ay + b2 * az, b3 * ax + b4 * ay + b5 * az, b6 * ax + b7 * ay + b8 * az
            n, h = load(co, 0), load(si, 0)
            t = 1.0 - n
            r0, r1, r2 = n + t * ax * ax, t * ax * ay - h * az, t * ax * az + h * ay
            r3, r4, r5 = t * ax * ay + h * az, n + t * ay * ay, t * ay * az - h * ax
            r6, r7, r8 = t * ax * az - h * ay, t * ay * az + h * ax, n + t * az * az
            stores(
                w,
                o,
                (
                    b0 * r0 + b1 * r3 + b2 * r6,
                    b0 * r1 + b1 * r4 + b2 * r7,
                    b0 * r2 + b1 * r5 + b2 * r8,
                    b3 * r0 + b4 * r3 + b5 * r6,
                    b3 * r1 + b4 * r4 + b5 * r7,
                    b3 * r2 + b4 * r5 + b5 * r8,
                    b6 * r0 + b7 * r3 + b8 * r6,
                    b6 * r1 + b7 * r4 + b8 * r7,
                    b6 * r2 + b7 * r5 + b8 * r8,
                ),
            )
            if kind[b] == REVOLUTE:
                stores(w, s, (gx, gy, gz, py * gz - pz * gy, pz * gx - px * gz, px * gy - py * gx))
                stores(w, o + 72, (px, py, pz))
            else:
                n = load(q, k * LANES)
                stores(w, s, (0.0, 0.0, 0.0, gx, gy, gz))
                stores(w, o + 72, (px + gx * n, py + gy * n, pz + gz * n))
            wx, wy, wz, ux, uy, uz = loads(w, u + 96, 6)
            ax_, ay_, az_, bx, by, bz = loads(w, s, 6)
            c0, c1, c2 = wy * az_ - wz * ay_, wz * ax_ - wx * az_, wx * ay_ - wy * ax_
            c3 = uy * az_ - uz * ay_ + wy * bz - wz * by
            c4 = uz * ax_ - ux * az_ + wz * bx - wx * bz
            c5 = ux * ay_ - uy * ax_ + wx * by - wy * bx
            stores(w, s + 48, (c0, c1, c2, c3, c4, c5, 2.0 * c0, 2.0 * c1, 2.0 * c2, 2.0 * c3, 2.0 * c4, 2.0 * c5))
            n = load(v, d * LANES)
            stores(
                w,
                o + 96,
                (
                    wx + ax_ * n,
                    wy + ay_ * n,
                    wz + az_ * n,
                    ux + bx * n,
                    uy + by * n,
                    uz + bz * n,
                    load(w, u + 144) + c0 * n,
                    load(w, u + 152) + c1 * n,
                    load(w, u + 160) + c2 * n,
                    load(w, u + 168) + c3 * n,
                    load(w, u + 176) + c4 * n,
                    load(w, u + 184) + c5 * n,
                ),
            )
        _inertia(w, o, inertial[10 * b : 10 * b + 10])
        _force(w, o, o + A * LANES)
    for b in range(bodies - 1, 0, -1):
        if parent[b] >= 0:
            o, u = (b * BODY + COM) * LANES, (parent[b] * BODY + COM) * LANES
            for k in range(BODY - COM):
                store(w, u + k * LANES, load(w, u + k * LANES) + load(w, o + k * LANES))


@kernel(f"void({F1}, int64, int64, int64)")
def _times_inertia(w, o, s, t):
    """The subtree's inertia at body offset `o` times the motion at `s`, to `t`."""
    m, x, y, z, ixx, ixy, iyy, ixz, iyz, izz = loads(w, o + 272, 10)
    a, b, c, d, e, f = loads(w, s, 6)
    stores(
        w,
        t,
        (
            ixx * a + ixy * b + ixz * c + y * f - z * e,
            ixy * a + iyy * b + iyz * c + z * d - x * f,
            ixz * a + iyz * b + izz * c + x * e - y * d,
            m * d + b * z - c * y,
            m * e + c * x - a * z,
            m * f + a * y - b * x,
        ),
    )


@kernel(f"void({F1}, {I1}, {I1}, {I1}, {I1}, {F1}, {F1})")
def mass_and_bias(w, parent, body_of, first_pair, ancestors, pairs, bias):
    """Mass matrix by pairs, and the torque that holds every joint at zero acceleration, (freedoms * LANES)."""
    dofs = len(parent) * BODY * LANES
    for d in range(len(body_of)):
        o, s = body_of[d] * BODY * LANES, dofs + d * DOF * LANES
        _times_inertia(w, o, s, s + FI * LANES)
        store(bias, d * LANES, dot(w, s, w, o + 352, 6))
        for k in range(first_pair[d], first_pair[d + 1]):
            j = dofs + ancestors[k] * DOF * LANES
            store(pairs, k * PAIR * LANES, dot(w, s + 192, w, j, 6))


@kernel(f"void({F1}, int64, int64)")
def _second_change(w, u, s):
    """The second change of the axis at `s` by the motion of the parent body at `u`: a x S + v x S'."""
    a, b, c, d, e, f, a_, b_, c_, d_, e_, f_ = loads(w, s, 12)
    p, q, r, x, y, z, ap, aq, ar, ax, ay, az = loads(w, u + 96, 12)
    stores(
        w,
        s + 144,
        (
            aq * c - ar * b + q * c_ - r * b_,
            ar * a - ap * c + r * a_ - p * c_,
            ap * b - aq * a + p * b_ - q * a_,
            ay * c - az * b + aq * f - ar * e + y * c_ - z * b_ + q * f_ - r * e_,
            az * a - ax * c + ar * d - ap * f + z * a_ - x * c_ + r * d_ - p * f_,
            ax * b - ay * a + ap * e - aq * d + x * b_ - y * a_ + p * e_ - q * d_,
        ),
    )


@kernel(f"void({F1}, int64, int64)")
def _forces_of_motion(w, o, s):
    """FB, FQ and FV of a degree of freedom at `s` whose subtree is at body offset `o`."""
    _times_inertia(w, o, s + SPP * LANES, s + FQ * LANES)
    _times_inertia(w, o, s + SUM * LANES, s + FV * LANES)
    a, b, c, d, e, f, a_, b_, c_ = loads(w, s, 9)
    t0, t1, t2, t3, t4, t5, t6, t7, t8 = loads(w, o + 400, 9)
    lx, ly, lz = 2.0 * load(w, o + 472), 2.0 * load(w, o + 480), 2.0 * load(w, o + 488)
    kx, ky, kz, gx, gy, gz = loads(w, o + 352, 6)
    stores(
        w,
        s + 240,
        (
            t0 * a + t3 * b + t6 * c + ly * f - lz * e,
            t1 * a + t4 * b + t7 * c + lz * d - lx * f,
            t2 * a + t5 * b + t8 * c + lx * e - ly * d,
            load(w, s + 264) + (t0 * a_ + t1 * b_ + t2 * c_ + b * kz - c * ky + e * gz - f * gy),
            load(w, s + 272) + (t3 * a_ + t4 * b_ + t5 * c_ + c * kx - a * kz + f * gx - d * gz),
            load(w, s + 280) + (t6 * a_ + t7 * b_ + t8 * c_ + a * ky - b * kx + d * gy - e * gx),
            load(w, s + 288) + (lz * b_ - ly * c_ + b * gz - c * gy),
            load(w, s + 296) + (lx * c_ - lz * a_ + c * gx - a * gz),
            load(w, s + 304) + (ly * a_ - lx * b_ + a * gy - b * gx),
            load(w, s + 312) + (t0 * a + t1 * b + t2 * c),
            load(w, s + 320) + (t3 * a + t4 * b + t5 * c),
            load(w, s + 328) + (t6 * a + t7 * b + t8 * c),
            load(w, s + 336) + (lz * b - ly * c),
            load(w, s + 344) + (lx * c - lz * a),
            load(w, s + 352) + (ly * a - lx * b),
        ),
    )


@kernel(f"void({F1}, int64, int64, {F1}, int64)")
def _pair(w, s, j, pairs, e):
    """The four derivatives between a degree of freedom at `s` and its ancestor at `j`."""
    ij = dot(w, s + 240, w, j + 48, 3) + dot(w, s + 192, w, j + 144, 6)
    vij = dot(w, s + 240, w, j, 3) + dot(w, s + 192, w, j + 96, 6)
    stores(pairs, e + 8, (ij, dot(w, j, w, s + 264, 6), vij, dot(w, j, w, s + 312, 6)))


@kernel(f"void({F1}, {I1}, {I1}, {I1}, {I1}, {I1}, {I1}, {F1}, {F1}, {F1})")
def derivatives(w, parent, kind, dof, body_of, first_pair, ancestors, v, acceleration, pairs):
    """Derivatives of inverse dynamics by position and velocity at an acceleration (freedoms * LANES), by pairs.

    Follows `kinematics` and `mass_and_bias`.
    """
    bodies = len(parent)
    dofs = bodies * BODY * LANES
    world = dofs + len(v) * DOF
    for b in range(bodies):
        o = b * BODY * LANES
        u = parent[b] * BODY * LANES if parent[b] >= 0 else world
        stores(w, o + 144, loads(w, u + 144, 6))
        for d in range(dof[b], dof[b] + (6 if kind[b] == FREE else 1)):
            s = dofs + d * DOF * LANES
            _second_change(w, u, s)
            n, m = load(acceleration, d * LANES), load(v, d * LANES)
            for c in range(6):
                moved = load(w, s + 8 * c) * n + load(w, s + 48 + 8 * c) * m
                store(w, o + 144 + 8 * c, load(w, o + 144 + 8 * c) + moved)
        _force(w, o, o + A * LANES)
    for b in range(bodies - 1, 0, -1):
        if parent[b] >= 0:
            o, u = (b * BODY + F) * LANES, (parent[b] * BODY + F) * LANES
            for k in range(6):
                store(w, u + k * LANES, load(w, u + k * LANES) + load(w, o + k * LANES))
    for d in range(len(body_of)):
        o, s = body_of[d] * BODY * LANES, dofs + d * DOF * LANES
        _forces_of_motion(w, o, s)
        for k in range(first_pair[d], first_pair[d + 1]):
            j = dofs + ancestors[k] * DOF * LANES
            _pair(w, s, j, pairs, k * PAIR * LANES)
            if kind[body_of[d]] == FREE:  # axes of one joint turn together: its own force does not count
                own = dot(w, j + 240, w, s + 48, 3) + dot(w, j + 192, w, s + 144, 6)
                store(pairs, (k * PAIR + QJI) * LANES, own)
