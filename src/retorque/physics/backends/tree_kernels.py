"""Compiled rigid-body algebra of a tree, eight knots at a time, with analytic derivatives (numba).

Everything is in world axes about the world's origin, so that the derivatives of inverse dynamics need only sums over
subtrees (Singh, Russo, Wensing 2022): with S a joint's axis, I, B, f the inertia, the Coriolis matrix and the force of
the subtree behind it, and a dash for what the parent's motion does to the axis, for j an ancestor of i

    d tau_i / d q_j  = S_i (2 B_i S'_j + I_i S''_j),   d tau_j / d q_i  = S_j (2 B_i S'_i + I_i S''_i + S_i x* f_i)
    d tau_i / d qd_j = S_i (2 B_i S_j + 2 I_i S'_j),   d tau_j / d qd_i = S_j (2 B_i S_i + 2 I_i S'_i)

2 B is [[T, 0], [-2 l x, 0]] with l the linear momentum. Arrays are flat, field after field with the eight knots of a
block beside each other (structure of arrays): compilers turn the inner loops into vector instructions. Only ancestors
are ever visited, so branches cost nothing to each other.
"""

from __future__ import annotations

import numpy as np

from retorque.physics.backends.kernel import F1, I1, kernel

LANES = 8
"""Knots in a block."""
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
    for i in range(24 * LANES):
        w[o + i] = 0.0
    for i in range(LANES):
        w[o + i] = w[o + 32 + i] = w[o + 64 + i] = 1.0
        w[o + 168 + i], w[o + 176 + i], w[o + 184 + i] = -gravity[0], -gravity[1], -gravity[2]


@kernel(f"void({F1}, int64, int64, {F1}, {F1}, {F1})")
def _free(w, o, s, gravity, q, v):
    """A free base: pose from a position and a quaternion, velocity in its own axes, linear first (Pinocchio's)."""
    _root(w, o, gravity)
    for i in range(LANES):
        x, y, z, r = q[24 + i], q[32 + i], q[40 + i], q[48 + i]
        w[o + i], w[o + 8 + i], w[o + 16 + i] = 1 - 2 * (y * y + z * z), 2 * (x * y - r * z), 2 * (x * z + r * y)
        w[o + 24 + i], w[o + 32 + i], w[o + 40 + i] = 2 * (x * y + r * z), 1 - 2 * (x * x + z * z), 2 * (y * z - r * x)
        w[o + 48 + i], w[o + 56 + i], w[o + 64 + i] = 2 * (x * z - r * y), 2 * (y * z + r * x), 1 - 2 * (x * x + y * y)
        px, py, pz = q[i], q[8 + i], q[16 + i]
        w[o + 72 + i], w[o + 80 + i], w[o + 88 + i] = px, py, pz
        for k in range(3):
            ex, ey, ez = w[o + 8 * k + i], w[o + 24 + 8 * k + i], w[o + 48 + 8 * k + i]
            a, b = s + k * DOF * LANES + i, s + (k + 3) * DOF * LANES + i
            w[a], w[a + 8], w[a + 16], w[a + 24], w[a + 32], w[a + 40] = 0.0, 0.0, 0.0, ex, ey, ez
            w[b], w[b + 8], w[b + 16] = ex, ey, ez
            w[b + 24], w[b + 32], w[b + 40] = py * ez - pz * ey, pz * ex - px * ez, px * ey - py * ex
            for c in range(6):
                w[o + 96 + 8 * c + i] += w[a + 8 * c] * v[k * 8 + i] + w[b + 8 * c] * v[(k + 3) * 8 + i]
        wx, wy, wz = w[o + 96 + i], w[o + 104 + i], w[o + 112 + i]
        ux, uy, uz = w[o + 120 + i], w[o + 128 + i], w[o + 136 + i]
        for k in range(6):
            a = s + k * DOF * LANES + i
            ax, ay, az, bx, by, bz = w[a], w[a + 8], w[a + 16], w[a + 24], w[a + 32], w[a + 40]
            for c in range(6):
                w[a + 48 + 8 * c] = 0.0
            w[a + 96], w[a + 104], w[a + 112] = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
            w[a + 120] = uy * az - uz * ay + wy * bz - wz * by
            w[a + 128] = uz * ax - ux * az + wz * bx - wx * bz
            w[a + 136] = ux * ay - uy * ax + wx * by - wy * bx


