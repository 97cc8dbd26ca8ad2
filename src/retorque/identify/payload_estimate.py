"""What an arm carries, from one log without it and one with it: mass, centre and inertia with honest errors.

Both logs share the arm's own parameters; each has its own friction, since a gearbox warms up between recordings. The
drive gains (torque per current) are known only to some percent, and whatever they are wrong by, the payload is too: so
they are unknowns of the same estimate. Their errors are mostly common to the joints (a maker's constant, warm motors):
their prior has a common factor beside the single ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from retorque.identify.methods.sdp import BoundedBody, nearest
from retorque.identify.regression.factors import Factors, triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import Prior, card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import Noise, Posterior, card_belief, compress, learn_noise, posterior
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction, preset
from retorque.physics.inertia import from_vector, pseudo_inertia, to_vector
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

COMMON, SINGLE = 0.08, 0.04
"""Relative standard deviation of published drive gains: of a factor common to the joints, and of each by itself."""
SENSOR = 0.01
"""Either of them for joint torque sensors."""
UNKNOWN = 1.0
"""The same of gains that are asked for."""
CARD = (0.13, 1.0)
"""Least and largest relative standard deviation of the card's links: what the arm itself weighs says something about
the gains, as far as the empty log bears the card out."""


@dataclass(frozen=True, kw_only=True)
class PayloadEstimate:
    """What hangs from the payload mount."""

    mass: float
    """[kg]"""
    mass_std: float
    centre: Array
    """(3,) centre of mass in the payload mount's frame [m]."""
    centre_std: Array
    inertia: Array
    """(3, 3) about the payload's centre, in the payload mount's axes [kg·m²]."""
    inertia_std: Array
    """(3, 3)"""
    gain_scale: Array
    """(n,) true over given drive gain of each joint, or true over given torque."""
    gain_scale_std: Array
    gain_covariance: Array
    """(n, n) of `gain_scale`: its errors are common to the joints more than their own."""
    gain_surprise: Array
    """(n,) how far each gain is from what was believed [standard deviations of that belief]."""
    gain_share: float
    """Part of the mass's variance that is owed to the gains."""
    free_mass: float
    """The mass, were it allowed to be negative [kg]: far below zero where the logs are swapped."""
    free_mass_std: float
    margin: float
    """Smallest eigenvalue of the payload's pseudo-inertia."""


@dataclass(frozen=True, kw_only=True)
class _Index:
    """Where each group of unknowns lies in the joint vector."""

    layout: Layout

    @property
    def arm(self) -> int:
        """Inertial parameters and armatures, shared by both logs."""
        return 10 * self.layout.links + self.layout.robot.n

    @property
    def friction(self) -> int:
        return self.layout.robot.n * self.layout.friction.count

    @property
    def payload(self) -> int:
        return self.arm + 2 * self.friction

    @property
    def gain(self) -> int:
        return self.payload + 10

    @property
    def size(self) -> int:
        return self.gain + self.layout.robot.n

    def of_log(self, log: int) -> Array:
        """For each parameter of the layout its place in the joint vector, for log 0 (empty) or 1 (loaded)."""
        own = self.arm + log * self.friction + np.arange(self.friction)
        return np.concatenate([np.arange(self.arm), own])


