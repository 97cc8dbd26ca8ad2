"""The linear model behind the recursive adapter: inverse dynamics as features times unknowns, with a prior.

Everything unknown enters the commanded torque linearly once friction is written in a small basis:

    τ = Y(q, q̇, q̈) π + Σ_j (armature q̈ + viscous± q̇ + Σ_k c_k± tanh(2.2 q̇ / width_k) - bias± + dead zone± - scale± τ)

The unknowns are kept in whitened coordinates z: unknowns = mean + root z with z ~ N(0, 1), the prior being the ranges
of the robot's profile or an identified card. Inertial directions that no motion of the robot could feel are left out.
"""

from __future__ import annotations

import numpy as np

from retorque.adapt.recursive.unknowns import (
    ARMATURE,
    BASIS,
    BIAS,
    DEAD_ZONE,
    FRICTION_BACKWARD,
    FRICTION_FORWARD,
    NONNEGATIVE,
    PER_JOINT,
    SCALE,
    VISCOUS,
)
from retorque.adapt.recursive.unknowns_prior import covariance_root, prior_of
from retorque.physics.default_profile import profile_of
from retorque.physics.inertia import robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

SIGN_WIDTH = 0.01
"""Velocity over which the direction-dependent bias switches [rad/s]."""
DELAY = 2.5e-3
"""Standard deviation of the time between reports of torque and of motion [s]."""
TORQUE_WIDTH = 0.05
"""Torque over which the dead zone switches, as a share of the profile's widest dead zone."""


