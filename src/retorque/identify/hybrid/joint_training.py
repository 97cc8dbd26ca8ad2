"""Rigid bodies learnt alone and together with a residual LSTM on one small set: section IV-E, the paper's Fig. 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from retorque.identify.hybrid.hybrid import LSTMResidual, Shape
from retorque.identify.hybrid.recordings import Split
from retorque.identify.hybrid.train_hybrid import scaling_of, sequences
from retorque.identify.methods.adam_regression import CHARTS, AdamRegression
from retorque.identify.methods.delan import DeLaN, DeLaNSettings
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

Tensor = torch.Tensor
Body = Literal["diffbary", "diffnea", "delan"]
BODIES: tuple[Body, ...] = ("diffbary", "diffnea", "delan")


@dataclass(frozen=True, kw_only=True)
class JointTraining:
    """How a rigid body is learnt, alone or with the network."""

    body: Body
    """The rigid body's kind."""
    residual: bool
    """Whether a residual LSTM learns beside it."""
    epochs: int = 40
    """Passes over the training data."""
    batch: int = 1000
    """Sequences a step."""
    thin: int = 1
    """One sequence in so many is learnt from."""
    steps: int = 100
    """Ticks of a sequence; memories start empty at its beginning."""
    seed: int = 0
    """Of the first parameters and the order of the sequences."""

    @property
    def rate(self) -> float:
        """Adam's learning rate (section IV-E)."""
        return DeLaNSettings.rate if self.body == "delan" else AdamRegression.rate


@dataclass(frozen=True)
class JointCurve:
    """Normalised mean squared error on validation motion, (epochs,) each."""

    body: Array
    """Of the rigid body alone."""
    whole: Array
    """Of rigid body and network together; the same where there is no network."""


class Links(torch.nn.Module):
    """DiffBary's or DiffNEA's virtual parameters, from their random start.

    Args:
        robot: the tree.
        chart: which.
        seed: of the start.
    """

    def __init__(self, robot: Robot, chart: str, seed: int):
        super().__init__()
        self._to_links, self._body = CHARTS[chart], RigidBody(robot)
        start = torch.randn(len(robot.moving_links), 10, generator=torch.Generator().manual_seed(seed))
        self.virtual = torch.nn.Parameter(AdamRegression.spread * start)

    def rows(self, motion: Array) -> Tensor:
        """(samples, n, 10 links) the regressor of (samples, 3n)."""
        found = self._body.regressor(*np.split(motion.astype(float), 3, axis=-1))
        return torch.from_numpy(found.astype(np.float32))

    def forward(self, rows: Tensor) -> Tensor:
        """Torque (samples, n) [N·m]."""
        return rows @ self._to_links(self.virtual).reshape(-1)


class Lagrangian(torch.nn.Module):
    """A DeLaN that reads positions, velocities and accelerations in one array.

    Args:
        n: joints.
        seen: (samples, 3n) what it is trained on.
        torque_range: (n,) unit of the torques [N·m].
        seed: of the first weights.
    """

    def __init__(self, n: int, seen: Array, torque_range: Array, seed: int):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = DeLaN(n, seen[:, :n].mean(axis=0), seen[:, :n].std(axis=0) + 1e-9, torque_range)
        self._n = n

    def rows(self, motion: Array) -> Tensor:
        """(samples, 3n) as they are."""
        return torch.from_numpy(motion.astype(np.float32))

    def forward(self, rows: Tensor) -> Tensor:
        """Torque (samples, n) [N·m]."""
        return self.network(*rows.split(self._n, dim=-1))


def learn_together(robot: Robot, split: Split, settings: JointTraining) -> JointCurve:
    """Train on the pair of Table I and watch the validation motion, both in sequences; friction is left out.

    Args:
        robot: the tree.
        split: the recordings.
        settings: what is learnt and how.
    """
    n = robot.n
    scaling = scaling_of(split, None)
    span = torch.tensor(scaling.torque_range, dtype=torch.float32)
    inputs, torque = (x[:: settings.thin] for x in sequences(split.pair(), settings.steps))
    held, held_torque = sequences(split.validation, settings.steps)
    flat = inputs.reshape(-1, 3 * n).numpy()
    body = (
        Lagrangian(n, flat, scaling.torque_range, settings.seed)
        if settings.body == "delan"
        else Links(robot, settings.body, settings.seed)
    )
    rows, held_rows = (
        body.rows(x.reshape(-1, 3 * n).numpy()).reshape(*x.shape[:2], *([n, -1] if isinstance(body, Links) else [-1]))
        for x in (inputs, held)
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        network = LSTMResidual(3 * n, n, Shape.published()) if settings.residual else None
    mean, deviation = inputs.mean((0, 1)), inputs.std((0, 1)) + 1e-9

    def said(x: Tensor) -> Tensor | float:
        return 0.0 if network is None else span * network((x - mean) / deviation)

    def rigid(x: Tensor) -> Tensor:
        return body(x.flatten(0, 1)).reshape(*x.shape[:2], n)

    parameters = [*body.parameters(), *([] if network is None else network.parameters())]
    optimiser = torch.optim.Adam(parameters, lr=settings.rate)
    generator = torch.Generator().manual_seed(settings.seed)
    alone, whole = [], []
    for _ in range(settings.epochs):
        for some in torch.randperm(len(inputs), generator=generator).split(settings.batch):
            error = (rigid(rows[some]) + said(inputs[some]) - torque[some]) / span
            loss = torch.mean(torch.square(error))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            left = (rigid(held_rows) - held_torque) / span
            alone.append(float(torch.mean(torch.square(left))))
            whole.append(float(torch.mean(torch.square(left + said(held) / span))))
    return JointCurve(np.array(alone), np.array(whole))