def estimate_payload(
    empty: MotionSource,
    loaded: MotionSource,
    robot: Robot,
    friction: Friction | None = None,
    gain_uncertainty: float = SINGLE,
    known_mass: float | None = None,
    common_uncertainty: float = COMMON,
    gain_covariance: Array | None = None,
) -> PayloadEstimate:
    """The payload from two logs.

    Args:
        empty: motion without the payload.
        loaded: motion with it; it need not be the same motion.
        robot: the arm; the payload hangs from `robot.payload_mount`.
        friction: friction model; default: presliding.
        gain_uncertainty: relative standard deviation of each joint's drive gain (or torque sensor scale).
        known_mass: the payload's mass [kg], where it was weighed: then the drive gains are what is found.
        common_uncertainty: relative standard deviation of a factor that all of them share.
        gain_covariance: (n, n) of the relative errors of the gains, known from an earlier log; replaces both.
    """
    if known_mass is not None and not known_mass > 0.0:
        raise RetorqueError(f"the known mass must be above zero, got {known_mass} kg")
    if not gain_uncertainty > 0.0:
        raise RetorqueError(f"the drive gains' uncertainty must be above zero, got {gain_uncertainty}")
    layout = Layout(robot, friction or preset("presliding"))
    index = _Index(layout=layout)
    logs = [compress(data, layout) for data in (empty, loaded)]
    noises = [
        learn_noise(factors, data, card_belief(factors)) for factors, data in zip(logs, (empty, loaded), strict=True)
    ]
    carrier = _carrier(robot)
    believed = gain_covariance
    if believed is None:
        believed = common_uncertainty**2 + gain_uncertainty**2 * np.eye(robot.n)
    if known_mass is not None:  # the gains are what is asked for: nearly nothing is believed beforehand
        believed = UNKNOWN**2 * np.eye(robot.n)
    trust = card_trust(logs[0], noises[0])
    prior_root, prior_mean, scale = _prior(index, logs, believed, known_mass, trust)
    vector = prior_mean
    belief: Posterior | None = None
    for _ in range(6):  # the gains multiply the torques: solve with the torques of the last round
        belief = _solve(index, logs, noises, carrier, prior_root, prior_mean, vector)
        bodies = [
            BoundedBody(start=10 * k, reference=matrix, margin=1e-3)
            for k, matrix in enumerate(reference_pseudo_inertia(robot))
        ]
        bodies.append(BoundedBody(start=index.payload, reference=scale, margin=1e-6))
        bounded = np.concatenate([index.of_log(log)[layout.nonnegative] for log in (0, 1)])
        before = vector
        vector, _ = nearest(belief, np.unique(bounded), bodies)
        if np.allclose(vector, before, rtol=1e-6, atol=1e-9):
            break
    assert belief is not None
    return _report(index, robot, vector, belief, believed)


def card_trust(empty: Factors, noise: Noise, rounds: int = 8) -> Array:
    """(links,) relative error of each link of a card that an empty log bears out: its most likely value.

    With d a link's distance from the card in units of the prior and g the number of its directions that the log tells,
    the most likely prior is as wide as d² / g (type-II maximum likelihood).
    """
    layout = empty.layout
    torque = max(float(np.max(np.abs(f[:, -1]))) for f in empty.of_joint) / np.sqrt(empty.count)
    card = card_prior(layout, torque=max(10.0 * torque, 1e-3))
    relative = np.full(layout.links, 0.3)
    for _ in range(rounds):
        prior = loosened(card, relative)
        belief = posterior(empty, noise.weight, prior)
        covariance = belief.covariance
        for k in range(layout.links):
            span = slice(10 * k, 10 * k + 10)
            root = prior.root[span, span]
            distance = float(np.sum(np.square(root @ (belief.mean - prior.mean)[span])))
            told = 10.0 - float(np.trace(root @ covariance[span, span] @ root.T))
            relative[k] = np.clip(relative[k] * np.sqrt(distance / max(told, 1.0)), *CARD)
    return relative


def loosened(card: Prior, relative: Array) -> Prior:
    """A card's prior with each link believed to its own relative error (links,)."""
    root = card.root.copy()
    for k, value in enumerate(relative):
        root[10 * k : 10 * k + 10] /= value
    return Prior(mean=card.mean, root=root)


def _carrier(robot: Robot) -> int:
    """The moving link that the payload hangs from."""
    names = [link.name for link in robot.moving_links]
    if robot.payload_mount.link not in names:
        raise RetorqueError(f"the payload mount of '{robot.name}' is not on a moving link")
    return names.index(robot.payload_mount.link)


def _prior(
    index: _Index, logs: list[Factors], believed: Array, known_mass: float | None, trust: Array
) -> tuple[Array, Array, Array]:
    """Square root of the prior's precision, its mean, and a pseudo-inertia of a payload's size."""
    layout = index.layout
    torque = max(10.0 * float(np.max(np.abs(f[:, -1]))) / np.sqrt(log.count) for log in logs for f in log.of_joint)
    card = loosened(card_prior(layout, torque=max(torque, 1e-3)), trust)
    root, mean = np.zeros((index.size, index.size)), np.zeros(index.size)
    for log in (0, 1):
        places = index.of_log(log)
        root[np.ix_(places, places)] = card.root
        mean[places] = card.mean
    mass = max(1.0, 0.5 * float(np.sum([link.mass for link in layout.robot.moving_links])))
    guess = to_vector(np.array(mass), np.zeros(3), mass * 0.05**2 * np.eye(3))
    spread = np.concatenate([[mass], [0.3 * mass] * 3, [0.1 * mass] * 6])
    places = index.payload + np.arange(10)
    root[places, places] = 1.0 / spread
    gains = index.gain + np.arange(layout.robot.n)
    root[np.ix_(gains, gains)] = np.linalg.cholesky(np.linalg.inv(believed)).T
    if known_mass is not None:
        root[index.payload, index.payload] = 1.0 / (1e-4 * known_mass)
        mean[index.payload] = known_mass
    return root, mean, pseudo_inertia(guess)


