"""A diffusion policy as a source of poses: a chunk of three seconds, its first part carried out, then the next."""

from __future__ import annotations

import numpy as np

from retorque.robots.state import State
from retorque.tasks.scoop.diffusion_network import DiffusionNetwork
from retorque.tasks.scoop.pose_numbers import numbers_pose
from retorque.tasks.scoop.pose_recorder import ScoopEyes
from retorque.work.array import Array

CARRIED_OUT = 8
"""Poses of a chunk that are followed before the next is asked for."""
MOST_STEP = 0.03
"""A pose is never further than this from the one before [m]."""


class DiffusionPoses:
    """Poses at 10 Hz from a network.

    Args:
        network: what predicts.
        eyes: what it sees.
        seed: of the noise that is denoised.
    """

    def __init__(self, network: DiffusionNetwork, eyes: ScoopEyes, seed: int):
        self.network, self.eyes, self.seed = network, eyes, seed

    def reset(self, state: State) -> None:
        self._rng = np.random.default_rng([self.seed, 44])
        self._chunk, self._next = np.zeros((0, 0, 9)), CARRIED_OUT
        self._before = np.zeros((0, 9))

    def pose(self, state: State) -> tuple[Array, Array]:
        seen = self.eyes.look(state)
        if self._next >= CARRIED_OUT:
            self._chunk, self._next = self.network(seen, self._rng), 0
        before = self._before if len(self._before) else seen[:, :9]
        asked = self._chunk[:, self._next]
        asked = np.where(np.isfinite(asked).all(axis=-1, keepdims=True), asked, before)
        way = asked[:, :3] - before[:, :3]
        far = np.linalg.norm(way, axis=-1, keepdims=True)
        asked[:, :3] = before[:, :3] + way * np.minimum(1.0, MOST_STEP / np.maximum(far, 1e-9))
        self._before, self._next = asked, self._next + 1
        return numbers_pose(asked)
