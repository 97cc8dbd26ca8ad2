"""Links, rotors, drives and sigmoidal friction as one vector, and the torque equation that holds between them.

What a command yields is the drive's torque less the losses (TAM, B.1 to B.5), and that is what moves the links:

    Y(q, q̇, q̈) π + armature q̈ + losses(q̇) - drive(τ) = 0

Dead zones, the sigmoids' slopes and their shifts are not linear in it, so that rows are those of its derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import Prior, card_prior
from retorque.logs.motion import Motion
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import NO_FRICTION
from retorque.physics.parameters import PAIRS, Parameters
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array

NARROWEST = 1e-6
"""Standard deviation of what a profile takes for certain, so that it can still be inverted."""
STEP = 1e-5
"""Of the derivatives' central differences, in each parameter's own unit."""
REACH = 3.0
"""Standard deviations of the prior within which the sigmoids' slopes and shifts stay: far outside nothing is left of
their shape for a derivative to see."""


@dataclass(frozen=True)
class DriveLayout:
    """Inertial (10 x links), armature (n), then each of `PAIRS` (n x 2), slopes as logarithms."""

    robot: Robot

    @cached_property
    def links(self) -> Layout:
        """The part that is linear: links and rotors."""
        return Layout(self.robot, NO_FRICTION)

    @cached_property
    def selection(self) -> Selection:
        """What is free; names and units are its own."""
        return Selection(self.robot, ("inertial", "armature", *PAIRS))

    @cached_property
    def prior(self) -> Prior:
        """The card's for links and rotors; for the rest the ranges of its profile, their half widths a deviation."""
        ranges = Selection(self.robot, PAIRS, profile=profile_of(self.robot))
        linear, split = card_prior(self.links), self.links.size
        root = np.zeros((self.selection.size,) * 2)
        root[:split, :split] = linear.root
        rest = range(split, self.selection.size)
        root[rest, rest] = 1.0 / np.maximum(0.5 * (ranges.upper - ranges.lower), NARROWEST)
        return Prior(mean=np.concatenate([linear.mean, 0.5 * (ranges.lower + ranges.upper)]), root=root)

    @cached_property
    def nonnegative(self) -> Array:
        """Indices of what is bounded below by zero on its own."""
        return np.flatnonzero(self.selection.lower >= 0.0)

    @cached_property
    def own(self) -> Array:
        """(n, 2 x pairs) where each joint's drive and friction are in the vector."""
        n, count = self.robot.n, len(PAIRS)
        places = self.links.size + np.arange(2 * n * count).reshape(count, n, 2)
        return places.transpose(1, 0, 2).reshape(n, 2 * count)

    @cached_property
    def columns(self) -> tuple[Array, ...]:
        """For each joint the parameters that its torque can depend on."""
        return tuple(np.concatenate(pair) for pair in zip(self.links.columns, self.own, strict=True))

    def clip(self, vector: Array) -> Array:
        """The vector with slopes and shifts within reach of the prior."""
        shaped = [k for k, name in enumerate(self.selection.names) if name.startswith(("friction_sl", "friction_sh"))]
        mean, wide = self.prior.mean[shaped], REACH * self.prior.deviation[shaped]
        out = vector.copy()
        out[shaped] = np.clip(vector[shaped], mean - wide, mean + wide)
        return out

    def residual(self, motion: Motion, vector: Array, regressor: Array) -> Array:
        """(samples, n) what the equation leaves over, as a command [N·m].

        Divided by the drive's gain: else a model of no gain and no mass would leave nothing over.

        Args:
            motion: whose torques are commands.
            vector: (size,).
            regressor: (samples, n, 10 x links) of the motion.
        """
        from retorque.physics.actuator import drive, losses  # here, so that a log without drives is read at once

        p = self.selection.apply(vector)
        moved = regressor @ p.inertial.ravel() + motion.qdd * p.armature
        return (moved + losses(motion.qd, p) - drive(motion.torque, p)) / gain(motion.torque, p)

    def rows(self, motion: Motion, vector: Array, regressor: Array) -> list[Array]:
        """For each joint the derivatives (samples, len(columns[j])) of its residual."""
        scale = gain(motion.torque, self.selection.apply(vector))[..., None]
        by_own = np.empty((*motion.q.shape, self.own.shape[1]))
        for k in range(self.own.shape[1]):  # the same number of every joint at once: joints do not share any
            above, below = vector.copy(), vector.copy()
            above[self.own[:, k]] += STEP
            below[self.own[:, k]] -= STEP
            by_own[..., k] = self.residual(motion, above, regressor) - self.residual(motion, below, regressor)
        linear = np.concatenate([regressor, np.zeros((*motion.q.shape, self.robot.n))], axis=-1) / scale
        joints, split = np.arange(self.robot.n), 10 * self.links.links
        linear[:, joints, split + joints] = motion.qdd / scale[..., 0]
        by_own /= 2.0 * STEP
        return [
            np.concatenate([linear[:, j, columns], by_own[:, j]], axis=1)
            for j, columns in enumerate(self.links.columns)
        ]


def gain(torque: Array, p: Parameters) -> Array:
    """(samples, n) the drive's gain by the sign of a command."""
    return np.where(torque >= 0.0, p.torque_scale[..., 0], p.torque_scale[..., 1])
