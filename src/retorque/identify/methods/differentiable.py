"""DiffBary and DiffNEA: physically consistent estimates by plain nonlinear regression on unbounded parameters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import block_diag
from scipy.optimize import least_squares

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.virtual import barycentric, barycentric_virtual, newton_euler, newton_euler_virtual
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import reference_pseudo_inertia
from retorque.identify.regression.regression import (
    Posterior,
    base_deviation,
    card_belief,
    compress,
    learn_noise,
    posterior,
)
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction
from retorque.physics.inertia import from_pseudo_inertia
from retorque.robots.robot import Robot
from retorque.work.array import Array

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Differentiable:
    """Gradient-based regression on virtual parameters, on the log's triangular factor.

    Torque is linear in what the virtual parameters stand for, so the factor holds all that the log says, and every
    step of a trust-region Gauss-Newton sees the whole log. The objective is the semidefinite program's.
    """

    name: ClassVar[str] = ""
    seed: int | None = None
    """Start at random virtual parameters with this seed; None starts at the card."""
    spread: float = 0.1
    """Standard deviation of a random start."""
    steps: int = 1000
    """Most evaluations of the regression."""

    def fit(self, data: MotionSource, robot: Robot, friction: Friction) -> Estimate:
        """Learn physically consistent parameters from a motion."""
        begun = time.perf_counter()
        layout = Layout(robot, friction)
        factors = compress(data, layout)
        prior = card_belief(factors)
        noise = learn_noise(factors, data, prior)
        belief = posterior(factors, noise.weight, prior)
        parameters, evaluations, settled = self.solve(belief, layout)
        return Estimate(
            robot=robot,
            method=self.name,
            friction=friction,
            parameters=parameters,
            covariance=belief.covariance,
            base_deviation=base_deviation(factors, noise.weight, base_parameters(layout)),
            noise=noise.deviation,
            correlation=noise.correlation,
            samples=factors.count,
            prior_deviation=prior.deviation,
            details={"evaluations": evaluations, "converged": settled, "seconds": time.perf_counter() - begun},
        )

    def solve(self, belief: Posterior, layout: Layout) -> tuple[Array, int, bool]:
        """The most probable parameters (size,) that the virtual ones can express, evaluations, and whether it ended."""
        to_parameters = self.parameters_of(layout)

        def residual(virtual: Array) -> Array:
            return belief.root @ (to_parameters(torch.from_numpy(virtual)).numpy() - belief.mean)

        def slope(virtual: Array) -> Array:
            return belief.root @ self.jacobian(layout, virtual)

        found = least_squares(
            residual,
            self.start(layout),
            slope,
            method="trf",
            x_scale="jac",
            max_nfev=self.steps,
            ftol=1e-8,
            xtol=1e-12,
        )
        return to_parameters(torch.from_numpy(found.x)).numpy(), int(found.nfev), bool(found.status > 0)

    def parameters_of(self, layout: Layout) -> Callable[[Tensor], Tensor]:
        """The map from all virtual parameters (size,) to the layout's: what cannot be negative is a square."""
        split = 10 * layout.links
        bounded = torch.from_numpy(layout.nonnegative[split:])

        def parameters(virtual: Tensor) -> Tensor:
            links = self.inertial(virtual[:split].reshape(-1, 10)).reshape(-1)
            rest = virtual[split:]
            return torch.cat([links, torch.where(bounded, torch.square(rest), rest)])

        return parameters

    def jacobian(self, layout: Layout, virtual: Array) -> Array:
        """(size, size) derivative of that map: a block for each link, a diagonal for the rest."""
        split = 10 * layout.links
        links = torch.from_numpy(virtual[:split].reshape(-1, 10)).requires_grad_()
        ten = self.inertial(links)
        # Links do not mix, so one backward pass gives a row of every link's block.
        rows = [torch.autograd.grad(ten[:, k].sum(), links, retain_graph=True)[0].numpy() for k in range(10)]
        blocks = np.stack(rows, axis=1)  # (links, 10, 10)
        rest = np.where(layout.nonnegative[split:], 2.0 * virtual[split:], 1.0)
        return block_diag(*blocks, np.diag(rest))

    def start(self, layout: Layout) -> Array:
        """The first virtual parameters (size,)."""
        if self.seed is not None:
            return self.spread * np.random.default_rng([self.seed, 12]).standard_normal(layout.size)
        links = self.virtual(from_pseudo_inertia(reference_pseudo_inertia(layout.robot)))
        armature = np.sqrt(np.maximum(layout.robot.armature, 1e-2))
        friction = np.full(layout.robot.n * layout.friction.count, 0.3)
        return np.concatenate([links.ravel(), armature, friction])

    @staticmethod
    def inertial(virtual: Tensor) -> Tensor:
        """The ten parameters of virtual ones, (links, 10)."""
        raise NotImplementedError

    @staticmethod
    def virtual(inertial: Array) -> Array:
        """Virtual parameters of links, (links, 10)."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class DiffBary(Differentiable):
    """Virtual parameters are the Cholesky factor of the pseudo-inertia (equations 12 and 18 to 21)."""

    name: ClassVar[str] = "diffbary"
    inertial = staticmethod(barycentric)
    virtual = staticmethod(barycentric_virtual)


@dataclass(frozen=True, kw_only=True)
class DiffNEA(Differentiable):
    """Virtual parameters are mass, centre and the Cholesky factor of the density's covariance."""

    name: ClassVar[str] = "diffnea"
    inertial = staticmethod(newton_euler)
    virtual = staticmethod(newton_euler_virtual)
