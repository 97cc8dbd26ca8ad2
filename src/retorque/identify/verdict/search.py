"""The search for what is wrong with a log: other readings of it, and which of them the robot explains best."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from retorque.identify.verdict.doubts import scales, shifts
from retorque.identify.verdict.load_step import PRICE, appeared
from retorque.identify.verdict.reading import INDEPENDENT, Fit, Reading, mirrored, permuted, spread_of, turned
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
CLOSE = 0.25
"""Relative standard deviation of a card's links for the purpose of finding an offset that hides in them."""
PARTS = (0.5, 0.8, 1.0)
"""Of a Gauss-Newton step that are tried: where links and an offset can say the same it may go too far."""
LARGEST = 0.3
"""Hidden offset that is looked for [rad]; a larger one shows in the torques."""
UNEVEN = 1.5
"""Factor between a joint's torque and the others' that is tried."""


Change = Callable[[Motion], Motion]
"""What a log becomes when it is read otherwise."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """One other way to read a log."""

    cause: str
    """In the words of a verdict: permutation, sign, scale, gravity, load, time shift, joint offset, wrong robot."""
    words: str
    """What it would mean, for a sentence that begins with "the log fits far better"."""
    reading: Reading
    torque: Array | None = None
    """(samples, n) where only the torques are read otherwise."""
    change: Change | None = None
    """The same for any part of the log, where it can be made good in the file."""

    easier: float = 0.0
    """What it gains without merit: by leaving out samples that it has no torque for, or by free numbers [nat]."""

    def fit(self) -> Fit:
        """How well the robot explains it."""
        return self.reading.fit(self.torque)


def likely(reading: Reading) -> Iterator[Guess]:
    """The few mistakes that may leave a good fit, cheap enough to be tried on every log."""
    yield _weightless(reading)
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
    yield from loads(reading)
    yield from _robots(reading)


def _efforts(reading: Reading, cause: str, words: str, change: Change) -> Guess:
    """A guess about the torques alone, which shares what is known of the motion."""
    return Guess(cause=cause, words=words, reading=reading, torque=change(reading.motion).torque, change=change)


def _motions(reading: Reading, cause: str, words: str, change: Change) -> Guess:
    """A guess about the motion."""
    return Guess(cause=cause, words=words, reading=reading.other(change(reading.motion)), change=change)


def _sizes(reading: Reading) -> Iterator[Guess]:
    found, n = scales(reading), reading.robot.n
    factor = found.common
    if not np.isfinite(factor):
        return
    if max(factor, 1.0 / factor) > 2.0:
        words = f"with the torques divided by {factor:.3g}: units, gear ratios or drive gains"
        yield _efforts(reading, "scale", words, _scaled(np.full(n, 1.0 / factor)))
    for j in np.flatnonzero(found.joint > 0.0):  # NaN where a joint says nothing
        others = np.delete(found.joint, j)
        others = others[others > 0.0]
        if not len(others):
            continue
        one = float(found.joint[j] / np.median(others))
        if max(one, 1.0 / one) > UNEVEN:
            size = np.ones(n)
            size[j] = 1.0 / one
            words = f"with the torque of {reading.robot.joint_names[j]} divided by {one:.2g}: its unit, gear or gain"
            yield _efforts(reading, "scale", words, _scaled(size))


def _scaled(size: Array) -> Change:
    return lambda motion: replace(motion, torque=motion.torque * size)


def _weightless(reading: Reading) -> Guess:
    """Drivers of torque-controlled arms often leave out the weight that they carry themselves."""

    def with_weight(motion: Motion) -> Motion:
        still = np.zeros_like(motion.q)
        return replace(motion, torque=motion.torque + reading.body.inverse_dynamics(motion.q, still, still))

    words = "with the arm's weight added to the torques: the log seems to leave gravity out"
    guess = _efforts(reading, "gravity", words, with_weight)
    return replace(guess, easier=_grown(reading, guess))


def _grown(reading: Reading, guess: Guess) -> float:
    """What a guess gains by adding torque alone, of which the same error is a smaller share [nat]."""
    assert guess.torque is not None
    return INDEPENDENT * float(np.sum(np.log(spread_of(guess.torque) / reading.spread)))


def _signs(reading: Reading) -> Iterator[Guess]:
    joint, n = reading.robot.joint_names, reading.robot.n
    for j in range(n):
        sign = np.ones(n)
        sign[j] = -1.0
        yield _efforts(reading, "sign", f"with the torque of {joint[j]} counted the other way", _scaled(sign))
        words = f"with the position of {joint[j]} counted the other way"
        yield _motions(reading, "sign", words, partial(mirrored, joint=j))
    yield _efforts(reading, "sign", "with all torques counted the other way", _scaled(np.full(n, -1.0)))


def _delays(reading: Reading, motion: Motion, at: Array) -> Iterator[Guess]:
    far, whole = _correlated(reading, motion), reading.fit().score
    for seconds in (*(sign * value for value in NEAR for sign in (-1.0, 1.0)), *far):
        torque, there = shifted(motion, at, seconds)
        if np.mean(there) < ROOM:
            continue
        words = f"with the torques read {abs(1000.0 * seconds):.0f} ms {'later' if seconds > 0 else 'earlier'}"
        some = reading if np.all(there) else reading.other(reading.motion[there])
        easier = 0.0 if np.all(there) else max(0.0, whole - some.fit().score)
        change = partial(moved, seconds=seconds)
        yield Guess(cause="time shift", words=words, reading=some, torque=torque[there], change=change, easier=easier)


def moved(motion: Motion, seconds: float) -> Motion:
    """The motion with its torques read `seconds` later; the ends keep their own."""
    torque, there = shifted(motion, np.arange(len(motion)), seconds)
    return replace(motion, torque=np.where(there[:, None], torque, motion.torque))


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
    make = _efforts if what == "torque" else _motions
    return make(reading, "permutation", words, partial(permuted, order=order, what=what))


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


def hidden_offset(reading: Reading, least: float, nearer: float, better: float) -> tuple[Guess, float] | None:
    """A zero that is off while the links' centres of mass have taken it in, and by how much it is better [nat].

    The torques alone hardly tell the two apart; the card does: with the joint turned back its links are where they were
    drawn.

    Args:
        reading: the log.
        least: offset that counts [rad].
        nearer: by how much the links must come nearer to the card, believed to `CLOSE` [nat].
        better: by how much links and torques together must be more likely [nat].
    """
    close = reading.believing(CLOSE)
    fit = close.fit()
    offset = np.clip(shifts(close, fit).offset, -LARGEST, LARGEST)
    found: tuple[Guess, float] | None = None
    for j in np.flatnonzero(np.abs(offset) > least):
        for part in PARTS:
            guess = turn(close, int(j), float(part * offset[j]))
            tried = guess.fit()
            gain = fit.score - tried.score
            if fit.bend - tried.bend > nearer and gain > (better if found is None else found[1]):
                found = guess, gain
    return found


def turn(reading: Reading, joint: int, angle: float) -> Guess:
    """A joint's zero elsewhere."""
    words = f"with {np.rad2deg(angle):.0f} degrees added to the position of {reading.robot.joint_names[joint]}"
    return _motions(reading, "joint offset", words, partial(turned, joint=joint, angle=angle))


def loads(reading: Reading) -> Iterator[Guess]:
    """A mass at the hand that comes or goes: the moment at which it explains most."""
    found = appeared(reading, reading.fit())
    if found is None:
        return
    done = "picked up" if found.mass > 0.0 else "put down"
    after = found.time - float(reading.motion.time[0])
    words = f"with a load of {abs(found.mass):.2g} kg {done} after {after:.1f} s: use the rows before or after it"

    def without(motion: Motion) -> Motion:
        return replace(motion, torque=motion.torque - found.torque(reading.body, motion))

    guess = _efforts(reading, "load", words, without)
    yield replace(guess, easier=PRICE + _grown(reading, guess))


def _robots(reading: Reading) -> Iterator[Guess]:
    for name in names():
        try:
            robot = load(name)
        except RetorqueError:
            continue
        if robot.n != reading.robot.n or robot.floating or robot.name == reading.robot.name:
            continue
        yield Guess(cause="wrong robot", words=f"with the card of {name}", reading=reading.other(robot=robot))
