"""A model that only predicts: no masses, no friction coefficients, nothing to export."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retorque.identify.methods.torque_model import TorqueModel
from retorque.logs.motion import Motion
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class BlackBox(TorqueModel):
    """A learnt function from motion to torque, without physical parameters."""

    predictor: Callable[[Motion], Array]
    """Torque of a motion, (samples, n) [N·m]."""

    def torque(self, motion: Motion) -> Array:
        """Predicted torque of a motion, (samples, n) [N·m]."""
        return self.predictor(motion)
