"""What is believed before any data: the card's numbers, loosely, so that what a log cannot tell stays physical."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.identify.regression.layout import Layout
from retorque.physics.inertia import pseudo_inertia, robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Prior:
    """A Gaussian over the parameter vector: mean, and the square root of its precision."""

    mean: Array
    """(size,)"""
    root: Array
    """(size, size): the prior costs |root (x - mean)|²."""

    @property
    def deviation(self) -> Array:
        """(size,) standard deviation of each parameter before any data."""
        return np.sqrt(np.sum(np.square(np.linalg.inv(self.root)), axis=1))


def reference_pseudo_inertia(robot: Robot, radius: float = 0.03) -> Array:
    """(links, 4, 4) the card's pseudo-inertias, each blurred by a ball of `radius` [m] so that none is singular.

    Cards often hold rods and points; a density of no thickness would make every other shape infinitely unlikely.
    """
    matrix = pseudo_inertia(robot_inertia(robot))
    mass = np.maximum(matrix[:, 3, 3], 1e-3)
    matrix[:, 3, 3] = mass
    matrix[:, :3, :3] += mass[:, None, None] * radius**2 * np.eye(3)
    values, vectors = np.linalg.eigh(matrix)
    lifted = np.maximum(values, 1e-3 * mass[:, None] * radius**2)
    return np.einsum("lij,lj,lkj->lik", vectors, lifted, vectors)


def card_prior(layout: Layout, relative: float = 1.0, torque: float = 100.0) -> Prior:
    """The prior of a card.

    A link's ten parameters are measured in the pseudo-inertia metric ½ tr(P⁻¹ dP P⁻¹ dP) of the card's own link, which
    treats every unit and every choice of axes alike; `relative` = 1 lets a link's mass be wrong by its own size.

    Args:
        layout: the parameters.
        relative: relative standard deviation of inertial parameters (armatures: of the arm's largest inertia).
        torque: standard deviation of friction coefficients [N·m].
    """
    robot = layout.robot
    reference = reference_pseudo_inertia(robot)
    root = np.zeros((layout.size, layout.size))
    basis = pseudo_inertia(np.eye(10))  # (10, 4, 4)
    for index, matrix in enumerate(reference):
        whitener = np.linalg.inv(np.linalg.cholesky(matrix))
        white = np.einsum("ij,ajk,lk->ail", whitener, basis, whitener).reshape(10, 16)
        block = np.linalg.cholesky(0.5 * white @ white.T).T / relative
        span = slice(10 * index, 10 * index + 10)
        root[span, span] = block
    body = RigidBody(robot)
    # a geared rotor easily outweighs a wrist, so every joint's may be as large as the arm's own inertia
    own = np.max(np.diagonal(body.mass_matrix(np.asarray(robot.home, dtype=float))))
    motor = np.maximum(robot.armature, own) * relative
    split = 10 * layout.links
    root[range(split, split + robot.n), range(split, split + robot.n)] = 1.0 / np.maximum(motor, 1e-6)
    rest = range(split + robot.n, layout.size)
    root[rest, rest] = 1.0 / torque
    return Prior(mean=layout.card.copy(), root=root)
