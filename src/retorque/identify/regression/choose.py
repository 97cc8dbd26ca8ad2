"""Choosing a friction model by what it predicts of motion it has not seen, within the training log alone."""

from __future__ import annotations

import itertools
import logging

import numpy as np

from retorque.identify.regression.factors import Factors, merge
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.regression import card_belief, posterior
from retorque.logs.motion import Motion, MotionSource, join
from retorque.physics.friction import PRESETS, Friction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

logger = logging.getLogger(__name__)

CANDIDATES = ("sign", "coulomb-viscous", "saturating", "stribeck", "asymmetric", "presliding", "full")
MOST = 60_000
"""Samples looked at; friction shows itself in less."""


def cross_validated(pieces: list[Motion], robot: Robot, friction: Friction) -> Array:
    """(n,) torque RMSE [N·m] on each piece, learnt from the others, averaged over pieces."""
    layout, body = Layout(robot, friction), RigidBody(robot)
    parts = []
    for piece in pieces:
        factors = Factors(layout)
        for chunk in piece.chunks():
            factors.add(body, chunk)
        parts.append(factors)
    squared = np.zeros(robot.n)
    for held, part in enumerate(parts):
        rest = merge(other for index, other in enumerate(parts) if index != held)
        prior = card_belief(rest)
        torque = np.array([np.sum(np.square(factor[:, -1])) for factor in rest.of_joint]) / rest.count
        deviation = np.sqrt(np.maximum(0.01 * torque, 1e-12))
        for _ in range(2):
            mean = posterior(rest, 1.0 / np.square(deviation), prior).mean
            deviation = np.sqrt(np.maximum(rest.squared_residual(mean) / rest.count, 1e-12))
        squared += part.squared_residual(mean)
    return np.sqrt(squared / sum(len(piece) for piece in pieces))


def choose_friction(data: MotionSource, robot: Robot, folds: int = 5) -> tuple[str, dict[str, list[float]]]:
    """The preset that predicts held-out parts of the log best (geometric mean over joints), and each preset's RMSE."""
    pieces, count = [], 0
    for chunk in data.chunks():
        pieces.append(chunk)
        count += len(chunk)
        if count > MOST:
            break
    edges = np.linspace(0, count, folds + 1).astype(int)
    starts = np.cumsum([0, *(len(piece) for piece in pieces)])
    blocks = []
    for first, last in itertools.pairwise(edges):
        inside = [
            piece[max(first - start, 0) : max(last - start, 0)]
            for piece, start in zip(pieces, starts[:-1], strict=True)
            if start < last and start + len(piece) > first
        ]
        blocks.append(join(inside))
    errors = {name: cross_validated(blocks, robot, PRESETS[name]) for name in CANDIDATES}
    best = min(errors, key=lambda name: float(np.sum(np.log(np.maximum(errors[name], 1e-12)))))
    logger.info("friction model '%s' predicts held-out motion best", best)
    return best, {name: error.tolist() for name, error in errors.items()}
