"""Noise and delays between a target's state and what is read from it (TAM, Table B.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.robots.profile import Profile
from retorque.robots.state import State
from retorque.work.array import Array

Seed = int | np.random.Generator
"""Of noise: a number starts again at each reset, a generator goes on."""


@dataclass(frozen=True, kw_only=True)
class SensorSettings:
    """One set a trial, or arrays () for one robot; all zero is a perfect sensor."""

    position_noise: Array
    """(trials,) standard deviation [rad]."""
    velocity_noise: Array
    """(trials,) standard deviation [rad/s]."""
    velocity_delay: Array
    """(trials,) ticks."""
    torque_delay: Array
    """(trials,) ticks."""

    @classmethod
    def perfect(cls, trials: int | tuple[int, ...]) -> SensorSettings:
        """Neither noise nor delay."""
        none, now = np.zeros(trials), np.zeros(trials, dtype=int)
        return cls(position_noise=none, velocity_noise=none, velocity_delay=now, torque_delay=now)

    @classmethod
    def sample(cls, profile: Profile, trials: int | tuple[int, ...], seed: int | np.random.Generator) -> SensorSettings:
        """Noise levels and delays drawn from the profile's ranges."""
        rng = np.random.default_rng(seed)
        return cls(
            position_noise=np.asarray(rng.uniform(*profile.position_noise, trials)),
            velocity_noise=np.asarray(rng.uniform(*profile.velocity_noise, trials)),
            velocity_delay=np.asarray(rng.integers(0, profile.velocity_delay + 1, trials)),
            torque_delay=np.asarray(rng.integers(0, profile.torque_delay + 1, trials)),
        )


class Sensors:
    """Reads a batch of targets: white noise on position and velocity, whole-tick delays on velocity and torque."""

    def __init__(self, settings: SensorSettings, n: int, seed: Seed):
        lead = np.shape(settings.position_noise)
        self.settings = settings
        self._seed = seed
        self._rows = tuple(np.arange(size) for size in lead)
        depth = 1 + int(max(np.max(settings.velocity_delay), np.max(settings.torque_delay)))
        self._velocity = np.zeros((depth, *lead, n))
        self._torque = np.zeros((depth, *lead, n))
        self._noise = np.stack([settings.position_noise, settings.velocity_noise])[..., None]  # (2, ..., 1)
        self._noisy = bool(np.any(self._noise > 0.0))
        self.reset(np.zeros((*lead, n)))

    def reset(self, velocity: Array) -> None:
        """Start again from a velocity (..., n), with no torque so far."""
        self._velocity[:] = velocity
        self._torque[:] = 0.0
        self._tick = 0
        self._rng = np.random.default_rng(self._seed)

    def read(self, time: float, position: Array, velocity: Array, torque: Array) -> State:
        """The report of one tick; call it exactly once a tick."""
        s, depth = self.settings, len(self._velocity)
        if depth == 1 and not self._noisy:  # perfect
            return State(time, position.copy(), velocity.copy(), torque.copy())
        self._tick = (self._tick + 1) % depth
        self._velocity[self._tick] = velocity
        self._torque[self._tick] = torque
        measured_velocity = self._late(self._velocity, s.velocity_delay)
        measured_torque = self._late(self._torque, s.torque_delay)
        measured_position = position.copy()
        if self._noisy:
            noise = self._rng.standard_normal((2, *position.shape))
            noise *= self._noise
            measured_position += noise[0]
            measured_velocity += noise[1]
        return State(time, measured_position, measured_velocity, measured_torque)

    def _late(self, ring: Array, delay: Array) -> Array:
        """A copy of each trial's row of so many ticks ago."""
        row = (self._tick - delay) % len(ring)
        return ring[(row, *self._rows)] if self._rows else ring[row].copy()
