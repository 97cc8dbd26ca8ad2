"""The dynamics of a tree by compiled code with analytic derivatives."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pinocchio as pin

from retorque.physics.backends.kernel_cache import load_kernels
from retorque.physics.backends.numbers import Chosen, Numbers
from retorque.physics.dynamics import Dynamics
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array

KEPT = 32
"""Vectors of parameters whose arrays are kept."""
KIND = {"revolute": 0, "prismatic": 1, "free": 2}


class TreeDynamics(Dynamics):
    """numba: knots in blocks of eight, only ancestors visited; see `tree_kernels`."""

    def __init__(
        self,
        robot: Robot,
        timestep: float,
        *,
        selection: Selection | None = None,
        parameters: Parameters | None = None,
    ):
        super().__init__(robot, timestep, selection=selection, parameters=parameters)
        self.kernels = load_kernels("trajectory_kernels")
        self.tree = _tree(robot, self.body.model, self.actuated)
        self._known: OrderedDict[bytes, tuple[tuple[Array, ...], tuple[Array, ...]]] = OrderedDict()
        self.numbers(None)

    def numbers(self, p: Array | None) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
        """Arrays of the robot's numbers, and of which are free, at a vector (size,); the last few are kept."""
        key = b"" if p is None else np.asarray(p, dtype=float).tobytes()
        found = self._known.get(key)
        if found is None:
            own = Numbers.of(self.robot, self.parameters(p))
            free = Chosen.of(self.selection, p)
            flat = (own.inertial.ravel(), own.joints.ravel(), own.terms.ravel(), own.constants.ravel())
            chosen = (free.links.ravel(), free.tens.ravel(), free.joints.ravel(), free.weights)
            found = self._known[key] = tuple(map(np.array, flat)), tuple(map(np.array, chosen))
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    def accelerations(self, q: Array, v: Array, u: Array, p: Array | None) -> Array:
        out = np.empty_like(v)
        self.kernels.accelerations(self.tree, self.numbers(p)[0], q, v, u, self.timestep, out)
        return out

    def derivatives(self, q: Array, v: Array, u: Array, p: Array | None) -> tuple[Array, Array]:
        own, free = self.numbers(p)
        a, out = np.empty_like(v), np.empty((len(q), self.nv, 2 * self.nv + self.inputs + self.size))
        self.kernels.linearise(self.tree, own, free, q, v, u, self.timestep, a, out)
        return a, out


def _tree(robot: Robot, model: pin.Model, actuated: Array) -> tuple[Array, ...]:
    """The tuple of arrays that kernels take; see `trajectory_kernels.TREE`."""
    joints = [link.joint for link in robot.moving_links if link.joint is not None]
    parent = np.array(model.parents.tolist()[1:], dtype=np.int64) - 1
    kind = np.array([KIND[joint.kind] for joint in joints], dtype=np.int64)
    dof = np.array([model.idx_vs[k + 1] for k in range(len(joints))], dtype=np.int64)
    width = np.where(kind == KIND["free"], 6, 1)
    body_of = np.repeat(np.arange(len(joints)), width).astype(np.int64)
    lines: list[list[int]] = []
    low, high = np.zeros(model.nv, dtype=np.int64), np.zeros(model.nv, dtype=np.int64)
    for d, body in enumerate(body_of.tolist()):
        above = lines[dof[parent[body]] + width[parent[body]] - 1] if parent[body] >= 0 else []
        within = list(range(int(dof[body]), d + 1))
        lines.append([*above, *within])
        low[d] = lines[d][0]
    for d in range(model.nv):
        high[d] = 1 + int(np.max(np.flatnonzero(low == low[d])))
    first = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    placements = [model.jointPlacements[k + 1] for k in range(len(joints))]
    place = np.concatenate([np.concatenate([x.rotation.ravel(), x.translation]) for x in placements])
    axis = np.array([joint.axis for joint in joints], dtype=float).ravel()
    ancestors = np.array([d for line in lines for d in line], dtype=np.int64)
    gravity = np.array(robot.gravity, dtype=float)
    return parent, kind, dof, body_of, first, ancestors, low, high, actuated.astype(np.int64), place, axis, gravity
