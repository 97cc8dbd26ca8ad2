"""Logs damaged on purpose, as loggers, drivers and people damage them: what every verdict is tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.logs.log import Log
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class RawLog:
    """A log as it was recorded."""

    time: Array
    """(rows,) [s]"""
    position: Array
    """(rows, n) [rad]"""
    velocity: Array | None
    """(rows, n) [rad/s]"""
    torque: Array
    """(rows, n) [N·m]"""

    @classmethod
    def of(cls, log: Log) -> RawLog:
        """What a log of one file holds, before anything is cleaned or filtered."""
        blocks = list(log.raw(log.paths[0]))
        velocity = None if blocks[0][3] is None else np.concatenate([b[3] for b in blocks if b[3] is not None])
        time, position, torque = (np.concatenate([np.asarray(b[k]) for b in blocks]) for k in (1, 2, 4))
        return cls(time=time, position=position, velocity=velocity, torque=torque)

    def save(self, path: Path) -> Path:
        """Write as NPZ."""
        arrays = {"time": self.time, "q": self.position, "tau": self.torque}
        if self.velocity is not None:
            arrays["qd"] = self.velocity
        np.savez(path, allow_pickle=False, **{name: np.ascontiguousarray(array) for name, array in arrays.items()})
        return path

    @property
    def rate(self) -> float:
        """[Hz]"""
        return float(1.0 / np.median(np.diff(self.time)))


@dataclass(frozen=True, kw_only=True)
class Damage:
    """One way to spoil a log."""

    name: str
    cause: str
    """What a verdict must name."""
    spoil: Callable[[RawLog], RawLog]
    robot: str = ""
    """Another robot's card to read it with."""


def _exchanged(n: int, i: int, j: int) -> Array:
    order = np.arange(n)
    order[[i, j]] = j, i
    return order


def _ordered(log: RawLog, order: Array, what: str = "all") -> RawLog:
    velocity = log.velocity if log.velocity is None or what == "torque" else log.velocity[:, order]
    position = log.position if what == "torque" else log.position[:, order]
    torque = log.torque if what == "position" else log.torque[:, order]
    return replace(log, position=position, velocity=velocity, torque=torque)


def _signed(log: RawLog, joint: int, what: str) -> RawLog:
    sign = np.ones(log.torque.shape[1])
    sign[joint] = -1.0
    if what == "torque":
        return replace(log, torque=log.torque * sign)
    velocity = None if log.velocity is None else log.velocity * sign
    return replace(log, position=log.position * sign, velocity=velocity)


def _late(log: RawLog, seconds: float) -> RawLog:
    """The torques of another moment, the ends cut off."""
    rows = round(abs(seconds) * log.rate)
    first, last = slice(0, len(log.time) - rows), slice(rows, None)
    kept, read = (first, last) if seconds > 0 else (last, first)
    velocity = None if log.velocity is None else log.velocity[kept]
    return replace(log, time=log.time[kept], position=log.position[kept], velocity=velocity, torque=log.torque[read])


def _turned(log: RawLog, joint: int, degrees: float) -> RawLog:
    position = log.position.copy()
    position[:, joint] += np.deg2rad(degrees)
    return replace(log, position=position)


def _dead(log: RawLog, joint: int, value: float = 0.0) -> RawLog:
    torque = log.torque.copy()
    torque[:, joint] = value
    return replace(log, torque=torque)


def _frozen(log: RawLog, joint: int, with_velocity: bool) -> RawLog:
    position = log.position.copy()
    position[:, joint] = position[0, joint]
    velocity = log.velocity
    if velocity is not None and with_velocity:
        velocity = velocity.copy()
        velocity[:, joint] = 0.0
    return replace(log, position=position, velocity=velocity)


def _zeros(log: RawLog, seconds: float, everything: bool) -> RawLog:
    start = len(log.time) // 3
    rows = slice(start, start + round(seconds * log.rate))
    torque = log.torque.copy()
    torque[rows] = 0.0
    if not everything:
        return replace(log, torque=torque)
    position = log.position.copy()
    position[rows] = 0.0
    velocity = None if log.velocity is None else log.velocity.copy()
    if velocity is not None:
        velocity[rows] = 0.0
    return replace(log, position=position, velocity=velocity, torque=torque)


