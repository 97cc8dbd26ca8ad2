"""Inertial parameters of links as vectors of ten, as mass/centre/inertia, and as pseudo-inertia matrices.

The ten are Pinocchio's: m, m·c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz, with the inertia about the link's origin. The torque
of a tree is linear in them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array

_ROWS = np.array([0, 0, 1, 0, 1, 2])  # of Ixx, Ixy, Iyy, Ixz, Iyz, Izz
_COLUMNS = np.array([0, 1, 1, 2, 2, 2])


def _matrix(six: Array) -> Array:
    out = np.empty((*six.shape[:-1], 3, 3))
    out[..., _ROWS, _COLUMNS] = six
    out[..., _COLUMNS, _ROWS] = six
    return out


def parallel_axis(mass: Array, centre: Array) -> Array:
    """Inertia about the origin of a point mass at `centre`: m (c·c 1 - c cᵀ), (..., 3, 3) [kg·m²]."""
    square = np.sum(centre * centre, axis=-1)[..., None, None] * np.eye(3)
    return np.asarray(mass)[..., None, None] * (square - centre[..., :, None] * centre[..., None, :])


def to_vector(mass: Array, centre: Array, inertia: Array) -> Array:
    """The ten parameters (..., 10) of bodies with `inertia` (..., 3, 3) about their centre of mass."""
    mass = np.asarray(mass, dtype=float)
    about_origin = inertia + parallel_axis(mass, centre)
    return np.concatenate([mass[..., None], mass[..., None] * centre, about_origin[..., _ROWS, _COLUMNS]], axis=-1)


def from_vector(vector: Array) -> tuple[Array, Array, Array]:
    """Mass (...), centre (..., 3) and inertia about the centre (..., 3, 3) of ten parameters (..., 10)."""
    mass = vector[..., 0]
    safe = np.where(np.abs(mass) > 1e-12, mass, 1.0)
    centre = np.where(np.abs(mass)[..., None] > 1e-12, vector[..., 1:4] / safe[..., None], 0.0)
    return mass, centre, _matrix(vector[..., 4:]) - parallel_axis(mass, centre)


def pseudo_inertia(vector: Array) -> Array:
    """The 4 x 4 matrix [[½tr(I)1 - I, mc], [mcᵀ, m]]: positive definite exactly when a density could make the body."""
    inertia = _matrix(vector[..., 4:])
    out = np.empty((*vector.shape[:-1], 4, 4))
    out[..., :3, :3] = 0.5 * np.trace(inertia, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - inertia
    out[..., :3, 3] = vector[..., 1:4]
    out[..., 3, :3] = vector[..., 1:4]
    out[..., 3, 3] = vector[..., 0]
    return out


def from_pseudo_inertia(matrix: Array) -> Array:
    """The ten parameters (..., 10) of a pseudo-inertia (..., 4, 4)."""
    sigma = matrix[..., :3, :3]
    inertia = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return np.concatenate(
        [matrix[..., 3, 3][..., None], matrix[..., :3, 3], inertia[..., _ROWS, _COLUMNS]],
        axis=-1,
    )


def moved(vector: Array, rotation: Array, origin: Array) -> Array:
    """The ten parameters (..., 10) of the same body seen from another frame.

    Args:
        vector: (..., 10) in the body's frame.
        rotation: (3, 3) of the body's frame in the other.
        origin: (3,) of the body's frame in the other [m].
    """
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = rotation, origin
    return from_pseudo_inertia(pose @ pseudo_inertia(vector) @ pose.T)


def nearest_feasible(vector: Array, floor: float = 1e-6) -> Array:
    """The parameters with every pseudo-inertia eigenvalue lifted to at least `floor`; feasible ones unchanged."""
    values, vectors = np.linalg.eigh(pseudo_inertia(vector))
    bad = values[..., 0] < floor
    if not np.any(bad):
        return vector
    lifted = np.einsum("...ij,...j,...kj->...ik", vectors, np.maximum(values, floor), vectors)
    return np.where(bad[..., None], from_pseudo_inertia(lifted), vector)


def robot_inertia(robot: Robot) -> Array:
    """The ten parameters of every moving link of the ideal robot, (links, 10)."""
    links = robot.moving_links
    return to_vector(
        np.array([link.mass for link in links]),
        np.array([link.centre for link in links]),
        np.array([link.inertia_matrix for link in links]),
    )


def with_inertias(robot: Robot, inertial: Array, armature: Array) -> Robot:
    """The robot with other ten parameters (links, 10) and rotor inertias (n,)."""
    mass, centre, inertia = from_vector(inertial)
    rotors = iter(armature.tolist())
    links, index = [], 0
    for link in robot.links:
        if link.joint is None:
            links.append(link)
            continue
        joint = link.joint if link.joint.kind == "free" else replace(link.joint, armature=next(rotors))
        x, y, z = centre[index].tolist()
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia[index].tolist()
        about = (xx, yy, zz, xy, xz, yz) if mass[index] != 0.0 else link.inertia
        links.append(replace(link, joint=joint, mass=float(mass[index]), centre=(x, y, z), inertia=about))
        index += 1
    return robot.with_links(tuple(links))


def principal_axes(vector: Array) -> tuple[Array, Array, Array, Array]:
    """Mass (...), centre (..., 3), principal inertias (..., 3) and quaternions (..., 4) of their axes, (w, x, y, z)."""
    from scipy.spatial.transform import Rotation  # here: it takes a third of a second to load

    mass, centre, inertia = from_vector(vector)
    principal, axes = np.linalg.eigh(inertia)
    axes[..., :, 0] *= np.linalg.det(axes)[..., None]
    flat = Rotation.from_matrix(axes.reshape(-1, 3, 3)).as_quat(scalar_first=True)
    return mass, centre, principal, flat.reshape(*axes.shape[:-2], 4)
