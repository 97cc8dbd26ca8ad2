"""The recursive adapters' own estimate of contact, behind the interface of the others."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.external_torque import ExternalTorque, TorqueEstimate
from retorque.work.array import Array


class KnowsContact(Protocol):
    """An adapter that tells contact from mismatch."""

    robot: Robot
    trials: int

    def external_torque(self, time: float) -> Array:
        """External torque on the joints at a time, (trials, n) [N·m]."""


class AdapterTorque(ExternalTorque):
    """What an adapter holds for external; the loop feeds the adapter, this only reads.

    Args:
        adapter: in the loop, with an estimate of external torque (`recursive-contact`).
        deviation: how far its estimate is off [N·m].
    """

    def __init__(self, adapter: KnowsContact, deviation: float = 0.3):
        self.adapter = adapter
        shape = (adapter.trials, adapter.robot.n)
        self._variance = np.full(shape, deviation**2)
        self._resting = np.zeros(shape)

    def reset(self, state: State) -> None:
        pass

    def update(self, state: State, tree: CompiledTree) -> TorqueEstimate:
        torque = np.reshape(self.adapter.external_torque(state.time), self._variance.shape)
        return TorqueEstimate(torque, self._variance, self._resting)
