"""What goes out instead of a torque that answers to nothing real: the joint comes to rest, and the others go on."""

from __future__ import annotations

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

HALT = 15.0
"""Largest deceleration of a joint that nobody sees: where its velocity is mistaken, it is driven by it [rad/s²]."""
HELD = 5.0
"""What the others' motion would do to a joint whose place nobody knows: no more of it is held out against [rad/s²]."""


class Brake:
    """Torques under which the ideal robot's blind joints come to rest.

    Args:
        robot: the ideal robot.
        rate: share of its velocity that a joint loses in a second [1/s].
        inertia: of each joint (n,) [kg·m²].
    """

    def __init__(self, robot: Robot, rate: float, inertia: Array):
        self._body, self._rate, self._inertia = RigidBody(robot), rate, inertia

    def torque(self, now: Array, nominal: Array, blind: Array, held: Array) -> Array:
        """Torques (..., n) under which blind joints come to rest while the others do as they are told [N·m].

        Args:
            now: position and velocity, as they are believed, (2 or more, ..., n).
            nominal: the controller's torque (..., n) [N·m].
            blind: which joints, (..., n).
            held: what holds the robot against gravity, (..., n); the answer where nothing else can be worked out.
        """
        position, velocity = now[:2]
        halt = np.where(blind, np.clip(-self._rate * velocity, -HALT, HALT), 0.0)
        torque = self._body.inverse_dynamics(position, velocity, halt)
        matrix, free = self._body.mass_matrix(position), ~blind
        part = np.where(free[..., :, None] & free[..., None, :], matrix, np.eye(blind.shape[-1]))
        left = np.where(free, nominal - torque, 0.0)
        with np.errstate(all="ignore"):
            torque = torque + np.matmul(matrix, _solved(part, left)[..., None])[..., 0]
        braked = held + np.matmul(matrix, halt[..., None])[..., 0]
        most = HELD * self._inertia
        whole = braked + np.minimum(np.maximum(torque - braked, -most), most)
        return np.where(np.isfinite(whole).all(axis=-1, keepdims=True), whole, held)


def _solved(matrix: Array, right: Array) -> Array:
    """x of M x = b, (..., n); not a number where the batch holds a singular matrix."""
    try:
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0])
    except np.linalg.LinAlgError:
        return np.full(right.shape, np.nan)
