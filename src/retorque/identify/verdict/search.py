"""The search for what is wrong with a log: other readings of it, and which of them the robot explains best."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from retorque.identify.verdict.doubts import scales, shifts
from retorque.identify.verdict.reading import Fit, Reading, mirrored, permuted, turned
from retorque.identify.verdict.sample import shifted
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.robots.library import load, names
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FARTHEST = 10.0
"""Largest delay that is looked for [s]."""
NEAR = (0.04, 0.08, 0.12, 0.2)
"""Small delays that are tried each way [s]."""
CANDIDATES = 4
"""Large delays that are tried."""
ROOM = 0.35
"""Part of the samples that a delay must leave."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """One other way to read a log."""

    cause: str
    """In the words of a verdict: permutation, sign, time shift, joint offset, wrong robot."""
    words: str
    """What it would mean, for a sentence that begins with "the log fits far better"."""
    reading: Reading
    torque: Array | None = None
    """(samples, n) where only the torques are read otherwise."""

    def fit(self) -> Fit:
        """How well the robot explains it."""
        return self.reading.fit(self.torque)


def likely(reading: Reading) -> Iterator[Guess]:
    """The few mistakes that may leave a good fit, cheap enough to be tried on every log."""
    for i in range(reading.robot.n - 1):
        yield _swap(reading, i, i + 1, "all")


def guesses(reading: Reading, motion: Motion, at: Array) -> Iterator[Guess]:
    """Everything that is looked for.

    Args:
        reading: the log as it says it is, thinned.
        motion: the same, not thinned.
        at: the indices that were kept of it.
    """
    yield from _sizes(reading)
    yield from _signs(reading)
    yield from _delays(reading, motion, at)
    yield from _orders(reading)
    yield from _offsets(reading)
    yield from _robots(reading)


def _sizes(reading: Reading) -> Iterator[Guess]:
    factor = scales(reading).common
    if np.isfinite(factor) and max(factor, 1.0 / factor) > 2.0:
        words = f"with the torques divided by {factor:.3g}: units, gear ratios or drive gains"
        yield Guess(cause="scale", words=words, reading=reading, torque=reading.motion.torque / factor)


def _signs(reading: Reading) -> Iterator[Guess]:
    joint = reading.robot.joint_names
    for j in range(reading.robot.n):
        sign = np.ones(reading.robot.n)
        sign[j] = -1.0
        torque = reading.motion.torque * sign
        yield Guess(
            cause="sign", words=f"with the torque of {joint[j]} counted the other way", reading=reading, torque=torque
        )
        other = reading.other(mirrored(reading.motion, j))
        yield Guess(cause="sign", words=f"with the position of {joint[j]} counted the other way", reading=other)
    yield Guess(
        cause="sign", words="with all torques counted the other way", reading=reading, torque=-reading.motion.torque
    )


def _delays(reading: Reading, motion: Motion, at: Array) -> Iterator[Guess]:
    far = _correlated(reading, motion)
    for seconds in (*(sign * value for value in NEAR for sign in (-1.0, 1.0)), *far):
        torque, there = shifted(motion, at, seconds)
        if np.mean(there) < ROOM:
            continue
        words = f"with the torques read {abs(1000.0 * seconds):.0f} ms {'later' if seconds > 0 else 'earlier'}"
        if np.all(there):
            yield Guess(cause="time shift", words=words, reading=reading, torque=torque)
        else:
            some = reading.other(reading.motion[there])
            yield Guess(cause="time shift", words=words, reading=some, torque=torque[there])


def _correlated(reading: Reading, motion: Motion) -> tuple[float, ...]:
    """The few large delays at which the card, friction and a rotor explain the measured torques best [s].

    With A fixed and b moved by k samples, Aᵀb(k) is a correlation, and b(k)ᵀA(AᵀA)⁻¹Aᵀb(k) what A explains of b.
    """
    period = float(np.median(np.diff(motion.time)))
    stride = max(1, int(0.02 / period))
    thin, step = motion[::stride], period * stride
    card = reading.body.inverse_dynamics(thin.q, thin.qd, thin.qdd)
    features = preset("coulomb-viscous").features(thin.qd)
    reach = min(int(FARTHEST / step), int((1.0 - ROOM) * len(thin)))
    length = 2 * len(thin)
    unexplained = np.zeros(2 * reach + 1)
    overlap = 1.0 - np.abs(np.arange(2 * reach + 1) - reach) / len(thin)
    for j in range(motion.n):
        columns = np.column_stack([card[:, j], features[:, j], thin.qdd[:, j]])
        columns = columns[:, np.std(columns, axis=0) > 0.0] - columns[:, np.std(columns, axis=0) > 0.0].mean(axis=0)
        torque = thin.torque[:, j] - thin.torque[:, j].mean()
        if not columns.shape[1] or not np.any(torque):
            continue
        spectrum = np.conj(np.fft.rfft(columns, length, axis=0)) * np.fft.rfft(torque, length)[:, None]
        product = np.fft.irfft(spectrum, length, axis=0)
        product = np.concatenate([product[length - reach :], product[: reach + 1]])  # (lags, columns)
        inverse = np.linalg.pinv(columns.T @ columns, rcond=1e-8, hermitian=True)
        energy = np.concatenate([[0.0], np.cumsum(np.square(torque))])
        there = np.concatenate([energy[len(thin) - reach : len(thin)], energy[-1] - energy[: reach + 1]])
        explained = np.einsum("la,ab,lb->l", product, inverse, product) / overlap / np.maximum(there, 1e-300)
        unexplained += np.log(np.maximum(1.0 - explained, 1e-3))
    lags = step * (np.arange(2 * reach + 1) - reach)
    inner = unexplained[1:-1]
    dips = 1 + np.flatnonzero((inner < unexplained[:-2]) & (inner <= unexplained[2:]))
    dips = dips[np.abs(lags[dips]) > max(NEAR)]
    return tuple(float(lags[dip]) for dip in dips[np.argsort(unexplained[dips])][:CANDIDATES])


def _orders(reading: Reading) -> Iterator[Guess]:
    n = reading.robot.n
    for what in ("torque", "all", "position"):
        for i, j in itertools.combinations(range(n), 2):
            yield _swap(reading, i, j, what)
        orders = {"in reverse order": np.arange(n)[::-1]}
        orders |= {f"moved on by {k}": np.roll(np.arange(n), k) for k in range(1, n)}
        for name, order in orders.items():
            yield _order(reading, order, what, f"with {_signal(what)} of the joints {name}")


def _swap(reading: Reading, i: int, j: int, what: str) -> Guess:
    order = np.arange(reading.robot.n)
    order[[i, j]] = j, i
    joint = reading.robot.joint_names
    return _order(reading, order, what, f"with {_signal(what)} of {joint[i]} and {joint[j]} exchanged")


def _order(reading: Reading, order: Array, what: str, words: str) -> Guess:
    if what == "torque":
        return Guess(cause="permutation", words=words, reading=reading, torque=reading.motion.torque[:, order])
    return Guess(cause="permutation", words=words, reading=reading.other(permuted(reading.motion, order, what)))


def _signal(what: str) -> str:
    return {"torque": "the torques", "position": "the positions", "all": "all columns"}[what]


def _offsets(reading: Reading) -> Iterator[Guess]:
    """Quarter turns, and what a Gauss-Newton step from there and from here says."""
    fit = reading.fit()
    near = shifts(reading, fit)
    for j in range(reading.robot.n):
        for quarter in (0.0, 0.5 * np.pi, -0.5 * np.pi, np.pi):
            angle = quarter or float(near.offset[j])
            if abs(angle) > np.deg2rad(2.0):
                yield turn(reading, j, angle)


def turn(reading: Reading, joint: int, angle: float) -> Guess:
    """A joint's zero elsewhere."""
    words = f"with {np.rad2deg(angle):.0f} degrees added to the position of {reading.robot.joint_names[joint]}"
    return Guess(cause="joint offset", words=words, reading=reading.other(turned(reading.motion, joint, angle)))


def _robots(reading: Reading) -> Iterator[Guess]:
    for name in names():
        try:
            robot = load(name)
        except RetorqueError:
            continue
        if robot.n != reading.robot.n or robot.floating or robot.name == reading.robot.name:
            continue
        yield Guess(cause="wrong robot", words=f"with the card of {name}", reading=reading.other(robot=robot))