@kernel(f"void({F1}, int64, {F1})")
def _inertia(w, o, ten):
    """A body's inertia about the world's origin, and its Coriolis matrix, also as the start of the subtree's."""
    m, hx, hy, hz = ten[0], ten[1], ten[2], ten[3]
    xx, xy, yy, xz, yz, zz = ten[4], ten[5], ten[6], ten[7], ten[8], ten[9]
    for i in range(LANES):
        a0, a1, a2 = w[o + i], w[o + 8 + i], w[o + 16 + i]
        a3, a4, a5 = w[o + 24 + i], w[o + 32 + i], w[o + 40 + i]
        a6, a7, a8 = w[o + 48 + i], w[o + 56 + i], w[o + 64 + i]
        px, py, pz = w[o + 72 + i], w[o + 80 + i], w[o + 88 + i]
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
        w[o + 192 + i], w[o + 200 + i], w[o + 208 + i], w[o + 216 + i] = m, x, y, z
        w[o + 224 + i], w[o + 232 + i], w[o + 240 + i] = ixx, ixy, iyy
        w[o + 248 + i], w[o + 256 + i], w[o + 264 + i] = ixz, iyz, izz
        w[o + 272 + i], w[o + 280 + i], w[o + 288 + i], w[o + 296 + i] = m, x, y, z
        w[o + 304 + i], w[o + 312 + i], w[o + 320 + i] = ixx, ixy, iyy
        w[o + 328 + i], w[o + 336 + i], w[o + 344 + i] = ixz, iyz, izz
        p, q, r = w[o + 96 + i], w[o + 104 + i], w[o + 112 + i]
        ux, uy, uz = w[o + 120 + i], w[o + 128 + i], w[o + 136 + i]
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
        w[o + 400 + i], w[o + 408 + i], w[o + 416 + i] = t00, t01 + kz, t02 - ky
        w[o + 424 + i], w[o + 432 + i], w[o + 440 + i] = t01 - kz, t11, t12 + kx
        w[o + 448 + i], w[o + 456 + i], w[o + 464 + i] = t02 + ky, t12 - kx, t22
        w[o + 472 + i], w[o + 480 + i] = m * ux + q * z - r * y, m * uy + r * x - p * z
        w[o + 488 + i] = m * uz + p * y - q * x


