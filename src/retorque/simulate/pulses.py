"""External torques on the joints: smooth pulses that stand for contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class Pulses:
    """Raised-cosine pulses of generalized torque, (trials, pulses) of them."""

    start: Array
    """(trials, pulses) [s]"""
    duration: Array
    """(trials, pulses) [s]"""
    torque: Array
    """(trials, pulses, n) height [N·m]."""

    @classmethod
    def sample(
        cls, robot: Robot, trials: int, duration: float, seed: int, *, pulses: int = 5, share: float = 0.15
    ) -> Pulses:
        """Pulses of 0.08 - 0.8 s, each joint's height U[0.5, 1.5] x `share` of its torque limit, either way."""
        rng = np.random.default_rng(seed)
        length = rng.uniform(0.08, 0.8, (trials, pulses))
        limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)
        shape = (trials, pulses, robot.n)
        height = rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.5, shape) * share * limit
        begin = rng.uniform(0.0, 1.0, (trials, pulses)) * (duration - length)
        return cls(start=begin, duration=length, torque=height)

    def at(self, time: float) -> Array:
        """The torque at a time, (trials, n) [N·m]."""
        phase = (time - self.start) / self.duration
        weight = np.where((phase > 0.0) & (phase < 1.0), np.sin(np.pi * phase) ** 2, 0.0)
        return np.einsum("tp,tpn->tn", weight, self.torque)
