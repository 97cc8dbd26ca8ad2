"""Table I as the paper has it: links alone, fitted to normalised torques without a prior, by Adam or as a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from retorque.identify.methods.sdp import BoundedBody, nearest
from retorque.identify.methods.virtual import FLOOR, barycentric, newton_euler
from retorque.identify.regression.factors import triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import Prior, card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import gaussian
from retorque.logs.motion import Motion
from retorque.physics.friction import NO_FRICTION, Friction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

CHARTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {"diffbary": barycentric, "diffnea": newton_euler}
"""Virtual parameters (links, 10) to the ten of each link."""
LOOSE = 1e3
"""Relative standard deviation of the card for the program, which the paper gives no prior: it only makes the solution
one where no motion tells."""


@dataclass(frozen=True, kw_only=True)
class AdamRegression:
    """DiffBary or DiffNEA by stochastic gradient descent from random virtual parameters (section IV-D)."""

    chart: Literal["diffbary", "diffnea"]
    """Which virtual parameters."""
    rate: float = 0.004
    """Adam's learning rate."""
    batch: int = 1000
    """Samples a step."""
    patience: int = 10
    """Epochs without a better loss before stopping."""
    epochs: int = 5000
    """At the most; the paper names no limit."""
    spread: float = 1e-3
    """Standard deviation of the random start (appendix A)."""
    seed: int = 0
    """Of the start and of the order of the samples."""

    def fit(self, motion: Motion, robot: Robot, span: Array) -> Array:
        """(links, 10) the links of the lowest training loss; rotors and friction are left out, as in the paper.

        Args:
            motion: what is learnt from.
            robot: the tree.
            span: (n,) what torques are divided by [N·m].
        """
        to_links = CHARTS[self.chart]
        generator = torch.Generator().manual_seed(self.seed)
        regressor = RigidBody(robot).regressor(motion.q, motion.qd, motion.qdd) / span[:, None]
        rows = torch.from_numpy(regressor.astype(np.float32))
        torque = torch.from_numpy((motion.torque / span).astype(np.float32))
        links = len(robot.moving_links)
        virtual = (self.spread * torch.randn(links, 10, generator=generator)).requires_grad_()
        optimiser = torch.optim.Adam([virtual], lr=self.rate)
        best, lowest, waited = virtual.detach().clone(), np.inf, 0
        for _ in range(self.epochs):
            total = 0.0
            for some in torch.randperm(len(rows), generator=generator).split(self.batch):
                loss = torch.mean(torch.square(rows[some] @ to_links(virtual).reshape(-1) - torque[some]))
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                total += float(loss.detach()) * len(some)
            waited += 1
            if total < lowest:
                best, lowest, waited = virtual.detach().clone(), total, 0
            if waited >= self.patience:
                break
        with torch.no_grad():
            return to_links(best.double()).numpy()


def plain_program(motion: Motion, robot: Robot, span: Array, friction: Friction = NO_FRICTION) -> tuple[Array, Array]:
    """The paper's semidefinite program: least normalised squares over links that can exist (10), without rotors.

    Args:
        motion: what is learnt from.
        robot: the tree.
        span: (n,) what torques are divided by [N·m].
        friction: the terms beside the links, none negative.

    Returns:
        Links (links, 10) and friction coefficients (n, count).
    """
    layout = Layout(robot, friction)
    split = 10 * layout.links
    kept = np.flatnonzero([not name.startswith("armature") for name in layout.names])
    rows = layout.matrix(RigidBody(robot), motion)[..., kept] / span[:, None]
    tall = np.concatenate([rows.reshape(-1, len(kept)), (motion.torque / span).reshape(-1, 1)], axis=1)
    card = card_prior(layout, relative=LOOSE, torque=LOOSE)
    belief = gaussian(triangle(tall), Prior(mean=card.mean[kept], root=card.root[np.ix_(kept, kept)]))
    bodies = [
        BoundedBody(start=10 * index, reference=reference, margin=FLOOR)
        for index, reference in enumerate(reference_pseudo_inertia(robot))
    ]
    found, _ = nearest(belief, np.arange(split, len(kept)), bodies)
    return found[:split].reshape(-1, 10), found[split:].reshape(robot.n, friction.count)
