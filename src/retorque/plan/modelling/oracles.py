"""Modellers that are told the truth: at once, or some samples late, which bounds what any other can reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.model import Model, Modeller
from retorque.plan.modelling.window import Samples
from retorque.work.array import Array


class OracleModeller(Modeller):
    """The true parameters, `late` samples ago.

    Args:
        free: what is unknown to the others.
        truth: the parameters (size,) now.
        late: samples.
    """

    def __init__(self, free: FreeParameters, truth: Callable[[], Array], late: int = 0):
        self.truth, self.late = truth, late
        self.name = "delayed-oracle" if late else "oracle"
        super().__init__(free)

    def reset(self) -> None:
        super().reset()
        self._past: deque[Array] = deque(maxlen=self.late + 1)

    def update(self, samples: Samples) -> Model:
        self._past.append(np.array(self.truth()))
        p = self._past[0]
        changed = not np.array_equal(p, self.model.p)
        none = np.zeros(self.free.size)
        return self._publish(
            replace(self.model, p=p, deviation=none, time=samples.time, confidence=1.0, changed=changed)
        )