def _at_rest(log: RawLog) -> RawLog:
    """The robot stands where it began, with the jitter of its sensors."""
    rng = np.random.default_rng(0)
    jitter = 1e-5 * rng.standard_normal(log.position.shape)
    noise = 0.01 * np.std(log.torque, axis=0) * rng.standard_normal(log.torque.shape)
    velocity = None if log.velocity is None else np.zeros_like(log.velocity)
    return replace(log, position=log.position[:1] + jitter, velocity=velocity, torque=log.torque[:1] + noise)


def damages(n: int, others: tuple[str, ...] = ()) -> list[Damage]:
    """The list, for a robot of `n` joints.

    Args:
        n: joints.
        others: names of other robots with as many.
    """

    def case(name: str, cause: str, spoil: Callable[[RawLog], RawLog]) -> Damage:
        return Damage(name=name, cause=cause, spoil=spoil)

    found = [
        case("torque x 10", "scale", lambda log: replace(log, torque=10.0 * log.torque)),
        case("torque x 0.001 (mA for A)", "scale", lambda log: replace(log, torque=1e-3 * log.torque)),
        case("dead channel", "dead channel", lambda log: _dead(log, 2)),
        case("dead channel at its last value", "dead channel", lambda log: _dead(log, 1, float(log.torque[0, 1]))),
        case("clock in ms, no velocities", "time unit", lambda log: replace(log, time=1e3 * log.time, velocity=None)),
        case("clock in ms", "time unit", lambda log: replace(log, time=1e3 * log.time)),
        case("clock in ns", "time unit", lambda log: replace(log, time=1e9 * log.time)),
        case("joints in reverse order", "permutation", lambda log: _ordered(log, np.arange(n)[::-1])),
        case("first and third joint exchanged", "permutation", lambda log: _ordered(log, _exchanged(n, 0, 2))),
        case(
            "torques of joints 2 and 3 exchanged",
            "permutation",
            lambda log: _ordered(log, _exchanged(n, 1, 2), "torque"),
        ),
        case(
            "torques of the last two exchanged",
            "permutation",
            lambda log: _ordered(log, _exchanged(n, n - 2, n - 1), "torque"),
        ),
        case(
            "positions of joints 1 and 2 exchanged",
            "permutation",
            lambda log: _ordered(log, _exchanged(n, 0, 1), "position"),
        ),
        case("torque of joint 2 reversed", "sign", lambda log: _signed(log, 1, "torque")),
        case("torque of joint 1 reversed", "sign", lambda log: _signed(log, 0, "torque")),
        case("torque of the last joint reversed", "sign", lambda log: _signed(log, n - 1, "torque")),
        case("position of joint 3 reversed", "sign", lambda log: _signed(log, 2, "position")),
        case("torques 5 s late", "time shift", lambda log: _late(log, -5.0)),
        case("torques 5 s early", "time shift", lambda log: _late(log, 5.0)),
        case("torques 80 ms late", "time shift", lambda log: _late(log, -0.08)),
        case("torques 80 ms early", "time shift", lambda log: _late(log, 0.08)),
        case("joint 2 off by 90 degrees", "joint offset", lambda log: _turned(log, 1, 90.0)),
        case("joint 2 off by 6 degrees", "joint offset", lambda log: _turned(log, 1, 6.0)),
        case("joint 3 off by -6 degrees", "joint offset", lambda log: _turned(log, 2, -6.0)),
        case("frozen encoder", "frozen channel", lambda log: _frozen(log, 1, False)),
        case(
            "frozen encoder, no velocities", "frozen channel", lambda log: _frozen(replace(log, velocity=None), 2, True)
        ),
        case("3 s of zero torque", "zeros", lambda log: _zeros(log, 3.0, False)),
        case("3 s of zeros", "zeros", lambda log: _zeros(log, 3.0, True)),
        case("no motion", "no motion", _at_rest),
    ]
    return found + [
        Damage(name=f"card of {name}", cause="wrong robot", spoil=lambda log: log, robot=name) for name in others
    ]
