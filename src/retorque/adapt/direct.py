"""No correction: what happens without Retorque."""

from __future__ import annotations

import numpy as np

from retorque.loop.adapter import Adapter
from retorque.robots.state import State

Array = np.ndarray


class Direct(Adapter):
    """Sends the nominal torque as it is."""

    def correct(self, state: State, nominal_torque: Array) -> Array:
        return nominal_torque
