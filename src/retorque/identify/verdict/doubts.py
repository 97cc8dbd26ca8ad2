"""What a log gives away about itself at little cost: offsets of joints and clocks, scales, friction that drives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from retorque.identify.regression.factors import triangle
from retorque.identify.verdict.reading import INDEPENDENT, Fit, Reading
from retorque.logs.cutoff import bandwidth
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.work.array import Array

WIDE = 1.0
"""Standard deviation of an offset before any data [rad]."""
LATE = 0.2
"""Standard deviation of a delay before any data [s]."""
STEP = 1e-4
"""Of the differences that say what an offset would do [rad]."""
SLOW, QUIET = 2.0, (3.0, 6.0)
"""Up to where a residual follows the motion, and where only noise is left, over the motion's bandwidth."""
SEEN = 0.25
"""Part of a joint's torque that the card must foresee, beyond friction and a rotor, before it says a scale."""


@dataclass(frozen=True, kw_only=True)
class Shifts:
    """What the positions and the clock are off by, learnt along with everything else."""

    offset: Array
    """(n,) to be added to the positions [rad]."""
    offset_std: Array
    delay: float
    """By which the torques come too late [s]."""
    delay_std: float


def shifts(reading: Reading, fit: Fit) -> Shifts:
    """One Gauss-Newton step of parameters, joint offsets and a common delay together."""
    motion, layout, n = reading.motion, reading.layout, reading.robot.n
    inertial = fit.vector[: 10 * layout.links]
    base = reading.body.regressor(motion.q, motion.qd, motion.qdd) @ inertial
    slope = np.zeros((*motion.torque.shape, n + 1))
    for j in range(n):
        q = motion.q.copy()
        q[:, j] += STEP
        slope[..., j] = (reading.body.regressor(q, motion.qd, motion.qdd) @ inertial - base) / STEP
    slope[..., n] = -_rate(reading, fit)
    prior = reading.prior(reading.spread)
    size = layout.size
    noise = fit.share * reading.spread * np.sqrt(len(motion) / INDEPENDENT)
    blocks = [np.zeros((size + n + 1, size + n + 2))]
    blocks[0][:size, :size] = prior.root
    blocks[0][:size, -1] = prior.root @ prior.mean
    blocks[0][range(size, size + n + 1), range(size, size + n + 1)] = [*[1.0 / WIDE] * n, 1.0 / LATE]
    for j, (columns, rows) in enumerate(zip(layout.columns, reading.rows, strict=True)):
        block = np.zeros((len(rows), size + n + 2))
        block[:, columns] = rows
        block[:, size:-1] = slope[:, j]
        block[:, -1] = motion.torque[:, j]
        blocks.append(triangle(block / noise[j]))
    factor = triangle(np.concatenate(blocks))[: size + n + 1]
    found = solve_triangular(factor[:, :-1], factor[:, -1])[size:]
    inverse = solve_triangular(factor[:, :-1], np.eye(size + n + 1))[size:]
    std = np.sqrt(np.sum(np.square(inverse), axis=1))
    return Shifts(offset=found[:n], offset_std=std[:n], delay=float(found[n]), delay_std=float(std[n]))


def _rate(reading: Reading, fit: Fit) -> Array:
    """(samples, n) how fast the modelled torque changes [N·m/s]."""
    ahead = _advanced(reading.motion, 0.01)
    inertial, _, coefficients = reading.layout.unpack(fit.vector)
    now = reading.body.regressor(reading.motion.q, reading.motion.qd, reading.motion.qdd) @ inertial.ravel()
    then = reading.body.regressor(ahead.q, ahead.qd, ahead.qdd) @ inertial.ravel()
    friction = reading.friction.torque(ahead.qd, coefficients, ahead.slip)
    friction = friction - reading.friction.torque(reading.motion.qd, coefficients, reading.motion.slip)
    return (then - now + friction) / 0.01


def _advanced(motion: Motion, seconds: float) -> Motion:
    """The motion a little later, the jerk left out."""
    q = motion.q + seconds * motion.qd + 0.5 * seconds**2 * motion.qdd
    return replace(motion, q=q, qd=motion.qd + seconds * motion.qdd)


@dataclass(frozen=True, kw_only=True)
class TorqueScales:
    """Measured torque over the card's."""

    joint: Array
    """(n,) of each joint; NaN where the card foresees too little of its torque."""
    common: float
    """Of the arm; NaN where no joint says."""


def scales(reading: Reading) -> TorqueScales:
    """Each joint's torque as a multiple of the card's rigid body, beside friction and a rotor of any size."""
    motion = reading.motion
    card = reading.body.inverse_dynamics(motion.q, motion.qd, motion.qdd)
    features = preset("coulomb-viscous").features(motion.qd)
    found, weight = np.full(motion.n, np.nan), np.zeros(motion.n)
    for j in range(motion.n):
        others = np.column_stack([features[:, j], motion.qdd[:, j]])
        both = np.linalg.lstsq(others, np.column_stack([card[:, j], motion.torque[:, j]]), rcond=None)[0]
        alone = card[:, j] - others @ both[:, 0]  # a light wrist's inertia is a rotor's by another name
        foreseen = float(np.std(alone))
        scale = float(alone @ (motion.torque[:, j] - others @ both[:, 1])) / max(float(alone @ alone), 1e-300)
        if abs(scale) * foreseen > SEEN * max(float(reading.spread[j]), 1e-12):
            found[j], weight[j] = scale, foreseen
    seen = np.isfinite(found) & (found > 0.0)
    if not np.any(seen):
        return TorqueScales(joint=found, common=float("nan"))
    common = float(np.exp(np.average(np.log(found[seen]), weights=weight[seen])))
    return TorqueScales(joint=found, common=common)


def meaningful(reading: Reading, fit: Fit, motion: Motion) -> Array:
    """(n,) part of each joint's residual that is not white noise, as a ratio of standard deviations.

    A sensor's noise is as strong beside the motion's band as within it; whatever exceeds that level within the band is
    torque that the model does not have. A joint for which the card foresees more than was measured is not excused: its
    channel may be a loose wire.

    Args:
        reading: the log, thinned.
        fit: its explanation.
        motion: the log, not thinned.
    """
    modelled = reading.layout.torque(reading.body, fit.vector, motion.q, motion.qd, motion.qdd, motion.slip)
    residual = motion.torque - modelled
    rate = 1.0 / float(np.median(np.diff(motion.time)))
    band = bandwidth(motion.q, rate)
    power = np.square(np.abs(np.fft.rfft(residual - residual.mean(axis=0), axis=0)))
    frequency = np.fft.rfftfreq(len(residual), 1.0 / rate)
    beside = (frequency > QUIET[0] * band) & (frequency < QUIET[1] * band)
    inside = frequency < SLOW * band
    if not band or np.sum(beside) < 10 or QUIET[1] * band > 0.5 * rate:
        return np.ones(motion.n)
    noise = power[beside].mean(axis=0) * np.sum(inside)
    part = np.maximum(power[inside].sum(axis=0) - noise, 0.0) / np.maximum(power.sum(axis=0), 1e-300)
    card = reading.body.inverse_dynamics(reading.motion.q, reading.motion.qd, reading.motion.qdd).std(axis=0)
    return np.where(card < reading.spread, np.sqrt(part), 1.0)
