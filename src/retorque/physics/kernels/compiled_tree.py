"""Poses, Jacobians and gravity torques of a robot's frames in one compiled call, for one robot or a batch."""

from __future__ import annotations

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.robots.robot import Frame, Robot
from retorque.robots.rotation import from_quaternion
from retorque.robots.state import State
from retorque.work.array import Array

FIXED, REVOLUTE, PRISMATIC, FREE = 0, 1, 2, 3


@kernel
def _turn(axis: Array, angle: float, out: Array) -> None:
    """Rotation matrix about a unit axis (Rodrigues)."""
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = axis[0], axis[1], axis[2]
    v = 1.0 - c
    out[0, 0], out[0, 1], out[0, 2] = c + x * x * v, x * y * v - z * s, x * z * v + y * s
    out[1, 0], out[1, 1], out[1, 2] = y * x * v + z * s, c + y * y * v, y * z * v - x * s
    out[2, 0], out[2, 1], out[2, 2] = z * x * v - y * s, z * y * v + x * s, c + z * z * v


@kernel
def _product(a: Array, b: Array, out: Array) -> None:
    for i in range(3):
        for j in range(3):
            out[i, j] = a[i, 0] * b[0, j] + a[i, 1] * b[1, j] + a[i, 2] * b[2, j]


@kernel
def _update(
    topology: Array,
    vectors: Array,
    mass: Array,
    site: Array,
    chains: Array,
    gravity: Array,
    base: Array,
    q: Array,
    position: Array,
    rotation: Array,
    axes: Array,
    sites: Array,
    turns: Array,
    jacobian: Array,
    torque: Array,
    scratch: Array,
) -> None:
    """Fill poses of links and sites, Jacobians and gravity torques; see `CompiledTree`."""
    parent, kind, column = topology[0], topology[1], topology[2]
    offset, axis, centre = vectors[:, 0], vectors[:, 1], vectors[:, 2]
    links = len(parent)
    a, b = scratch[0], scratch[1]
    moment = scratch[2:]  # (links, 3, 3): first row holds the subtree's first moment and [1, 0] its mass
    for t in range(len(q)):
        for k in range(links):
            p = parent[k]
            if kind[k] == FREE:
                for i in range(3):
                    position[t, k, i] = base[t, i]
                w, x, y, z = base[t, 3], base[t, 4], base[t, 5], base[t, 6]
                r = rotation[t, k]
                r[0, 0], r[0, 1], r[0, 2] = 1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)
                r[1, 0], r[1, 1], r[1, 2] = 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)
                r[2, 0], r[2, 1], r[2, 2] = 2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)
                continue
            if p < 0:
                for i in range(3):
                    position[t, k, i] = offset[k, i]
                    for j in range(3):
                        a[i, j] = vectors[k, 3 + i, j]
            else:
                parent_turn = rotation[t, p]
                for i in range(3):
                    position[t, k, i] = (
                        position[t, p, i]
                        + parent_turn[i, 0] * offset[k, 0]
                        + parent_turn[i, 1] * offset[k, 1]
                        + parent_turn[i, 2] * offset[k, 2]
                    )
                _product(parent_turn, vectors[k, 3:], a)
            if kind[k] == REVOLUTE:
                _turn(axis[k], q[t, column[k]], b)
                _product(a, b, rotation[t, k])
            else:
                for i in range(3):
                    for j in range(3):
                        rotation[t, k, i, j] = a[i, j]
            r = rotation[t, k]
            for i in range(3):
                axes[t, k, i] = r[i, 0] * axis[k, 0] + r[i, 1] * axis[k, 1] + r[i, 2] * axis[k, 2]
                if kind[k] == PRISMATIC:
                    position[t, k, i] += axes[t, k, i] * q[t, column[k]]
        for k in range(links):
            r = rotation[t, k]
            moment[k, 1, 0] = mass[k]
            for i in range(3):
                c = position[t, k, i] + r[i, 0] * centre[k, 0] + r[i, 1] * centre[k, 1] + r[i, 2] * centre[k, 2]
                moment[k, 0, i] = mass[k] * c
        for k in range(links - 1, -1, -1):
            p = parent[k]
            if p >= 0:
                moment[p, 1, 0] += moment[k, 1, 0]
                for i in range(3):
                    moment[p, 0, i] += moment[k, 0, i]
            j = column[k]
            if j < 0:
                continue
            m = moment[k, 1, 0]
            x = moment[k, 0, 0] - m * position[t, k, 0]
            y = moment[k, 0, 1] - m * position[t, k, 1]
            z = moment[k, 0, 2] - m * position[t, k, 2]
            u = axes[t, k]
            if kind[k] == REVOLUTE:
                torque[t, j] = -(
                    u[0] * (y * gravity[2] - z * gravity[1])
                    + u[1] * (z * gravity[0] - x * gravity[2])
                    + u[2] * (x * gravity[1] - y * gravity[0])
                )
            else:
                torque[t, j] = -m * (u[0] * gravity[0] + u[1] * gravity[1] + u[2] * gravity[2])
        for s in range(len(site)):
            k = chains[s, 0]
            r = rotation[t, k]
            for i in range(3):
                sites[t, s, i] = (
                    position[t, k, i] + r[i, 0] * site[s, 0, 0] + r[i, 1] * site[s, 0, 1] + r[i, 2] * site[s, 0, 2]
                )
            _product(r, site[s, 1:], turns[t, s])
            for c in range(1, chains.shape[1]):
                k = chains[s, c]
                if k < 0:
                    break
                j = column[k]
                u = axes[t, k]
                if kind[k] == REVOLUTE:
                    x = sites[t, s, 0] - position[t, k, 0]
                    y = sites[t, s, 1] - position[t, k, 1]
                    z = sites[t, s, 2] - position[t, k, 2]
                    jacobian[t, s, 0, j] = u[1] * z - u[2] * y
                    jacobian[t, s, 1, j] = u[2] * x - u[0] * z
                    jacobian[t, s, 2, j] = u[0] * y - u[1] * x
                    for i in range(3):
                        jacobian[t, s, 3 + i, j] = u[i]
                else:
                    for i in range(3):
                        jacobian[t, s, i, j] = u[i]


