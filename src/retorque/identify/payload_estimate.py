"""What an arm carries, from one log without it and one with it: mass, centre and inertia with honest errors.

Both logs share the arm's own parameters; each has its own friction, since a gearbox warms up between recordings. The
drive gains (torque per current) are known only to some percent, and whatever they are wrong by, the payload is too: so
they are unknowns of the same estimate, with that uncertainty as their prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from retorque.identify.methods.sdp import BoundedBody, nearest
from retorque.identify.regression.factors import Factors, triangle
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.prior import card_prior, reference_pseudo_inertia
from retorque.identify.regression.regression import Noise, Posterior, card_belief, compress, learn_noise
from retorque.logs.motion import MotionSource
from retorque.physics.friction import Friction, preset
from retorque.physics.inertia import from_vector, pseudo_inertia, to_vector
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


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
    gain_uncertainty: float = 0.05,
    known_mass: float | None = None,
) -> PayloadEstimate:
    """The payload from two logs.

    Args:
        empty: motion without the payload.
        loaded: motion with it; it need not be the same motion.
        robot: the arm; the payload hangs from `robot.payload_mount`.
        friction: friction model; default: presliding.
        gain_uncertainty: relative standard deviation of each joint's drive gain (or torque sensor scale).
        known_mass: the payload's mass [kg], where it was weighed: then the drive gains are what is found.
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
    prior_root, prior_mean, scale = _prior(index, logs, gain_uncertainty, known_mass)
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
    return _report(index, robot, vector, belief.covariance)


def _carrier(robot: Robot) -> int:
    """The moving link that the payload hangs from."""
    names = [link.name for link in robot.moving_links]
    if robot.payload_mount.link not in names:
        raise RetorqueError(f"the payload mount of '{robot.name}' is not on a moving link")
    return names.index(robot.payload_mount.link)


def _prior(
    index: _Index, logs: list[Factors], gain_uncertainty: float, known_mass: float | None
) -> tuple[Array, Array, Array]:
    """Square root of the prior's precision, its mean, and a pseudo-inertia of a payload's size."""
    layout = index.layout
    torque = max(10.0 * float(np.max(np.abs(f[:, -1]))) / np.sqrt(log.count) for log in logs for f in log.of_joint)
    card = card_prior(layout, torque=max(torque, 1e-3))
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
    root[gains, gains] = 1.0 / gain_uncertainty
    if known_mass is not None:
        root[index.payload, index.payload] = 1.0 / (1e-4 * known_mass)
        mean[index.payload] = known_mass
        root[gains, gains] = 1.0  # the gains are what is asked for: nearly nothing is believed beforehand
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


def _report(index: _Index, robot: Robot, vector: Array, covariance: Array) -> PayloadEstimate:
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
    h_std = np.sqrt(np.diagonal(covariance)[index.gain :])
    return PayloadEstimate(
        mass=float(mass),
        mass_std=float(deviation[0]),
        centre=centre,
        centre_std=deviation[1:4],
        inertia=inertia,
        inertia_std=deviation[4:].reshape(3, 3),
        gain_scale=1.0 / (1.0 + h),
        gain_scale_std=h_std / np.square(1.0 + h),
        margin=float(np.linalg.eigvalsh(pseudo_inertia(ten))[0]),
    )


def _in_mount(ten: Array, robot: Robot) -> tuple[Array, Array, Array]:
    """Mass, centre and inertia about it, in the payload mount's frame."""
    mass, centre, inertia = from_vector(ten)
    mount = robot.payload_mount
    turn = from_quaternion(mount.quaternion)
    return mass, turn.T @ (centre - np.array(mount.position)), turn.T @ inertia @ turn