class LinearModel:
    """Features, prior mean and prior root for one robot.

    Args:
        robot: the ideal robot.
        card: the identified robot whose numbers and errors are the prior; default: the ranges of the robot's profile.
        relevance: share of full scale below which an inertial direction is left out.
        gain_doubt: standard deviation of the drives' gains that a filter can be opened to, beyond the prior's own.
        touch: further unknowns behind all others, whose rows are zero unless someone fills them in.
    """

    def __init__(
        self,
        robot: Robot,
        card: Robot | None = None,
        relevance: float = 0.01,
        *,
        gain_doubt: float = 0.0,
        touch: int = 0,
    ):
        self.robot, self.n = robot, robot.n
        self.body = RigidBody(robot)
        self.profile = profile_of(robot)
        self.torque_width = np.maximum(TORQUE_WIDTH * self.profile.dead_zone_max, 1e-6)
        prior = prior_of(robot, self.profile, card)
        self.joint_mean, self.joint_root = prior.joint_mean, prior.joint_root  # (n, F), (n, F, F)
        self.gain_std = np.linalg.norm(self.joint_root[:, SCALE], axis=-1)  # (n, 2) before it is widened
        if gain_doubt > 0.0:
            self.joint_root = _with_doubt(self.joint_root, SCALE, gain_doubt)
        self.links = len(prior.inertial_mean)
        self.inertial_mean = prior.inertial_mean.reshape(-1)  # (10 L,)
        self.inertial_root = self._relevant(_block_diagonal(prior.inertial_root), relevance)  # (10 L, k)
        self.directions = self.inertial_root.shape[1]
        split = self.n * PER_JOINT
        self.inertial_part = slice(split, split + self.directions)
        self.touch_part = slice(split + self.directions + 1, split + self.directions + 1 + touch)
        self.size = self.touch_part.stop
        self.low, self.high = self._bounds(card)  # (n, F) what each joint unknown can be
        if gain_doubt > 0.0:
            self.low[:, SCALE], self.high[:, SCALE] = -2.5 * gain_doubt, 2.5 * gain_doubt
        self.ideal_inertial = robot_inertia(robot).reshape(-1)

    def joint_features(self, velocity: Array, acceleration: Array, torque_sign: Array, torque: Array) -> Array:
        """Each joint's own features at one moment, (..., n, F).

        Args:
            velocity: (..., n) [rad/s].
            acceleration: (..., n) [rad/s²].
            torque_sign: (..., n) smoothed sign of the command, in [-1, 1].
            torque: (..., n) command [N·m].
        """
        out = np.empty((*velocity.shape, PER_JOINT))
        forward = np.maximum(velocity, 0.0)
        backward = velocity - forward
        share = 0.5 * (1.0 + np.tanh(velocity / SIGN_WIDTH))
        out[..., ARMATURE] = acceleration
        out[..., 1] = forward
        out[..., 2] = backward
        out[..., FRICTION_FORWARD] = np.tanh(forward[..., None] * BASIS)
        out[..., FRICTION_BACKWARD] = np.tanh(backward[..., None] * BASIS)
        out[..., 9] = -share
        out[..., 10] = share - 1.0
        out[..., 11] = np.maximum(torque_sign, 0.0)
        out[..., 12] = np.minimum(torque_sign, 0.0)
        pushing = np.maximum(torque, 0.0)
        out[..., 13] = -pushing
        out[..., 14] = pushing - torque
        return out

    def sign(self, torque: Array) -> Array:
        """Smoothed sign of a command, (..., n)."""
        return np.clip(torque / self.torque_width, -1.0, 1.0)

    def rows(self, regressor: Array, features: Array, torque_rate: Array) -> tuple[Array, Array]:
        """Prior torque and measurement rows in whitened coordinates.

        Args:
            regressor: Y, (..., n, 10 L).
            features: (..., n, F).
            torque_rate: how fast the reported torque changes (..., n) [N·m/s]; times the unknown time between the
                reports of torque and of motion, it is the error of a late report.

        Returns:
            The prior mean's torque (..., n) and the rows (..., n, size).
        """
        lead = features.shape[:-2]
        out = np.zeros((*lead, self.n, self.size))
        own = np.einsum("...jf,jfg->...jg", features, self.joint_root)
        for j in range(self.n):
            out[..., j, j * PER_JOINT : (j + 1) * PER_JOINT] = own[..., j, :]
        out[..., self.inertial_part] = regressor @ self.inertial_root
        out[..., self.inertial_part.stop] = -DELAY * torque_rate
        prior = regressor @ self.inertial_mean + np.einsum("...jf,jf->...j", features, self.joint_mean)
        return prior, out

    def unknowns(self, z: Array) -> tuple[Array, Array]:
        """Joint unknowns (..., n, F) and inertial parameters (..., 10 L) of whitened coordinates (..., size)."""
        split = self.n * PER_JOINT
        own = z[..., :split].reshape(*z.shape[:-1], self.n, PER_JOINT)
        joint = self.joint_mean + np.einsum("jfg,...jg->...jf", self.joint_root, own)
        return joint, self.inertial_mean + z[..., self.inertial_part] @ self.inertial_root.T

    def carried(self, z: Array) -> Array:
        """Mass beyond the ideal last link's, of whitened coordinates (..., size), (...) [kg]."""
        last = 10 * (self.links - 1)
        mass: Array = self.unknowns(z)[1][..., last] - self.ideal_inertial[last]
        return mass

    def _bounds(self, card: Robot | None) -> tuple[Array, Array]:
        """Smallest and largest joint unknowns: a little beyond the profile, never beyond what is physical."""
        p, n = self.profile, self.n
        low, high = np.full((n, PER_JOINT), -np.inf), np.full((n, PER_JOINT), np.inf)
        rotor = self.robot.armature  # the ideal robot is always possible, also where its card's rotors weigh nothing
        low[:, ARMATURE] = np.minimum(0.5 * p.armature_min, rotor)
        high[:, ARMATURE] = np.maximum(1.25 * p.armature_max, rotor)
        low[:, VISCOUS], high[:, VISCOUS] = 0.0, 1.25 * p.viscous_max[:, None]
        high[:, BIAS] = 1.5 * p.bias_max[:, None]
        low[:, BIAS] = -high[:, BIAS]
        low[:, DEAD_ZONE], high[:, DEAD_ZONE] = 0.0, 1.25 * p.dead_zone_max[:, None]
        spread = 2.0 * np.abs(np.array(p.torque_scale) - 1.0).max()
        low[:, SCALE], high[:, SCALE] = -spread, spread
        if card is not None:  # what was identified may lie beyond the profile, and may be a little wrong
            wide = 3.0 * np.linalg.norm(self.joint_root, axis=-1)
            possible = np.where(NONNEGATIVE, 0.0, -np.inf)
            low = np.minimum(low, np.maximum(self.joint_mean - wide, possible))
            high = np.maximum(high, self.joint_mean + wide)
        return low, high

    def _relevant(self, root: Array, relevance: float) -> Array:
        """The directions that matter: principal ones of torque over random motions, above `relevance` of full scale."""
        rng = np.random.default_rng(20260001)
        low = np.where(np.isfinite(self.robot.lower), self.robot.lower, -np.pi)
        high = np.where(np.isfinite(self.robot.upper), self.robot.upper, np.pi)
        q = rng.uniform(low, high, (150, self.n))
        qd, qdd = rng.normal(0.0, 1.0, q.shape), rng.normal(0.0, 4.0, q.shape)
        felt = self.body.regressor(q, qd, qdd) @ root  # (150, n, 10 L)
        scale = np.maximum(self.profile.friction_max, 1e-6)[:, None] / 3.0
        _, size, right = np.linalg.svd((felt / scale).reshape(-1, felt.shape[-1]), full_matrices=False)
        keep = size / np.sqrt(len(q)) > relevance
        return root @ right[keep].T


def _with_doubt(root: Array, which: slice, deviation: float) -> Array:
    """Covariance roots (n, F, F) in which some unknowns are independent of all others, with this deviation."""
    covariance = np.matmul(root, root.mT)
    covariance[:, which], covariance[:, :, which] = 0.0, 0.0
    index = np.arange(covariance.shape[-1])[which]
    covariance[:, index, index] = deviation**2
    return covariance_root(covariance)


def _block_diagonal(blocks: Array) -> Array:
    count, size, _ = blocks.shape
    out = np.zeros((count * size, count * size))
    for k in range(count):
        out[k * size : (k + 1) * size, k * size : (k + 1) * size] = blocks[k]
    return out
