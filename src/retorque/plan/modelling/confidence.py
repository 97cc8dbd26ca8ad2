"""The paper's confidence scores: how much of each parameter a stretch of motion shows (section III-B).

With unit parameters the equations of motion are linear in them, so each score is a sum over samples of the norm of one
column of the regressor. Gravity enters as it acts; the paper's sign of its own term is the other one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import mujoco
import numpy as np
import pinocchio as pin

from retorque.physics.inertia import from_vector
from retorque.physics.rigid_body import RigidBody
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PRINCIPAL = (4, 6, 9)
"""Places of Ixx, Iyy and Izz among a link's ten numbers."""
SLIDING = 1e-3
"""Contacts that move faster than this slide [m/s]."""


class Confidence:
    """Scores of the free parameters.

    Args:
        free: what is identified.
        temperature: that the scores are divided by before they saturate; the paper does not print it.
        coriolis: whether velocities count in the scores of masses and inertias (appendix VI-B).
    """

    def __init__(self, free: FreeParameters, temperature: float, coriolis: bool = False):
        if not temperature > 0.0:
            raise RetorqueError("the temperature of the confidence scores must be above zero")
        self.free, self.temperature, self.coriolis = free, temperature, coriolis
        self._body = RigidBody(free.robot)
        self._scores = [self._score_of(int(k)) for k in free.columns]

    def scores(self, states: Array, timestep: float) -> Array:
        """One score (size,) for each parameter over states (T+1, 2 n)."""
        n = self.free.robot.n
        q, v = states[:-1, :n], states[:-1, n:]
        a = np.diff(states[:, n:], axis=0) / timestep
        return np.array([score(q, v, a) for score in self._scores])

    def value(self, states: Array, timestep: float) -> float:
        """Between 0 and 1: the mean of tanh(score / temperature), as the public code has it."""
        return float(np.mean(np.tanh(self.scores(states, timestep) / self.temperature)))

    def _score_of(self, column: int) -> Callable[[Array, Array, Array], float]:
        selection, start = self.free.selection, 0
        for block in selection.blocks:
            size = len(block.names)
            if start <= column < start + size:
                owner = int(block.owners[(column - start) // block.width])
                return self._score(block.kind.name, owner, (column - start) % block.width)
            start += size
        raise RetorqueError("there is no such parameter")

    def _score(self, kind: str, owner: int, part: int) -> Callable[[Array, Array, Array], float]:
        if kind in ("stiffness", "rest_position"):
            rest = self.free.selection.base.rest_position[owner]
            return lambda q, v, a: float(np.sum(np.abs(q[:, owner] - rest)))
        if kind in ("damping", "viscous", "coulomb", "friction", "friction_amplitude"):
            return lambda q, v, a: float(np.sum(np.abs(v[:, owner])))
        if kind in ("mass", "mass_scale", "payload_mass"):
            link = self._link(owner, kind)
            return lambda q, v, a: self._mass(q, v, a, link)
        if kind in ("centre", "payload_centre"):
            link = self._link(owner, kind)
            return lambda q, v, a: self._centre(q, v, a, link, part)
        if kind in ("inertia", "inertial"):
            place = PRINCIPAL[min(part, 2)] if kind == "inertia" else part
            return lambda q, v, a: self._columns(q, v, a, 10 * owner + place, False)
        raise RetorqueError(f"the paper has no confidence score for '{kind}'; choose another policy")

    def _link(self, owner: int, kind: str) -> int:
        names = [link.name for link in self.free.robot.moving_links]
        return names.index(self.free.robot.payload_mount.link) if kind.startswith("payload") else owner

    def _mass(self, q: Array, v: Array, a: Array, link: int) -> float:
        """|(J' J + Jw' I Jw) a + J' g| of one kilogram of the link."""
        vector = self._body.inertial[link]
        unit = vector / vector[0] if from_vector(vector)[0] > 0.0 else np.eye(10)[0]
        still = v if self.coriolis else np.zeros_like(v)
        rows = self._body.regressor(q, still, a)[..., 10 * link : 10 * link + 10] @ unit
        return float(np.sum(np.linalg.norm(rows, axis=-1)))

    def _columns(self, q: Array, v: Array, a: Array, column: int, gravity: bool) -> float:
        """|Jw' Diag(Jw a)| of one principal inertia; gravity does not act on it."""
        still = v if self.coriolis else np.zeros_like(v)
        rows = self._body.regressor(q, still, a)[..., column]
        return float(np.sum(np.linalg.norm(rows, axis=-1)))

    def _centre(self, q: Array, v: Array, a: Array, link: int, axis: int) -> float:
        """|S(:, i)| + |G(:, i)| of equation 8, in the link's axes, where norms are the same."""
        model, data, total = self._body.model, self._body.data, 0.0
        for k in range(len(q)):
            pin.forwardKinematics(model, data, q[k], v[k], a[k])
            spin, turn = data.v[link + 1].angular, data.a[link + 1].angular
            linear = data.a[link + 1].linear + np.cross(spin, data.v[link + 1].linear)
            felt = linear - data.oMi[link + 1].rotation.T @ model.gravity.linear
            s = pin.skew(turn) + pin.skew(spin) @ pin.skew(spin)
            total += float(np.linalg.norm(s[:, axis]) + np.linalg.norm(pin.skew(felt)[:, axis]))
        return total


def sliding_friction(model: mujoco.MjModel, states: Array, timestep: float) -> float:
    """The score of a friction coefficient: |J' f| summed over contacts that slide along states (T+1, nq + nv).

    Args:
        model: a MuJoCo model with contact, whose state is (qpos, qvel).
        states: as observed.
        timestep: between them [s].
    """
    data, total = mujoco.MjData(model), 0.0
    force, jacobian = np.zeros(6), np.zeros((3, model.nv))
    for now, after in pairwise(states):
        data.qpos[:], data.qvel[:] = now[: model.nq], now[model.nq :]
        data.qacc[:] = (after[model.nq :] - now[model.nq :]) / timestep
        mujoco.mj_inverse(model, data)
        for k in range(data.ncon):
            contact = data.contact[k]
            frame = contact.frame.reshape(3, 3)
            moving = np.zeros((3, model.nv))
            for geom, sign in ((contact.geom[1], 1.0), (contact.geom[0], -1.0)):
                mujoco.mj_jac(model, data, jacobian, None, contact.pos, model.geom_bodyid[geom])
                moving += sign * jacobian
            slip = frame[1:] @ moving @ data.qvel
            if np.linalg.norm(slip) > SLIDING:
                mujoco.mj_contactForce(model, data, k, force)
                total += float(np.linalg.norm(moving.T @ (frame[1:].T @ force[1:3])))
    return total
