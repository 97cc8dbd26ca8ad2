"""The dynamics of a tree by Pinocchio, knot by knot: the reference, and what runs before code is compiled."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from retorque.physics.backends.joint_losses import all_losses, by_numbers
from retorque.physics.backends.numbers import Chosen
from retorque.physics.dynamics import Dynamics
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array


class PinocchioDynamics(Dynamics):
    """Mass matrix, bias and derivatives of inverse dynamics by Pinocchio, the rest by NumPy."""

    _key: bytes | None = None

    def _at(self, p: Array | None) -> tuple[RigidBody, Parameters, Chosen]:
        """The robot at a vector of free parameters; the last one is kept."""
        key = b"" if p is None else np.asarray(p, dtype=float).tobytes()
        if key != self._key:
            own = self.parameters(p)
            body = RigidBody(self.robot, own.total_inertial(self.robot), own.armature)
            self._last = body, own, Chosen.of(self.selection, p)
            self._key = key
        return self._last

    def _torque(self, u: Array) -> Array:
        out = np.zeros((len(u), self.nv))
        out[:, self.actuated] = u
        return out

    def accelerations(self, q: Array, v: Array, u: Array, p: Array | None) -> Array:
        body, own, _ = self._at(p)
        lost, _, implicit, _ = self._losses(q, v, own)
        mass = body.mass_matrix(q)
        mass[:, range(self.nv), range(self.nv)] += self.timestep * implicit
        return np.linalg.solve(mass, (self._torque(u) - body.bias(q, v) - lost)[..., None])[..., 0]

    def derivatives(self, q: Array, v: Array, u: Array, p: Array | None) -> tuple[Array, Array]:
        body, own, chosen = self._at(p)
        n, h = self.nv, self.timestep
        lost, slope, implicit, bend = self._losses(q, v, own)
        right = np.zeros((len(q), n, 2 * n + self.inputs + self.size))
        a = np.empty_like(v)
        torque = self._torque(u) - lost
        for k in range(len(q)):
            mass = body.mass_matrix(q[k]) + np.diag(h * implicit[k])
            a[k] = np.linalg.solve(mass, torque[k] - body.bias(q[k], v[k]))
            pin.computeRNEADerivatives(body.model, body.data, q[k], v[k], a[k])
            right[k, :, :n], right[k, :, n : 2 * n] = -body.data.dtau_dq, -body.data.dtau_dv
            right[k, :, n : 2 * n] -= np.diag(slope[k] + h * bend[k] * a[k])
            right[k, self.actuated, 2 * n + np.arange(self.inputs)] = 1.0
            if len(chosen.links):
                regressor = body.regressor(q[k], v[k], a[k]).reshape(n, -1, 10)
                by_ten = np.einsum("nkj,kj->nk", regressor[:, chosen.links[:, 0]], chosen.tens)
                for column, value in zip(chosen.links[:, 1].tolist(), by_ten.T, strict=True):
                    right[k, :, 2 * n + self.inputs + column] -= value
        joints = np.arange(self.passed, n)
        right[:, joints, joints] -= own.stiffness
        if len(chosen.joints):
            first = 2 * n + self.inputs
            part = by_numbers(q[:, self.nq - self.robot.n :], v[:, self.passed :], a[:, self.passed :], own, chosen, h)
            right[:, self.passed :, first : first + part.shape[-1]] -= part
        mass = body.mass_matrix(q)
        mass[:, range(n), range(n)] += h * implicit
        return a, np.linalg.solve(mass, right)

    def _losses(self, q: Array, v: Array, own: Parameters) -> tuple[Array, ...]:
        """`all_losses` with zeros for a free base, (knots, nv) each."""
        parts = all_losses(q[:, self.nq - self.robot.n :], v[:, self.passed :], own)
        return tuple(np.pad(part, ((0, 0), (self.passed, 0))) for part in parts)