class CompiledTree:
    """Where frames are, how joints move them and what holds the links against gravity.

    `update` fills the arrays below; they are used again at the next call. A free base is taken as it is: Jacobians are
    by the actuated joints only.

    Args:
        robot: the tree.
        frames: the sites, in order.
        trials: robots served at once.
    """

    def __init__(self, robot: Robot, frames: tuple[Frame, ...], trials: int = 1):
        self.robot, self.frames, self.trials = robot, frames, trials
        links = robot.links
        index = {link.name: k for k, link in enumerate(links)}
        kinds = {None: FIXED, "revolute": REVOLUTE, "prismatic": PRISMATIC, "free": FREE}
        kind = np.array([kinds[link.joint.kind if link.joint else None] for link in links])
        moves = (kind == REVOLUTE) | (kind == PRISMATIC)
        column = np.where(moves, np.cumsum(moves) - 1, -1)
        parent = np.array([index.get(link.parent, -1) for link in links])
        self._tree = (
            np.array([parent, kind, column]),
            np.array(
                [
                    [
                        link.position,
                        link.joint.axis if link.joint else (0.0, 0.0, 1.0),
                        link.centre,
                        *from_quaternion(link.quaternion),
                    ]
                    for link in links
                ],
                dtype=float,
            ),
            np.array([link.mass for link in links], dtype=float),
            np.array([[f.position, *from_quaternion(f.quaternion)] for f in frames], dtype=float).reshape(-1, 4, 3),
        )
        self._gravity = np.array(robot.gravity, dtype=float)
        n, count, sites = robot.n, len(links), len(frames)
        self._chains = np.full((sites, 1 + count), -1)  # each site's own link, then those that move it
        for s, frame in enumerate(frames):
            k, found = index[frame.link], []
            while k >= 0:
                if column[k] >= 0:
                    found.append(k)
                k = parent[k]
            self._chains[s, : 1 + len(found)] = [index[frame.link], *found]
        self.on_chain = np.zeros((sites, n), dtype=bool)
        """(sites, n) whether a joint moves a site."""
        for s in range(sites):
            self.on_chain[s, [column[k] for k in self._chains[s, 1:] if k >= 0]] = True
        self.link_position, self.link_rotation = np.zeros((trials, count, 3)), np.zeros((trials, count, 3, 3))
        """(trials, links, 3) and (trials, links, 3, 3) of the robot's links, in their order."""
        self._axes = np.zeros((trials, count, 3))
        self.position = np.zeros((trials, sites, 3))
        """(trials, sites, 3) [m]"""
        self.rotation = np.zeros((trials, sites, 3, 3))
        """(trials, sites, 3, 3)"""
        self.jacobian = np.zeros((trials, sites, 6, n))
        """(trials, sites, 6, n) linear then angular velocity in world axes per joint velocity."""
        self.gravity = np.zeros((trials, n))
        """(trials, n) torque that holds the links [N·m]."""
        self._scratch = np.zeros((count + 2, 3, 3))
        rest = np.array([*links[0].position, *links[0].quaternion], dtype=float)
        self._rest = np.broadcast_to(rest, (trials, 7)).copy()
        self._link_index = index

    def update(self, q: Array, base: Array | None = None) -> None:
        """Take in joint positions (trials, n) and, of a free base, its pose (trials, 7)."""
        _update(
            *self._tree,
            self._chains,
            self._gravity,
            self._rest if base is None else base,
            q,
            self.link_position,
            self.link_rotation,
            self._axes,
            self.position,
            self.rotation,
            self.jacobian,
            self.gravity,
            self._scratch,
        )

    def at(self, state: State) -> None:
        """`update` from a report of one robot or a batch."""
        base = None if state.base is None else state.base.pose.reshape(self.trials, 7)
        self.update(state.position.reshape(self.gravity.shape), base)

    def link_pose(self, name: str) -> tuple[Array, Array]:
        """Position (trials, 3) and rotation (trials, 3, 3) of a link's frame."""
        k = self._link_index[name]
        return self.link_position[:, k], self.link_rotation[:, k]
