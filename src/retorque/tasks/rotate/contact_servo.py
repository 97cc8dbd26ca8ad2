"""Sticking contacts on a rigid object as a hybrid force-velocity problem: motion, force and stiffness of each site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.comply.hybrid_servoing import hybrid_servo, motion_stiffness
from retorque.work.array import Array

TURN_STIFFNESS = 1.0
"""Of the sites' orientations, which no contact asks for [N·m/rad]."""


@dataclass(frozen=True)
class ContactAction:
    """What the sites should do now, each (sites, ...)."""

    velocity: Array
    """(sites, 3) [m/s]"""
    force: Array
    """(sites, 3) to press with [N]."""
    stiffness: Array
    """(sites, 6, 6) [N/m, N·m/rad]"""


def contact_frame(normal: Array) -> Array:
    """(3, 3) rows: a unit normal and two directions across it."""
    n = normal / np.linalg.norm(normal)
    across = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
    across /= np.linalg.norm(across)
    return np.stack([n, across, np.cross(n, across)])


def velocity_at(point: Array) -> Array:
    """(3, 6) the velocity of a body's point (3,) from its centre, from the body's twist in world axes."""
    x, y, z = point
    return np.array([[1.0, 0.0, 0.0, 0.0, z, -y], [0.0, 1.0, 0.0, -z, 0.0, x], [0.0, 0.0, 1.0, y, -x, 0.0]])


def servo_contacts(
    points: Array,
    normals: Array,
    grip: Array,
    goal: Array,
    target: Array,
    load: Array,
    gains: tuple[float, float],
    ground: Array | None = None,
) -> ContactAction:
    """Solve for the sites' motion and forces, all contacts sticking.

    Args:
        points: (sites, 3) contact points from the object's centre [m].
        normals: (sites, 3) unit, into the object.
        grip: (sites,) normal forces to press with [N].
        goal: (goals, 6) rows of the object's twist that matter.
        target: (goals,) their values.
        load: (6,) other wrench on the object, gravity for one [N, N·m].
        gains: low and high stiffness of equation 13 [N/m].
        ground: (3,) a point from the centre that does not slip on what stands still; default: the object is in the air.
    """
    sites = len(points)
    total = 6 + 3 * sites
    rows = 3 * sites + (0 if ground is None else 3)
    jacobian, wanted = np.zeros((rows, total)), np.zeros((len(goal), total))
    for k in range(sites):
        frame, at = contact_frame(normals[k]), slice(3 * k, 3 * k + 3)
        jacobian[at, :6] = frame @ velocity_at(points[k])
        jacobian[at, 6 + 3 * k : 9 + 3 * k] = -frame
    if ground is not None:
        jacobian[3 * sites :, :6] = velocity_at(ground)
    wanted[:, :6] = goal
    external = np.concatenate([load, np.zeros(3 * sites)])
    action = hybrid_servo(jacobian, wanted, target, 6, 3 * np.arange(sites), grip, external)
    velocity, force = action.velocity.reshape(sites, 3), action.force.reshape(sites, 3)
    stiffness = np.zeros((sites, 6, 6))
    stiffness[:, :3, :3] = motion_stiffness(velocity, *gains)
    stiffness[:, 3:, 3:] = TURN_STIFFNESS * np.eye(3)
    return ContactAction(velocity, force, stiffness)
