"""What every identification method returns at least: a model that predicts torques, and how well it does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retorque.logs.motion import Motion, MotionSource
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class TorqueScore:
    """Torque prediction errors over a motion, for each joint."""

    rmse: Array
    """(n,) [N·m]"""
    relative: Array
    """(n,) norm of the residual over norm of the torque."""
    samples: int


@dataclass(frozen=True, kw_only=True)
class TorqueModel(ABC):
    """An inverse-dynamics model learnt from a log: an `Estimate` with physical parameters, or a `BlackBox` without."""

    robot: Robot
    """The robot as its card describes it, before identification."""
    method: str
    samples: int
    """Samples that were learnt from."""
    details: dict[str, Any] = field(default_factory=dict)
    """Further figures of the method (solver status, seconds, condition number)."""
    note: str = ""
    """In a sentence, what this kind of model does not have."""

    @abstractmethod
    def torque(self, motion: Motion) -> Array:
        """Predicted torque of a motion, (samples, n) [N·m]."""

    def residual(self, motion: Motion) -> Array:
        """(samples, n) measured minus predicted torque [N·m]."""
        return motion.torque - self.torque(motion)

    def score(self, data: MotionSource) -> TorqueScore:
        """How well the model predicts the torques of a motion, read in pieces."""
        squared: Array | float = 0.0
        torque: Array | float = 0.0
        samples = 0
        for piece in data.chunks():
            squared = squared + np.sum(np.square(self.residual(piece)), axis=0)
            torque = torque + np.sum(np.square(piece.torque), axis=0)
            samples += len(piece)
        total = np.maximum(np.asarray(torque), 1e-300)
        return TorqueScore(
            rmse=np.sqrt(np.asarray(squared) / max(samples, 1)),
            relative=np.sqrt(np.asarray(squared) / total),
            samples=samples,
        )
