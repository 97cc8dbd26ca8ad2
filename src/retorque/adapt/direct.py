"""No correction: what happens without Retorque."""

from __future__ import annotations

from retorque.loop.adapter import Adapter
from retorque.robots.state import State
from retorque.work.array import Array


class Direct(Adapter):
    """Sends the nominal torque as it is."""

    def correct(self, state: State, nominal_torque: Array) -> Array:
        return nominal_torque
