"""What the rivals that feed back have in common: settings of their own, and a bound on each joint's correction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.robots.robot import Robot
from retorque.work.array import Array

UNKNOWN_LIMIT = 1e3
"""Stands for a torque limit that is not known [N·m]."""
STEADY = 0.2
"""Largest feedback gain [1/s] times control period [s]: gains tuned at 1 kHz are lowered to it at slower rates."""


@dataclass(frozen=True, kw_only=True)
class BoundedSettings:
    """Settings of every bounded rival."""

    share: float = 0.4
    """Largest correction, as a share of the joint's torque limit."""


Own = TypeVar("Own", bound=BoundedSettings)


class Bounded(Adapter, Generic[Own]):
    """An adapter without a model of what is hidden, whose correction is clamped joint by joint.

    Args:
        settings: its own; default: as tuned.
    """

    periods = (5e-4, 0.01)

    def __init__(
        self,
        robot: Robot,
        trials: int,
        timestep: float = 1e-3,
        seed: int = 0,
        *,
        settings: Own | None = None,
    ):
        super().__init__(robot, trials, timestep, seed)
        self.settings: Own = settings if settings is not None else self.usual_settings(timestep)
        self.most: Array = self.settings.share * np.minimum(robot.torque_limit, UNKNOWN_LIMIT)
        """(n,) largest correction [N·m]."""
        self._make()

    @classmethod
    def usual_settings(cls, timestep: float) -> Own:
        """The settings that were found best on tuning seeds, for a control period [s]."""
        raise NotImplementedError

    def _make(self) -> None:
        """Make whatever the rival needs beside its bound."""

    def _rows(self) -> Array:
        """A number for each joint of each trial, (trials, n)."""
        return np.zeros((self.trials, self.robot.n))
