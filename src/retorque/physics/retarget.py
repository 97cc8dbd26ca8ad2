"""The torque that makes a target with known parameters move as the ideal robot would (TAM, C.1, C.4, C.5)."""

from __future__ import annotations

import numpy as np

from retorque.physics.actuator import command_for, friction_slope
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.work.array import Array


def inverse_torque_command(
    body: RigidBody,
    p: Parameters,
    q: Array,
    qd: Array,
    qdd: Array,
    external: Array | float = 0.0,
    timestep: float = 0.0,
) -> Array:
    """Φ(q, q̇, q̈, w): the command that gives a target the acceleration `qdd` (C.1), (..., n) [N·m].

    Args:
        body: the ideal robot's algebra; the target's inertias come from `p`.
        p: the target's parameters, with the same leading axes as `q`.
        q: positions (..., n) [rad].
        qd: velocities (..., n) [rad/s].
        qdd: desired accelerations (..., n) [rad/s²].
        external: external generalized torque on the joints (..., n) [N·m].
        timestep: how long the command is held [s]; steep friction changes within a tick, and with the tick's length the
            command pays for the friction at its end.
    """
    inertial = p.total_inertial(body.robot)
    torque = apply_inertial(body, inertial, q, qd, qdd) + p.armature * qdd
    if timestep > 0.0:
        torque = torque + timestep * friction_slope(qd, p) * qdd
    return command_for(torque - external, qd, p, q)


def apply_inertial(body: RigidBody, inertial: Array, q: Array, qd: Array, qdd: Array) -> Array:
    """Inverse dynamics without armature of links with other inertial parameters (..., L, 10), (..., n) [N·m]."""
    regressor = body.regressor(q, qd, qdd)
    flat = inertial.reshape(*inertial.shape[:-2], -1)
    return np.matmul(regressor, flat[..., None])[..., 0]
