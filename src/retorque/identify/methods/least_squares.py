"""Least squares and weighted least squares on base parameters: the classical estimate, blind to what can exist."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from retorque.identify.methods.estimate import Estimate
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.regression import base_deviation, card_belief, compress, learn_noise, posterior
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction
from retorque.robots.robot import Robot


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """Solve for the base parameters; what they leave open stays as on the card. Links may come out impossible."""

    weighted: bool
    """Weigh each joint's equations by its residual, else treat all torques alike."""

    def fit(self, data: MotionSource, robot: Robot, friction: Friction) -> Estimate:
        """Learn the base parameters from a motion."""
        begun = time.perf_counter()
        layout = Layout(robot, friction)
        factors = compress(data, layout)
        prior = card_belief(factors)
        noise = learn_noise(factors, data, prior)
        base = base_parameters(layout)
        weight = noise.weight if self.weighted else np.ones(robot.n)
        stacked = factors.stacked(weight)
        columns = stacked[:, base.independent]
        scale = np.linalg.norm(columns, axis=0)
        scale = np.where(scale > 0.0, scale, 1.0)
        solution, _, rank, values = np.linalg.lstsq(columns / scale, stacked[:, -1], rcond=1e-10)
        return Estimate(
            robot=robot,
            method="wls" if self.weighted else "ols",
            friction=friction,
            parameters=base.lift(solution / scale, layout.card),
            covariance=posterior(factors, noise.weight, prior).covariance,
            base_deviation=base_deviation(factors, noise.weight, base),
            noise=noise.deviation,
            correlation=noise.correlation,
            samples=factors.count,
            prior_deviation=prior.deviation,
            details={
                "condition": float(values[0] / max(values[-1], 1e-300)),
                "rank": int(rank),
                "seconds": time.perf_counter() - begun,
            },
        )


@dataclass(frozen=True, kw_only=True)
class WeightedLeastSquares(LeastSquares):
    """Each joint's torques count by how well they can be predicted."""

    weighted: bool = True


@dataclass(frozen=True, kw_only=True)
class OrdinaryLeastSquares(LeastSquares):
    """All joints' torques count alike."""

    weighted: bool = False
