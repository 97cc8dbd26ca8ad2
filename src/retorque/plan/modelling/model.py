"""What the modelling worker hands to the planner, and the interface of every way to get it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.window import Samples
from retorque.work.array import Array


@dataclass(frozen=True, slots=True)
class Model:
    """The parameters to plan with; never changed once made."""

    p: Array
    """(size,)"""
    deviation: Array
    """(size,) standard deviation of each; not a number where a policy knows none."""
    time: float
    """Of the newest sample it rests on [s]."""
    confidence: float = 0.0
    """0 to 1."""
    exploring: bool = False
    """Whether the plan should excite the parameters instead of doing the task."""
    changed: bool = False
    """Whether the robot was found to have changed."""
    window: int = 0
    """Samples it rests on."""
    frozen: tuple[str, ...] = ()
    """Parameters that the window says nothing about."""
    version: int = 0
    offset: Array | float = 0.0
    """(2 n,) by which sensors seem to be off, where that is fitted."""


class Modeller(ABC):
    """A way to keep the parameters up to date while the robot runs."""

    name = ""
    longest = 101
    """Samples that it looks at, at most."""

    def __init__(self, free: FreeParameters):
        self.free = free
        self.reset()

    def reset(self) -> None:
        """A run begins: only the first guess is known."""
        self.version = 0
        self.model = Model(self.free.guess, np.full(self.free.size, np.nan), -np.inf)

    @abstractmethod
    def update(self, samples: Samples) -> Model:
        """The model after the newest samples."""

    def _publish(self, model: Model) -> Model:
        self.version += 1
        self.model = replace(model, version=self.version)
        return self.model