@kernel(f"void({F1}, int64, int64)")
def _force(w, o, a):
    """A body's own force, inertia times the acceleration at offset `a` plus what its velocity does."""
    for i in range(LANES):
        m, x, y, z = w[o + 192 + i], w[o + 200 + i], w[o + 208 + i], w[o + 216 + i]
        ixx, ixy, iyy = w[o + 224 + i], w[o + 232 + i], w[o + 240 + i]
        ixz, iyz, izz = w[o + 248 + i], w[o + 256 + i], w[o + 264 + i]
        p, q, r = w[o + 96 + i], w[o + 104 + i], w[o + 112 + i]
        ux, uy, uz = w[o + 120 + i], w[o + 128 + i], w[o + 136 + i]
        ap, aq, ar = w[a + i], w[a + 8 + i], w[a + 16 + i]
        bx, by, bz = w[a + 24 + i], w[a + 32 + i], w[a + 40 + i]
        kx = ixx * p + ixy * q + ixz * r + y * uz - z * uy
        ky = ixy * p + iyy * q + iyz * r + z * ux - x * uz
        kz = ixz * p + iyz * q + izz * r + x * uy - y * ux
        lx, ly, lz = m * ux + q * z - r * y, m * uy + r * x - p * z, m * uz + p * y - q * x
        w[o + 352 + i] = ixx * ap + ixy * aq + ixz * ar + y * bz - z * by + q * kz - r * ky + uy * lz - uz * ly
        w[o + 360 + i] = ixy * ap + iyy * aq + iyz * ar + z * bx - x * bz + r * kx - p * kz + uz * lx - ux * lz
        w[o + 368 + i] = ixz * ap + iyz * aq + izz * ar + x * by - y * bx + p * ky - q * kx + ux * ly - uy * lx
        w[o + 376 + i] = m * bx + aq * z - ar * y + q * lz - r * ly
        w[o + 384 + i] = m * by + ar * x - ap * z + r * lx - p * lz
        w[o + 392 + i] = m * bz + ap * y - aq * x + p * ly - q * lx


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
                    co[i], si[i] = np.cos(q[k * LANES + i]), np.sin(q[k * LANES + i])
            else:
                co[:] = 1.0
                si[:] = 0.0
            e = place[12 * b : 12 * b + 12]
            e0, e1, e2, e3, e4, e5, e6, e7, e8 = e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7], e[8]
            ex, ey, ez = e[9], e[10], e[11]
            u = parent[b] * BODY * LANES if parent[b] >= 0 else world
            for i in range(LANES):
                a0, a1, a2 = w[u + i], w[u + 8 + i], w[u + 16 + i]
                a3, a4, a5 = w[u + 24 + i], w[u + 32 + i], w[u + 40 + i]
                a6, a7, a8 = w[u + 48 + i], w[u + 56 + i], w[u + 64 + i]
                px = w[u + 72 + i] + a0 * ex + a1 * ey + a2 * ez
                py = w[u + 80 + i] + a3 * ex + a4 * ey + a5 * ez
                pz = w[u + 88 + i] + a6 * ex + a7 * ey + a8 * ez
                b0, b1, b2 = a0 * e0 + a1 * e3 + a2 * e6, a0 * e1 + a1 * e4 + a2 * e7, a0 * e2 + a1 * e5 + a2 * e8
                b3, b4, b5 = a3 * e0 + a4 * e3 + a5 * e6, a3 * e1 + a4 * e4 + a5 * e7, a3 * e2 + a4 * e5 + a5 * e8
                b6, b7, b8 = a6 * e0 + a7 * e3 + a8 * e6, a6 * e1 + a7 * e4 + a8 * e7, a6 * e2 + a7 * e5 + a8 * e8
                gx, gy, gz = b0 * ax + b1 * ay + b2 * az, b3 * ax + b4 * ay + b5 * az, b6 * ax + b7 * ay + b8 * az
                n, t, h = co[i], 1.0 - co[i], si[i]
                r0, r1, r2 = n + t * ax * ax, t * ax * ay - h * az, t * ax * az + h * ay
                r3, r4, r5 = t * ax * ay + h * az, n + t * ay * ay, t * ay * az - h * ax
                r6, r7, r8 = t * ax * az - h * ay, t * ay * az + h * ax, n + t * az * az
                w[o + i], w[o + 8 + i] = b0 * r0 + b1 * r3 + b2 * r6, b0 * r1 + b1 * r4 + b2 * r7
                w[o + 16 + i], w[o + 24 + i] = b0 * r2 + b1 * r5 + b2 * r8, b3 * r0 + b4 * r3 + b5 * r6
                w[o + 32 + i], w[o + 40 + i] = b3 * r1 + b4 * r4 + b5 * r7, b3 * r2 + b4 * r5 + b5 * r8
                w[o + 48 + i], w[o + 56 + i] = b6 * r0 + b7 * r3 + b8 * r6, b6 * r1 + b7 * r4 + b8 * r7
                w[o + 64 + i] = b6 * r2 + b7 * r5 + b8 * r8
                w[s + i], w[s + 8 + i], w[s + 16 + i] = gx, gy, gz
                w[o + 72 + i], w[o + 80 + i], w[o + 88 + i] = px, py, pz
            if kind[b] == REVOLUTE:
                for i in range(LANES):
                    gx, gy, gz = w[s + i], w[s + 8 + i], w[s + 16 + i]
                    px, py, pz = w[o + 72 + i], w[o + 80 + i], w[o + 88 + i]
                    w[s + 24 + i], w[s + 32 + i] = py * gz - pz * gy, pz * gx - px * gz
                    w[s + 40 + i] = px * gy - py * gx
            else:
                for i in range(LANES):
                    for c in range(3):
                        g = w[s + 8 * c + i]
                        w[s + 24 + 8 * c + i], w[s + 8 * c + i] = g, 0.0
                        w[o + 72 + 8 * c + i] += g * q[k * LANES + i]
            vd = v[d * LANES : (d + 1) * LANES]
            for i in range(LANES):
                wx, wy, wz = w[u + 96 + i], w[u + 104 + i], w[u + 112 + i]
                ux, uy, uz = w[u + 120 + i], w[u + 128 + i], w[u + 136 + i]
                ax_, ay_, az_ = w[s + i], w[s + 8 + i], w[s + 16 + i]
                bx, by, bz = w[s + 24 + i], w[s + 32 + i], w[s + 40 + i]
                c0, c1, c2 = wy * az_ - wz * ay_, wz * ax_ - wx * az_, wx * ay_ - wy * ax_
                c3 = uy * az_ - uz * ay_ + wy * bz - wz * by
                c4 = uz * ax_ - ux * az_ + wz * bx - wx * bz
                c5 = ux * ay_ - uy * ax_ + wx * by - wy * bx
                w[s + 48 + i], w[s + 56 + i], w[s + 64 + i] = c0, c1, c2
                w[s + 72 + i], w[s + 80 + i], w[s + 88 + i] = c3, c4, c5
                w[s + 96 + i], w[s + 104 + i], w[s + 112 + i] = 2.0 * c0, 2.0 * c1, 2.0 * c2
                w[s + 120 + i], w[s + 128 + i], w[s + 136 + i] = 2.0 * c3, 2.0 * c4, 2.0 * c5
                n = vd[i]
                w[o + 96 + i], w[o + 104 + i], w[o + 112 + i] = wx + ax_ * n, wy + ay_ * n, wz + az_ * n
                w[o + 120 + i], w[o + 128 + i], w[o + 136 + i] = ux + bx * n, uy + by * n, uz + bz * n
                w[o + 144 + i], w[o + 152 + i] = w[u + 144 + i] + c0 * n, w[u + 152 + i] + c1 * n
                w[o + 160 + i], w[o + 168 + i] = w[u + 160 + i] + c2 * n, w[u + 168 + i] + c3 * n
                w[o + 176 + i], w[o + 184 + i] = w[u + 176 + i] + c4 * n, w[u + 184 + i] + c5 * n
        _inertia(w, o, inertial[10 * b : 10 * b + 10])
        _force(w, o, o + A * LANES)
    for b in range(bodies - 1, 0, -1):
        if parent[b] >= 0:
            o, u = (b * BODY + COM) * LANES, (parent[b] * BODY + COM) * LANES
            for i in range((BODY - COM) * LANES):
                w[u + i] += w[o + i]


