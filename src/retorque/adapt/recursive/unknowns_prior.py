"""What the recursive adapter believes before any motion: the ranges of a profile, or an identified card."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.adapt.recursive.unknowns import ARMATURE, joint_unknowns
from retorque.physics.parameters import Parameters
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.work.array import Array

SAMPLES, SEED = 2000, 20260000
"""Worlds that the ranges' moments are taken from."""
DOUBT = 0.1
"""Share of the ranges' standard deviation that is left beside a card's own: a robot wears, warms up and picks things
up after it was identified."""

GENTLE = 0.08
"""Velocity over which friction that remembers its path is taken to turn round [rad/s]: at rest it is a spring, not a
slope over velocity, and a correction as steep as its card's 0.02 rad/s shakes a flexible joint."""


@dataclass(frozen=True)
class UnknownsPrior:
    """Mean and covariance root of each joint's unknowns and of each link's ten numbers."""

    joint_mean: Array
    """(n, F)"""
    joint_root: Array
    """(n, F, F)"""
    inertial_mean: Array
    """(L, 10)"""
    inertial_root: Array
    """(L, 10, 10)"""


def prior_of(robot: Robot, profile: Profile, card: Robot | None = None) -> UnknownsPrior:
    """The prior of a robot's unknowns.

    Args:
        robot: the ideal robot.
        profile: its ranges.
        card: the same robot as it was identified, with its standard deviations; None: the ranges alone.
    """
    drawn = Parameters.sample(robot, profile, SAMPLES, seed=SEED)
    joint_mean, joint_root = _moments(joint_unknowns(drawn))
    inertial_mean, inertial_root = _moments(drawn.total_inertial(robot))
    if card is None:
        return UnknownsPrior(joint_mean, joint_root, inertial_mean, inertial_root)
    known = Parameters.of_robot(card)
    if known.friction.presliding:
        known = replace(known, friction=replace(known.friction, limit=max(known.friction.limit, GENTLE)))
    joint, links = _card_covariances(card, known)
    return UnknownsPrior(
        joint_unknowns(known),
        covariance_root(joint + DOUBT**2 * np.matmul(joint_root, joint_root.mT)),
        known.total_inertial(card),
        covariance_root(links + DOUBT**2 * np.matmul(inertial_root, inertial_root.mT)),
    )


def _card_covariances(card: Robot, known: Parameters) -> tuple[Array, Array]:
    """Covariance of the joints' unknowns (n, F, F) and of the links' numbers (L, 10, 10) as the card has them."""
    mean = joint_unknowns(known)
    joint = np.zeros((*mean.shape, mean.shape[-1]))
    links = np.zeros((len(card.moving_links), 10, 10))
    if card.uncertainty is not None:
        links[:, range(10), range(10)] = card.uncertainty.inertial**2
        joint[:, ARMATURE, ARMATURE] += card.uncertainty.armature**2
    if card.friction is not None and card.friction.deviation is not None and known.friction.count:
        # The unknowns are linear in the coefficients: one column for each of them, moved by one standard deviation.
        moved = known.friction_coefficients + np.eye(known.friction.count)[:, None] * card.friction.deviation
        many = replace(Parameters.of_robot(card, known.friction.count), friction=known.friction)
        columns = joint_unknowns(replace(many, friction_coefficients=moved)) - mean  # (count, n, F)
        joint += np.einsum("cjf,cjg->jfg", columns, columns)
    return joint, links


def _moments(values: Array) -> tuple[Array, Array]:
    """Mean (k, m) and symmetric covariance root (k, m, m) of samples (s, k, m), block by block."""
    mean = values.mean(axis=0)
    centred = values - mean
    covariance = np.einsum("ska,skb->kab", centred, centred) / len(values)
    return mean, covariance_root(covariance)


def covariance_root(covariance: Array) -> Array:
    """A with A Aᵀ = covariance (..., m, m), its columns along the principal axes."""
    size, axes = np.linalg.eigh(covariance)
    return axes * np.sqrt(np.maximum(size, 0.0))[:, None, :]
