"""The dynamics of whatever MuJoCo simulates, contact too, with derivatives by finite differences in a batch."""

from __future__ import annotations

import mujoco
import mujoco.batch
import numpy as np

from retorque.physics.actuator import friction_slope, losses
from retorque.physics.dynamics import Dynamics
from retorque.physics.inertia import principal_axes
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.robots.formats.mjcf_writer import to_mjmodel
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array

ROWS = 256
"""Simulations at once."""
CHANGE = 1e-6
"""By which states and inputs are moved for a difference [rad, rad/s, N·m], and parameters by that share."""


class MujocoDynamics(Dynamics):
    """Velocities after a step come from MuJoCo; everything else is as in the other backends.

    Args:
        robot: the tree; with `contact` its links collide with each other.
        timestep: [s]
        selection: the parameters that are free.
        parameters: all the others.
        contact: whether the links touch; a model of one's own says so itself.
        model: one's own MuJoCo model in which this robot's joints come first; default: the robot alone.
        threads: MuJoCo's.
    """

    def __init__(
        self,
        robot: Robot,
        timestep: float,
        *,
        selection: Selection | None = None,
        parameters: Parameters | None = None,
        contact: bool = False,
        model: mujoco.MjModel | None = None,
        threads: int = 1,
    ):
        super().__init__(robot, timestep, selection=selection, parameters=parameters)
        self.model = to_mjmodel(robot, timestep=timestep, contact=contact) if model is None else model
        self.model.opt.timestep = timestep
        self._batch = mujoco.batch.Batch(self.model, ROWS, threads)
        self._qpos, self._qvel = self._batch.bind("qpos"), self._batch.bind("qvel")
        self._applied, self._damping = self._batch.bind("qfrc_applied"), self._batch.expand("dof_damping")
        self._bodies = np.array([self.model.body(link.name).id for link in robot.moving_links])
        self._parts = [self._batch.expand(f"body_{x}") for x in ("mass", "ipos", "inertia", "iquat")]
        self._armature = self._batch.expand("dof_armature")

    def accelerations(self, q: Array, v: Array, u: Array, p: Array | None) -> Array:
        return (self._after(q, v, u, self.parameters(p)) - v) / self.timestep

    def derivatives(self, q: Array, v: Array, u: Array, p: Array | None) -> tuple[Array, Array]:
        n, knots = self.nv, len(q)
        width = 2 * n + self.inputs
        out = np.empty((knots, n, width + self.size))
        x = np.concatenate([q, v], axis=1)
        own = self.parameters(p)
        after = []
        for sign in (1.0, -1.0):
            dx = np.repeat(sign * CHANGE * np.eye(2 * n)[None], knots, axis=0)
            moved = self.add(np.repeat(x[:, None], 2 * n, axis=1), dx).reshape(-1, self.states)
            du = (u[:, None] + sign * CHANGE * np.eye(self.inputs)).reshape(-1, self.inputs)
            by_x = self._after(moved[:, : self.nq], moved[:, self.nq :], np.repeat(u, 2 * n, axis=0), own)
            by_u = self._after(np.repeat(q, self.inputs, axis=0), np.repeat(v, self.inputs, axis=0), du, own)
            after.append((by_x.reshape(knots, 2 * n, n), by_u.reshape(knots, self.inputs, n)))
        for part, columns in ((0, slice(0, 2 * n)), (1, slice(2 * n, width))):
            change = (after[0][part] - after[1][part]) / (2.0 * CHANGE)
            out[:, :, columns] = np.swapaxes(change, 1, 2)
        out[:, range(n), range(n, 2 * n)] -= 1.0
        if self.selection is not None:
            at = self.selection.to_vector(own) if p is None else np.asarray(p, dtype=float)
            for k in range(self.size):
                step = CHANGE * max(1.0, abs(at[k])) * np.eye(self.size)[k]
                ends = [self._after(q, v, u, self.selection.apply(at + sign * step)) for sign in (1.0, -1.0)]
                out[:, :, width + k] = (ends[0] - ends[1]) / (2.0 * step[k])
        out /= self.timestep
        return self.accelerations(q, v, u, p), out

    def _after(self, q: Array, v: Array, u: Array, own: Parameters) -> Array:
        """Velocities (rows, nv) after one step of rows."""
        mass, centre, principal, axes = principal_axes(own.total_inertial(self.robot))
        for part, value in zip(self._parts, (mass, centre, principal, axes), strict=True):
            part[:, self._bodies] = value
        joints_v, joints_q = slice(self.passed, self.nv), slice(self.nq - self.robot.n, self.nq)
        self._armature[:, joints_v] = own.armature
        self._batch.set_const()
        out = np.empty_like(v)
        for begin in range(0, len(q), ROWS):
            rows = slice(begin, min(begin + ROWS, len(q)))
            count = rows.stop - begin
            at, speed = q[rows].copy(), v[rows].copy()
            if self.passed:
                at[:, 3:7] = at[:, [6, 3, 4, 5]]
                turn = np.array([from_quaternion(tuple(row)) for row in at[:, 3:7]])
                speed[:, :3] = np.einsum("kij,kj->ki", turn, speed[:, :3])
            slope = friction_slope(v[rows, joints_v], own)
            self._qpos[:count, : self.nq], self._qvel[:count, : self.nv] = at, speed
            self._damping[:count, joints_v] = slope
            self._applied[:count] = 0.0
            self._applied[:count, self.actuated] = u[rows]
            self._applied[:count, joints_v] += slope * v[rows, joints_v] - losses(
                v[rows, joints_v], own, q[rows, joints_q]
            )
            self._batch.step(np.arange(count))
            after = self._qvel[:count, : self.nv].copy()
            if self.passed:  # the base's linear velocity, back to its own axes before the step
                after[:, :3] = np.einsum("kji,kj->ki", turn, after[:, :3])
                after[:, :3] -= self.timestep * np.cross(v[rows, 3:6], v[rows, :3])
            out[rows] = after
        return out
