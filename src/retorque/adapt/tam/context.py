"""What the network may know of a robot beforehand: torque scales, and how a payload would load each joint."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from retorque.adapt.tam.preset import MAX_JOINTS
from retorque.physics.default_profile import profile_of
from retorque.physics.inertia import robot_inertia, to_vector
from retorque.physics.parameters import mount
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STATIC = 8
"""Numbers that describe a joint once and for all."""
PROBES = 4
"""Test payloads: at the mount, and moved along each of its axes."""


class Context:
    """Scales and probes of one robot; everything follows from its model and its profile, nothing is learnt.

    Torques are measured in `unit` (half of the largest friction the profile allows), loads in `load` (typical gravity
    torque plus one unit), so that robots of any size look alike to the network.
    """

    def __init__(self, robot: Robot):
        if robot.floating or robot.n > MAX_JOINTS:
            raise RetorqueError(f"TAM serves fixed arms of up to {MAX_JOINTS} joints; robot '{robot.name}' is not one")
        self.robot = robot
        self.body = RigidBody(robot)
        self.profile = p = profile_of(robot)
        self.unit = torque_unit(robot)
        low = np.where(np.isfinite(robot.lower), robot.lower, robot.home - np.pi)
        high = np.where(np.isfinite(robot.upper), robot.upper, robot.home + np.pi)
        poses = np.random.default_rng(0).uniform(low, high, (256, robot.n))
        self.load = self.unit + np.sqrt(np.mean(self.body.gravity(poses) ** 2, axis=0))  # (n,) [N·m]
        self.armature_range = 0.5 * (p.armature_max - p.armature_min)  # (n,) [kg·m²]
        self.armature_shift = 0.5 * (p.armature_max + p.armature_min) - robot.armature  # (n,) [kg·m²]
        inertials = _probe_inertias(robot)
        self._probes = [RigidBody(robot, inertial, np.zeros(robot.n)) for inertial in inertials]
        self._payload, self._columns = _regressor_part(inertials)
        self.probe_scale = float(p.payload_mass[1]) / self.unit  # (n,) [kg/(N·m)]
        self._probe_scale = np.tile(self.probe_scale, (PROBES, 1))
        inertia = np.mean(np.diagonal(mass_matrices(self.body, poses), axis1=-2, axis2=-1), axis=0)
        load = np.sqrt(np.mean(self.probe_torques(poses, 0.0 * poses, 0.0 * poses)[..., 0, :] ** 2, axis=0))
        self.static = np.stack(
            [
                np.log(self.load / self.unit),
                np.log(10.0 * inertia / self.unit),
                10.0 * self.armature_range / self.unit,
                np.log(np.maximum(1.0 + self.armature_shift / inertia, 1e-3)),
                p.viscous_max / self.unit,
                p.bias_max / self.unit,
                p.dead_zone_max / self.unit,
                0.2 * load,
            ],
            axis=-1,
        ).astype(np.float32)  # (n, STATIC)

    def probe_torques(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Torque of the largest payload at the mount, and what moving it along each axis adds, (..., 4, n) [units]."""
        raw = np.stack([body.inverse_dynamics(q, qd, qdd) for body in self._probes], axis=-2)
        raw[..., 1:, :] -= raw[..., :1, :]
        return raw * self.probe_scale

    def ideal_response(self, q: Array, qd: Array, torque: Array) -> tuple[Array, Array]:
        """The ideal robot's acceleration under a torque (trials, n) and the probes' torques at it (trials, 4, n).

        The same as `forward_dynamics` and `probe_torques`, without the cost of taking any shape: this runs every tick.
        """
        acceleration = np.empty(torque.shape)
        probes = np.empty((len(torque), PROBES, torque.shape[-1]))
        model, data = self.body.model, self.body.data
        for trial in range(len(torque)):
            a, b = q[trial], qd[trial]
            acceleration[trial] = c = pin.aba(model, data, a, b, torque[trial])
            # Torques are linear in the payload's inertial parameters: one regressor serves all probes.
            regressor = pin.computeJointTorqueRegressor(model, data, a, b, c)[:, self._columns]
            np.multiply(self._payload.dot(regressor.T), self._probe_scale, out=probes[trial])
        return acceleration, probes

    def probe_matrices(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """The same as a mass matrix (..., 4, n, n) and a bias (..., 4, n): torque = matrix @ acceleration + bias."""
        matrix = np.stack([mass_matrices(body, q) for body in self._probes], axis=-3)
        bias = np.stack([body.bias(q, qd) for body in self._probes], axis=-2)
        matrix[..., 1:, :, :] -= matrix[..., :1, :, :]
        bias[..., 1:, :] -= bias[..., :1, :]
        return matrix * self.probe_scale[:, None], bias * self.probe_scale


def torque_unit(robot: Robot) -> Array:
    """Torque that counts as one, (n,) [N·m]: half of the largest friction the profile allows."""
    return np.maximum(0.5 * profile_of(robot).friction_max, 1e-3)


def mass_matrices(body: RigidBody, q: Array) -> Array:
    """The same as `body.mass_matrix` (..., n, n), with one symmetrisation for all states instead of one each."""
    flat = q.reshape(-1, body.nq)
    out = np.empty((len(flat), body.nv, body.nv))
    for index, row in enumerate(flat):
        out[index] = pin.crba(body.model, body.data, row)
    upper = np.triu(out)
    return (upper + np.triu(upper, 1).swapaxes(-1, -2)).reshape(*q.shape[:-1], body.nv, body.nv)


def _regressor_part(inertials: list[Array]) -> tuple[Array, slice]:
    """The link that carries the probes: their parameters (4, 10), the first one's taken off, and its columns."""
    all_links = np.array(inertials)  # (4, links, 10)
    link = int(np.argmax(all_links[0, :, 0]))
    own = all_links[:, link].copy()
    own[1:] -= own[0]
    return own, slice(10 * link, 10 * link + 10)


def _probe_inertias(robot: Robot) -> list[Array]:
    """Inertial parameters (links, 10) of a massless arm that carries 1 kg, at four places."""
    where = mount(robot)
    if where is None:
        return [np.zeros_like(robot_inertia(robot))] * 4
    index, rotation, origin = where
    offset = profile_of(robot).payload_centre
    places = [np.zeros(3), *(offset * np.eye(3))]
    found = []
    for place in places:
        inertial = np.zeros_like(robot_inertia(robot))
        inertial[index] = to_vector(np.array(1.0), origin + rotation @ place, np.zeros((3, 3)))
        found.append(inertial)
    return found
