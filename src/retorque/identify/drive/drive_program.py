"""Links, drives and sigmoidal friction together: Gauss-Newton steps, each among what can exist."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from retorque.identify.drive.drive_estimate import DriveEstimate
from retorque.identify.drive.drive_layout import DriveLayout
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.sdp import BoundedBody, nearest
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.factors import triangle
from retorque.identify.regression.noise import autocorrelation_time
from retorque.identify.regression.prior import reference_pseudo_inertia
from retorque.identify.regression.regression import UNHEARD, Noise, Posterior, column_deviation, gaussian
from retorque.logs.motion import Motion
from retorque.physics.friction import NO_FRICTION
from retorque.physics.parameters import PAIRS
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

MARGIN = 1e-3
"""Each link's pseudo-inertia stays above this part of the card's own, as in `sdp`."""
SHORTEST_STEP = 1.0 / 32.0
"""Part of a Gauss-Newton step below which the search has ended."""
QUIET = 1e-4
"""Least noise of a joint, as a part of its torque."""


@dataclass(frozen=True, kw_only=True)
class DriveProgram:
    """The most probable links, rotors, drives and friction among those that could exist.

    The torques of the log are commands: what a drive with a dead zone makes of them is part of the model.
    """

    iterations: int = 25
    """Gauss-Newton steps at the most."""
    settled: float = 1e-3
    """Relative change of the cost at which they end."""
    samples: int = 4000
    """Samples that are learnt from, evenly spread over the log."""

    def fit(self, motion: Motion, robot: Robot, start: Estimate | None = None) -> DriveEstimate:
        """Learn from a motion.

        Args:
            motion: whose torques are commands.
            robot: as its maker describes it.
            start: a model with other friction, whose links and rotors are a first guess.
        """
        begun = time.perf_counter()
        layout = DriveLayout(robot)
        motion = motion[:: max(1, len(motion) // self.samples)]
        regressor = RigidBody(robot).regressor(motion.q, motion.qd, motion.qdd)
        vector = layout.prior.mean.copy()
        if start is not None:
            vector[: layout.links.size] = start.parameters[: layout.links.size]
        steps, change = 0, np.inf
        while steps < self.iterations and change >= self.settled:
            residual = layout.residual(motion, vector, regressor)
            noise = _noise(residual, motion)
            data = _stacked(layout, motion, vector, regressor, residual, noise.weight)
            belief = gaussian(data, layout.prior)
            wanted = _possible(belief, layout)
            vector, change = self._step(layout, motion, regressor, noise.weight, vector, wanted)
            steps += 1
        size = layout.links.size
        covariance = belief.covariance
        base = base_parameters(layout.links)
        seen = np.concatenate([base.independent, np.arange(size, layout.selection.size)])
        errors = np.sqrt(np.diagonal(covariance))[size:].reshape(len(PAIRS), robot.n, 2)
        return DriveEstimate(
            robot=robot,
            method="sdp",
            friction=NO_FRICTION,
            parameters=vector[:size],
            covariance=covariance[:size, :size],
            base_deviation=column_deviation(data[:, seen])[: base.rank],
            noise=noise.deviation,
            correlation=noise.correlation,
            samples=len(motion),
            prior_deviation=layout.prior.deviation[:size],
            joints=layout.selection.apply(vector),
            joint_errors=dict(zip(PAIRS, errors, strict=True)),
            details={"steps": steps, "seconds": time.perf_counter() - begun},
        )

    def _step(
        self, layout: DriveLayout, motion: Motion, regressor: Array, weight: Array, vector: Array, wanted: Array
    ) -> tuple[Array, float]:
        """The vector moved towards the wanted one as far as it pays, and the relative fall of the cost."""

        def cost(at: Array) -> float:
            squared = np.sum(np.square(layout.residual(motion, at, regressor)), axis=0)
            return float(weight @ squared + np.sum(np.square(layout.prior.root @ (at - layout.prior.mean))))

        before, part = cost(vector), 1.0
        while part >= SHORTEST_STEP:
            tried = layout.clip(vector + part * (wanted - vector))
            after = cost(tried)
            if after < before:
                return tried, (before - after) / before
            part *= 0.5
        return vector, 0.0


def _noise(residual: Array, motion: Motion) -> Noise:
    size = np.sqrt(np.mean(np.square(motion.torque), axis=0))
    deviation = np.maximum(np.sqrt(np.mean(np.square(residual), axis=0)), np.maximum(QUIET * size, 1e-9))
    span = np.ptp(motion.torque, axis=0)
    dead = span <= 1e-9 * max(float(np.max(span)), 1e-300)
    loud = UNHEARD * max(float(np.max(size)), 1.0)
    return Noise(deviation=np.where(dead, loud, deviation), correlation=autocorrelation_time(residual))


def _stacked(
    layout: DriveLayout, motion: Motion, vector: Array, regressor: Array, residual: Array, weight: Array
) -> Array:
    """Triangle of all joints' linearised equations, each scaled by the square root of its weight, (., size + 1)."""
    blocks = []
    rows = layout.rows(motion, vector, regressor)
    for j, (columns, own) in enumerate(zip(layout.columns, rows, strict=True)):
        wanted = own @ vector[columns] - residual[:, j]
        factor = triangle(np.concatenate([own, wanted[:, None]], axis=1))
        block = np.zeros((len(factor), len(vector) + 1))
        block[:, columns], block[:, -1] = factor[:, :-1], factor[:, -1]
        blocks.append(np.sqrt(weight[j]) * block)
    return triangle(np.concatenate(blocks))


def _possible(belief: Posterior, layout: DriveLayout) -> Array:
    """The likeliest vector whose links can exist and whose bounded numbers are not negative."""
    bodies = [
        BoundedBody(start=10 * index, reference=reference, margin=MARGIN)
        for index, reference in enumerate(reference_pseudo_inertia(layout.robot))
    ]
    return nearest(belief, layout.nonnegative, bodies)[0]
