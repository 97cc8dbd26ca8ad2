"""What corrects a nominal torque so that the real robot moves as the ideal one would."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class Adapter(ABC):
    """One adapter on one robot or on a batch of trials. It never sees the policy.

    A tick is `observe`, then `correct`. `learn` holds the work that need not be done within the tick: the loop calls it
    every `learn_every` ticks, on hardware outside the control thread.

    Args:
        robot: the ideal robot.
        trials: how many robots it serves at once; arrays are (trials, n).
        timestep: control period [s].
        seed: of whatever the adapter draws at random.
    """

    learn_every = 0
    """Ticks between calls of `learn`; 0: never."""

    def __init__(self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0):
        self.robot = robot
        self.trials = trials
        self.timestep = timestep
        self.seed = seed
        self.health = np.zeros(trials, dtype=np.int64)
        """(trials,) `Health` codes that the adapter itself sets."""

    def reset(self) -> None:
        """Forget everything learnt from the robot."""

    def carry(self) -> None:
        """Another controller takes over; what was learnt stays."""

    def observe(self, state: State) -> None:
        """Take in what the robot reports at this tick; a row (n,) that is not finite is no data."""

    def learn(self) -> None:
        """Update the estimate from what was observed."""

    @abstractmethod
    def correct(self, state: State, nominal_torque: Array) -> Array:
        """The torque to send instead of the nominal one, (trials, n) [N·m]."""