@kernel(f"void({F1}, int64, int64, int64)")
def _times_inertia(w, o, s, t):
    """The subtree's inertia at body offset `o` times the motion at `s`, to `t`."""
    for i in range(LANES):
        m, x, y, z = w[o + 272 + i], w[o + 280 + i], w[o + 288 + i], w[o + 296 + i]
        ixx, ixy, iyy = w[o + 304 + i], w[o + 312 + i], w[o + 320 + i]
        ixz, iyz, izz = w[o + 328 + i], w[o + 336 + i], w[o + 344 + i]
        a, b, c = w[s + i], w[s + 8 + i], w[s + 16 + i]
        d, e, f = w[s + 24 + i], w[s + 32 + i], w[s + 40 + i]
        w[t + i] = ixx * a + ixy * b + ixz * c + y * f - z * e
        w[t + 8 + i] = ixy * a + iyy * b + iyz * c + z * d - x * f
        w[t + 16 + i] = ixz * a + iyz * b + izz * c + x * e - y * d
        w[t + 24 + i] = m * d + b * z - c * y
        w[t + 32 + i] = m * e + c * x - a * z
        w[t + 40 + i] = m * f + a * y - b * x


@kernel(f"void({F1}, {I1}, {I1}, {I1}, {I1}, {F1}, {F1})")
def mass_and_bias(w, parent, body_of, first_pair, ancestors, pairs, bias):
    """Mass matrix by pairs, and the torque that holds every joint at zero acceleration, (freedoms * LANES)."""
    dofs = len(parent) * BODY * LANES
    for d in range(len(body_of)):
        o, s = body_of[d] * BODY * LANES, dofs + d * DOF * LANES
        _times_inertia(w, o, s, s + FI * LANES)
        for i in range(LANES):
            total = 0.0
            for c in range(6):
                total += w[s + 8 * c + i] * w[o + 352 + 8 * c + i]
            bias[d * LANES + i] = total
        for k in range(first_pair[d], first_pair[d + 1]):
            j = dofs + ancestors[k] * DOF * LANES
            e = k * PAIR * LANES
            for i in range(LANES):
                pairs[e + i] = (
                    w[s + 192 + i] * w[j + i]
                    + w[s + 200 + i] * w[j + 8 + i]
                    + w[s + 208 + i] * w[j + 16 + i]
                    + w[s + 216 + i] * w[j + 24 + i]
                    + w[s + 224 + i] * w[j + 32 + i]
                    + w[s + 232 + i] * w[j + 40 + i]
                )