def _solve(
    index: _Index,
    logs: list[Factors],
    noises: list[Noise],
    carrier: int,
    prior_root: Array,
    prior_mean: Array,
    around: Array,
) -> Posterior:
    """One Gauss-Newton step of measured = (1 + h) (arm + friction + payload), for the scale h of each joint."""
    blocks = [np.concatenate([prior_root, (prior_root @ prior_mean)[:, None]], axis=1)]
    for log, (factors, noise) in enumerate(zip(logs, noises, strict=True)):
        places = index.of_log(log)
        for j, (columns, factor) in enumerate(zip(index.layout.columns, factors.of_joint, strict=True)):
            block = np.zeros((len(factor), index.size + 1))
            block[:, places[columns]] = factor[:, :-1]
            if log == 1:
                own = np.flatnonzero((columns >= 10 * carrier) & (columns < 10 * carrier + 10))
                block[:, index.payload + columns[own] - 10 * carrier] = factor[:, own]
            torque = block[:, : index.gain] @ around[: index.gain]
            scale = 1.0 + around[index.gain + j]
            block[:, : index.gain] *= scale
            block[:, index.gain + j] = torque
            block[:, -1] = factor[:, -1] + torque * around[index.gain + j]
            blocks.append(np.sqrt(noise.weight[j]) * block)
    both = triangle(np.concatenate(blocks))
    root = both[: index.size, : index.size]
    return Posterior(mean=solve_triangular(root, both[: index.size, index.size]), root=root)


def _report(index: _Index, robot: Robot, vector: Array, belief: Posterior, believed: Array) -> PayloadEstimate:
    covariance = belief.covariance
    span = slice(index.payload, index.payload + 10)
    ten, spread = vector[span], covariance[span, span]

    def readable(values: Array) -> Array:
        mass, centre, inertia = _in_mount(values, robot)
        return np.concatenate([[mass], centre, inertia.ravel()])

    step = 1e-6 * np.maximum(np.sqrt(np.diagonal(spread)), 1e-9)
    jacobian = np.stack(
        [(readable(ten + d) - readable(ten - d)) / (2.0 * np.sum(d)) for d in np.diag(step)], axis=1
    )  # (13, 10)
    deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", jacobian, spread, jacobian), 0.0))
    mass, centre, inertia = _in_mount(ten, robot)
    h = vector[index.gain :]
    of_gains = covariance[index.gain :, index.gain :]
    h_std = np.sqrt(np.diagonal(of_gains))
    cross = covariance[index.payload, index.gain :]
    owed = float(cross @ np.linalg.solve(of_gains, cross)) / max(float(spread[0, 0]), 1e-300)
    slope = 1.0 / np.square(1.0 + h)
    return PayloadEstimate(
        mass=float(mass),
        mass_std=float(deviation[0]),
        centre=centre,
        centre_std=deviation[1:4],
        inertia=inertia,
        inertia_std=deviation[4:].reshape(3, 3),
        gain_scale=1.0 / (1.0 + h),
        gain_scale_std=h_std * slope,
        gain_covariance=of_gains * slope * slope[:, None],
        gain_surprise=np.abs(h) / np.sqrt(np.diagonal(believed)),
        gain_share=min(max(owed, 0.0), 1.0),
        free_mass=float(belief.mean[index.payload]),
        free_mass_std=float(np.sqrt(covariance[index.payload, index.payload])),
        margin=float(np.linalg.eigvalsh(pseudo_inertia(ten))[0]),
    )


def _in_mount(ten: Array, robot: Robot) -> tuple[Array, Array, Array]:
    """Mass, centre and inertia about it, in the payload mount's frame."""
    mass, centre, inertia = from_vector(ten)
    mount = robot.payload_mount
    turn = from_quaternion(mount.quaternion)
    return mass, turn.T @ (centre - np.array(mount.position)), turn.T @ inertia @ turn
