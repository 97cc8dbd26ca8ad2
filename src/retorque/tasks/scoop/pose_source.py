"""Desired poses at 10 Hz, from a script, a person or a network, and what turns them into commands at every tick."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.rotation_steps import rotate_by, rotation_between
from retorque.robots.state import State
from retorque.work.array import Array

PERIOD = 0.1
"""Between two desired poses [s]."""


class PoseSource(Protocol):
    """Says where the tool should be next."""

    def reset(self, state: State) -> None:
        """A run begins here."""

    def pose(self, state: State) -> tuple[Array, Array]:
        """Position (trials, 3) [m] and rotation (trials, 3, 3) to be at in one `PERIOD`."""


class InterpolatedPoses:
    """Moves from each desired pose to the next in a straight line; a policy that acts every control period.

    Args:
        source: of the poses.
        position: (trials, 3) where the tool begins [m].
        rotation: (trials, 3, 3)
        stiffness: (1, 6, 6) of the one site.
        damping: (1, 6, 6)
    """

    period = 0.0

    def __init__(self, source: PoseSource, position: Array, rotation: Array, stiffness: Array, damping: Array):
        self.source = source
        self._begin = np.array(position), np.array(rotation)
        trials = len(position)
        self._stiffness = np.broadcast_to(stiffness, (trials, 1, 6, 6)).copy()
        self._damping = np.broadcast_to(damping, (trials, 1, 6, 6)).copy()

    def reset(self, state: State) -> None:
        self._from = self._to = self._begin
        self._velocity = np.zeros((len(self._begin[0]), 1, 6))
        self._at = -1
        self._began = state.time
        self.source.reset(state)

    def act(self, state: State) -> ComplianceAction:
        steps = (state.time - self._began) / PERIOD + 1e-6
        if int(steps) != self._at:
            self._at = int(steps)
            self._from, self._to = self._to, self.source.pose(state)
            self._velocity[:, 0, :3] = (self._to[0] - self._from[0]) / PERIOD
            for turn, a, b in zip(self._velocity[:, 0, 3:], self._from[1], self._to[1], strict=True):
                rotation_between(a, b, np.zeros(3), turn)
            self._velocity[:, 0, 3:] /= PERIOD
        share = steps - self._at
        position = self._from[0] + share * (self._to[0] - self._from[0])
        rotation = np.empty_like(self._from[1])
        for new, a, turn in zip(rotation, self._from[1], self._velocity[:, 0, 3:], strict=True):
            rotate_by(share * PERIOD * turn, a, new)
        return ComplianceAction(
            position[:, None], rotation[:, None], self._stiffness, self._velocity, self._damping, None, state.time
        )