@kernel(f"void({F1}, int64, int64)")
def _second_change(w, u, s):
    """The second change of the axis at `s` by the motion of the parent body at `u`: a x S + v x S'."""
    for i in range(LANES):
        a, b, c = w[s + i], w[s + 8 + i], w[s + 16 + i]
        d, e, f = w[s + 24 + i], w[s + 32 + i], w[s + 40 + i]
        a_, b_, c_ = w[s + 48 + i], w[s + 56 + i], w[s + 64 + i]
        d_, e_, f_ = w[s + 72 + i], w[s + 80 + i], w[s + 88 + i]
        p, q, r = w[u + 96 + i], w[u + 104 + i], w[u + 112 + i]
        x, y, z = w[u + 120 + i], w[u + 128 + i], w[u + 136 + i]
        ap, aq, ar = w[u + 144 + i], w[u + 152 + i], w[u + 160 + i]
        ax, ay, az = w[u + 168 + i], w[u + 176 + i], w[u + 184 + i]
        w[s + 144 + i] = aq * c - ar * b + q * c_ - r * b_
        w[s + 152 + i] = ar * a - ap * c + r * a_ - p * c_
        w[s + 160 + i] = ap * b - aq * a + p * b_ - q * a_
        w[s + 168 + i] = ay * c - az * b + aq * f - ar * e + y * c_ - z * b_ + q * f_ - r * e_
        w[s + 176 + i] = az * a - ax * c + ar * d - ap * f + z * a_ - x * c_ + r * d_ - p * f_
        w[s + 184 + i] = ax * b - ay * a + ap * e - aq * d + x * b_ - y * a_ + p * e_ - q * d_


@kernel(f"void({F1}, int64, int64)")
def _forces_of_motion(w, o, s):
    """FB, FQ and FV of a degree of freedom at `s` whose subtree is at body offset `o`."""
    _times_inertia(w, o, s + SPP * LANES, s + FQ * LANES)
    _times_inertia(w, o, s + SUM * LANES, s + FV * LANES)
    for i in range(LANES):
        a, b, c = w[s + i], w[s + 8 + i], w[s + 16 + i]
        d, e, f = w[s + 24 + i], w[s + 32 + i], w[s + 40 + i]
        a_, b_, c_ = w[s + 48 + i], w[s + 56 + i], w[s + 64 + i]
        t0, t1, t2 = w[o + 400 + i], w[o + 408 + i], w[o + 416 + i]
        t3, t4, t5 = w[o + 424 + i], w[o + 432 + i], w[o + 440 + i]
        t6, t7, t8 = w[o + 448 + i], w[o + 456 + i], w[o + 464 + i]
        lx, ly, lz = 2.0 * w[o + 472 + i], 2.0 * w[o + 480 + i], 2.0 * w[o + 488 + i]
        kx, ky, kz = w[o + 352 + i], w[o + 360 + i], w[o + 368 + i]
        gx, gy, gz = w[o + 376 + i], w[o + 384 + i], w[o + 392 + i]
        w[s + 240 + i] = t0 * a + t3 * b + t6 * c + ly * f - lz * e
        w[s + 248 + i] = t1 * a + t4 * b + t7 * c + lz * d - lx * f
        w[s + 256 + i] = t2 * a + t5 * b + t8 * c + lx * e - ly * d
        w[s + 264 + i] += t0 * a_ + t1 * b_ + t2 * c_ + b * kz - c * ky + e * gz - f * gy
        w[s + 272 + i] += t3 * a_ + t4 * b_ + t5 * c_ + c * kx - a * kz + f * gx - d * gz
        w[s + 280 + i] += t6 * a_ + t7 * b_ + t8 * c_ + a * ky - b * kx + d * gy - e * gx
        w[s + 288 + i] += lz * b_ - ly * c_ + b * gz - c * gy
        w[s + 296 + i] += lx * c_ - lz * a_ + c * gx - a * gz
        w[s + 304 + i] += ly * a_ - lx * b_ + a * gy - b * gx
        w[s + 312 + i] += t0 * a + t1 * b + t2 * c
        w[s + 320 + i] += t3 * a + t4 * b + t5 * c
        w[s + 328 + i] += t6 * a + t7 * b + t8 * c
        w[s + 336 + i] += lz * b - ly * c
        w[s + 344 + i] += lx * c - lz * a
        w[s + 352 + i] += ly * a - lx * b


