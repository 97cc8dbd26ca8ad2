"""How well a robot explains a log as it is read: what is left over, and how far the card must be bent for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import qr

from retorque.identify.regression.factors import Factors
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import Prior, card_prior
from retorque.identify.regression.regression import Posterior, posterior
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

INDEPENDENT = 60.0
"""Independent samples that a thinned log is taken to hold: what one nat of a joint's logarithmic error is worth."""
BELIEF = 0.5
"""Relative standard deviation of a card's links for the purpose of doubting a log: a maker's card is better."""
PARTS, FEWEST = 12, 4
"""Into how many pieces a log is cut to see which part of it a robot explains, and how many must be left."""
SHARPEST = 1e-3
"""Smallest part of its torque that a joint may leave unexplained: a channel without noise weighs no more than that."""


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What one reading of a log leaves over."""

    share: Array
    """(n,) standard deviation of the residual over that of the torque."""
    bend: float
    """How far the links are from the card: half the squared distance in standard deviations of the belief [nat]."""
    vector: Array
    """(size,) the parameters."""
    belief: Posterior
    backwards: Array
    """(n,) friction that drives instead of braking, as a part of the torque; 0 where friction is friction."""

    @property
    def score(self) -> float:
        """Smaller is better [nat]."""
        return INDEPENDENT * float(np.sum(np.log(self.share + self.backwards))) + self.bend


class Reading:
    """A thinned log and a robot; other torques on the same motion are cheap to try.

    Args:
        robot: the card.
        friction: the friction model.
        motion: some hundred samples of the log.
        belief: relative standard deviation of the card's links.
    """

    def __init__(self, robot: Robot, friction: Friction, motion: Motion, belief: float = BELIEF):
        self.robot, self.friction, self.motion, self.belief = robot, friction, motion, belief
        self.layout = Layout(robot, friction)
        self.body = RigidBody(robot)

    @cached_property
    def rows(self) -> list[Array]:
        """For each joint its regressor rows (samples, columns)."""
        return self.layout.rows(self.body, self.motion)

    @cached_property
    def _orthogonal(self) -> list[tuple[Array, Array]]:
        return [qr(rows, mode="economic", check_finite=False) for rows in self.rows]

    def factors(self, torque: Array) -> Factors:
        """The compressed equations of this motion with a torque (samples, n)."""
        out = []
        for j, (basis, triangle) in enumerate(self._orthogonal):
            inside = basis.T @ torque[:, j]
            outside = np.sqrt(max(float(torque[:, j] @ torque[:, j] - inside @ inside), 0.0))
            last = np.zeros((1, triangle.shape[1] + 1))
            last[0, -1] = outside
            out.append(np.concatenate([np.concatenate([triangle, inside[:, None]], axis=1), last]))
        return Factors(self.layout, len(torque), out)

    @cached_property
    def spread(self) -> Array:
        """(n,) standard deviation of the log's own torque [N·m]."""
        return spread_of(self.motion.torque)

    def prior(self, spread: Array) -> Prior:
        """The card, as far as it is believed; friction as large as the torques."""
        root = self._card.root.copy()
        friction = range(10 * self.layout.links + self.robot.n, self.layout.size)
        root[friction, friction] = 1.0 / max(10.0 * float(np.max(spread)), 1e-3)
        return replace(self._card, root=root)

    @cached_property
    def _card(self) -> Prior:
        """The card's prior, friction aside."""
        return card_prior(self.layout, relative=self.belief, torque=1.0)

    def fit(self, torque: Array | None = None, rounds: int = 3) -> Fit:
        """Explain the motion's torque, or another (samples, n) [N·m]."""
        measured = self.motion.torque if torque is None else torque
        spread = self.spread if torque is None else spread_of(measured)
        factors, prior = self.factors(measured), self.prior(spread)
        deviation = 0.3 * spread
        belief = None
        for _ in range(rounds):
            belief = posterior(factors, INDEPENDENT / len(measured) / np.square(deviation), prior)
            left = np.sqrt(factors.squared_residual(belief.mean) / len(measured))
            deviation = np.maximum(left, SHARPEST * spread)
        assert belief is not None
        return Fit(
            share=deviation / spread,
            bend=self._bend(belief.mean, prior),
            vector=belief.mean,
            belief=belief,
            backwards=self._backwards(belief.mean, spread),
        )

    def _bend(self, vector: Array, prior: Prior) -> float:
        links = 10 * self.layout.links
        return 0.5 * float(np.sum(np.square((prior.root @ (vector - prior.mean))[:links])))

    def _backwards(self, vector: Array, spread: Array) -> Array:
        coefficients = self.layout.unpack(vector)[2]
        if not self.friction.count:
            return np.zeros(self.robot.n)
        features = self.friction.features(self.motion.qd, self.motion.slip)
        braking = np.where(self.friction.nonnegative, coefficients, 0.0)
        power = np.mean(np.sum(features * braking, axis=-1) * np.sign(self.motion.qd), axis=0)
        return np.maximum(-power, 0.0) / spread

    def held_back(self, folds: int = 4, blocks: int = 24) -> Array:
        """(n,) share of each joint's torque that is left unexplained on samples that were not learnt from."""
        count = len(self.motion)
        fold = (np.arange(count) * blocks // count) % folds
        squared = np.zeros(self.robot.n)
        for held in range(folds):
            away, here = np.flatnonzero(fold != held), np.flatnonzero(fold == held)
            if not len(here):
                continue
            part = self.other(self.motion[away])
            part.__dict__["rows"] = [rows[away] for rows in self.rows]
            vector = part.fit(rounds=2).vector
            for j, (columns, rows) in enumerate(zip(self.layout.columns, self.rows, strict=True)):
                error = self.motion.torque[here, j] - rows[here] @ vector[columns]
                squared[j] += float(error @ error)
        return np.sqrt(squared / count) / self.spread

    def other(self, motion: Motion | None = None, robot: Robot | None = None) -> Reading:
        """Another motion, or another card."""
        found = Reading(robot or self.robot, self.friction, self.motion if motion is None else motion, self.belief)
        if robot is None:
            found.__dict__["_card"] = self._card
        return found

    def believing(self, belief: float) -> Reading:
        """The same with the card believed otherwise."""
        found = Reading(self.robot, self.friction, self.motion, belief)
        found.__dict__["rows"] = self.rows
        return found


def longest_part(reading: Reading, most: float, moving: Array) -> tuple[float, float] | None:
    """First and last moment [s] of the longest beginning or end of a log that the robot explains by itself.

    Args:
        reading: the log.
        most: share of a joint's torque that may stay unexplained on data held back.
        moving: (n,) which joints count.
    """
    motion, twelfth = reading.motion, len(reading.motion) // PARTS
    for count in range(PARTS - 1, FEWEST - 1, -1):
        for part in (slice(0, count * twelfth), slice(len(motion) - count * twelfth, None)):
            if np.all(reading.other(motion[part]).held_back()[moving] < most):
                return float(motion.time[part][0]), float(motion.time[part][-1])
    return None


def spread_of(torque: Array) -> Array:
    spread = torque.std(axis=0)
    return np.maximum(spread, 1e-3 * max(float(np.max(spread)), 1e-9))


def permuted(motion: Motion, order: Array, what: str) -> Motion:
    """The motion with its joints' columns in another order: "torque", "position" or "all"."""
    if what == "torque":
        return replace(motion, torque=motion.torque[:, order])
    wound = None if motion.slip is None else motion.slip[:, order]
    torque = motion.torque[:, order] if what == "all" else motion.torque
    q, qd, qdd = (signal[:, order] for signal in (motion.q, motion.qd, motion.qdd))
    return replace(motion, q=q, qd=qd, qdd=qdd, slip=wound, torque=torque)


def turned(motion: Motion, joint: int, angle: float) -> Motion:
    """The motion with `angle` [rad] added to a joint's positions."""
    q = motion.q.copy()
    q[:, joint] += angle
    return replace(motion, q=q)


def mirrored(motion: Motion, joint: int) -> Motion:
    """The motion with a joint's position counted the other way."""
    sign = np.ones(motion.n)
    sign[joint] = -1.0
    wound = None if motion.slip is None else motion.slip * sign[:, None]
    return replace(motion, q=motion.q * sign, qd=motion.qd * sign, qdd=motion.qdd * sign, slip=wound)
