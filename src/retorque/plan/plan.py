"""What a planner hands to the control loop: states, inputs and feedback gains from a time on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.work.array import Array


@dataclass(frozen=True, slots=True)
class Plan:
    """An input for each of H steps, with the feedback that holds it; never changed once made."""

    start: float
    """Time of the first state [s]."""
    timestep: float
    """[s]"""
    states: Array
    """(H+1, states)"""
    inputs: Array
    """(H, inputs) [N·m]"""
    gains: Array
    """(H, inputs, 2 nv) by which an input answers to a change of state."""
    cost: float
    """By the objective it was made for."""
    iterations: int = 0
    """That it took."""
    version: int = 0
    """Counts up from 1; 0 is no plan."""
    parameters: int = 0
    """Version of the parameters that it was made with."""

    @property
    def horizon(self) -> int:
        """Steps."""
        return len(self.inputs)

    @property
    def end(self) -> float:
        """Time of the last state [s]."""
        return self.start + self.horizon * self.timestep

    def index(self, time: float) -> int:
        """The step that a time falls into, from 0 to H-1."""
        k = int(np.floor((time - self.start) / self.timestep + 1e-6))
        return min(max(k, 0), self.horizon - 1)

    def shifted(self, time: float, horizon: int) -> tuple[Array, Array, Array]:
        """States, inputs and gains from another time on (algorithm 2): what is over is dropped, the end is repeated.

        Args:
            time: of the new first state [s].
            horizon: steps.
        """
        first = int(np.round((time - self.start) / self.timestep))
        rows = np.clip(first + np.arange(horizon), 0, self.horizon - 1)
        over = first + np.arange(horizon) >= self.horizon
        inputs, gains = self.inputs[rows].copy(), self.gains[rows].copy()
        inputs[over] = 0.0  # nothing was planned there
        states = self.states[np.clip(first + np.arange(horizon + 1), 0, self.horizon)]
        return states.copy(), inputs, gains