@kernel(f"void({F1}, int64, int64, {F1}, int64)")
def _pair(w, s, j, pairs, e):
    """The four derivatives between a degree of freedom at `s` and its ancestor at `j`."""
    for i in range(LANES):
        a, b, c = w[j + i], w[j + 8 + i], w[j + 16 + i]
        d, g, f = w[j + 24 + i], w[j + 32 + i], w[j + 40 + i]
        p, q, r = w[s + 240 + i], w[s + 248 + i], w[s + 256 + i]
        x, y, z = w[s + 192 + i], w[s + 200 + i], w[s + 208 + i]
        t, u, v = w[s + 216 + i], w[s + 224 + i], w[s + 232 + i]
        pairs[e + 8 + i] = (
            p * w[j + 48 + i]
            + q * w[j + 56 + i]
            + r * w[j + 64 + i]
            + x * w[j + 144 + i]
            + y * w[j + 152 + i]
            + z * w[j + 160 + i]
            + t * w[j + 168 + i]
            + u * w[j + 176 + i]
            + v * w[j + 184 + i]
        )
        pairs[e + 16 + i] = (
            a * w[s + 264 + i]
            + b * w[s + 272 + i]
            + c * w[s + 280 + i]
            + d * w[s + 288 + i]
            + g * w[s + 296 + i]
            + f * w[s + 304 + i]
        )
        pairs[e + 24 + i] = (
            p * a
            + q * b
            + r * c
            + x * w[j + 96 + i]
            + y * w[j + 104 + i]
            + z * w[j + 112 + i]
            + t * w[j + 120 + i]
            + u * w[j + 128 + i]
            + v * w[j + 136 + i]
        )
        pairs[e + 32 + i] = (
            a * w[s + 312 + i]
            + b * w[s + 320 + i]
            + c * w[s + 328 + i]
            + d * w[s + 336 + i]
            + g * w[s + 344 + i]
            + f * w[s + 352 + i]
        )


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
        for i in range(6 * LANES):
            w[o + 144 + i] = w[u + 144 + i]
        for d in range(dof[b], dof[b] + (6 if kind[b] == FREE else 1)):
            s = dofs + d * DOF * LANES
            _second_change(w, u, s)
            for i in range(LANES):
                n, m = acceleration[d * LANES + i], v[d * LANES + i]
                for c in range(6):
                    w[o + 144 + 8 * c + i] += w[s + 8 * c + i] * n + w[s + 48 + 8 * c + i] * m
        _force(w, o, o + A * LANES)
    for b in range(bodies - 1, 0, -1):
        if parent[b] >= 0:
            o, u = (b * BODY + F) * LANES, (parent[b] * BODY + F) * LANES
            for i in range(6 * LANES):
                w[u + i] += w[o + i]
    for d in range(len(body_of)):
        o, s = body_of[d] * BODY * LANES, dofs + d * DOF * LANES
        _forces_of_motion(w, o, s)
        for k in range(first_pair[d], first_pair[d + 1]):
            j = dofs + ancestors[k] * DOF * LANES
            _pair(w, s, j, pairs, k * PAIR * LANES)
            if kind[body_of[d]] == FREE:  # axes of one joint turn together: its own force does not count
                e = k * PAIR * LANES
                for i in range(LANES):
                    total = 0.0
                    for c in range(3):
                        total += w[j + 240 + 8 * c + i] * w[s + 48 + 8 * c + i]
                    for c in range(6):
                        total += w[j + 192 + 8 * c + i] * w[s + 144 + 8 * c + i]
                    pairs[e + 8 * QJI + i] = total
