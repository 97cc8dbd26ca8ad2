"""The parameter object as numbers between -1 and 1, joint by joint: what `physpred` predicts."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.physics.parameters import PAIRS, Parameters
from retorque.physics.selection import DRAWN, DRAWN_OF_JOINT, Selection
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PER_JOINT = 5 + 2 * len(PAIRS)
"""Mass scale, centre (3), armature of the joint's own link, and two directions of each pair."""
PAYLOAD = 4
"""Mass and centre (3)."""


class PhysicalRange:
    """A `Selection` of everything, each number over the middle and half width of its range."""

    def __init__(self, context: Context):
        robot = context.robot
        if len(robot.moving_links) != robot.n:
            raise RetorqueError(f"robot '{robot.name}' has links without a joint of their own; physpred needs one each")
        self._selection = chosen = Selection(robot, DRAWN, profile=context.profile)
        if chosen.size != robot.n * PER_JOINT + PAYLOAD:
            raise RetorqueError(f"robot '{robot.name}' has links without mass; physpred needs one in each")
        self._middle = 0.5 * (chosen.lower + chosen.upper)
        self._half = np.maximum(0.5 * (chosen.upper - chosen.lower), 1e-9)

    def encode(self, parameters: Parameters) -> tuple[Array, Array]:
        """Numbers of each joint (..., n, 19) and of the payload (..., 4)."""
        blocks = self._selection.split((self._selection.to_vector(parameters) - self._middle) / self._half)
        joint, payload = blocks[: len(DRAWN_OF_JOINT)], blocks[len(DRAWN_OF_JOINT) :]
        return np.concatenate(joint, axis=-1), np.concatenate([part[..., 0, :] for part in payload], axis=-1)

    def decode(self, joint: Array, payload: Array) -> Parameters:
        """The parameters of such numbers, kept inside the profile."""
        lead = payload.shape[:-1]
        edges = np.cumsum([block.width for block in self._selection.blocks[: len(DRAWN_OF_JOINT)]])[:-1]
        parts = [part.reshape(*lead, -1) for part in np.split(joint, edges, axis=-1)]
        vector = np.concatenate([*parts, payload], axis=-1)
        return self._selection.apply(np.clip(vector, -1.0, 1.0) * self._half + self._middle)
