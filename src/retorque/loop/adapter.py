"""What corrects a nominal torque so that the real robot moves as the ideal one would."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from retorque.loop.belief import Belief
from retorque.loop.memory import collect, restore
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

MEMORY, MEMORY_FORMAT = "an adapter's memory", 1
TURNS = "turns"
"""In a file of memory: ticks so far, which say when `learn` is due."""


class Adapter(ABC):
    """One adapter on one robot (n,) or on a batch of trials (trials, n). It never sees the policy.

    A tick is `observe`, then `correct`. `learn` holds the work that need not be done within the tick: it may run in
    another thread every `learn_every` ticks; what it returns, `adopt` hands to the tick.

    Args:
        robot: the ideal robot.
        trials: how many robots it serves at once.
        timestep: control period [s].
        seed: of whatever the adapter draws at random.
    """

    periods: tuple[float, float] = (1e-4, 0.02)
    """The shortest and the longest control period that it serves [s]."""
    learn_every = 0
    """Ticks between calls of `learn`; 0: never."""
    settings_type: type | None = None
    """The dataclass of its settings, where it has any."""
    engine: str = "NumPy"
    """What computes it: NumPy and why, or the compiled core."""
    remembered: tuple[str, ...] = ()
    """Attributes that hold what was learnt or is being learnt: what `save` writes and `load` brings back."""
    _turns = 0

    def __init__(self, robot: Robot, trials: int, timestep: float = 1e-3, seed: int = 0):
        short, long = self.periods
        if not short * (1.0 - 1e-6) <= timestep <= long * (1.0 + 1e-6):
            only = f"at {1.0 / short:.0f} Hz" if short == long else f"between {1.0 / long:.0f} and {1.0 / short:.0f} Hz"
            raise RetorqueError(f"{type(self).__name__} runs {only}, not at {1.0 / timestep:.0f} Hz")
        if robot.floating:
            raise RetorqueError(f"robot '{robot.name}' has a free base; adapters serve robots on a fixed one")
        self.robot = robot
        self.trials = trials
        self.timestep = timestep
        self.seed = seed
        self.health: Array = np.zeros(trials, dtype=np.int64)
        """(trials,) `Health` codes that the adapter itself sets."""

    def reset(self) -> None:
        """Forget everything learnt from the robot."""

    def carry(self) -> None:
        """Another controller takes over; what was learnt stays."""

    def resume(self) -> None:
        """The robot goes on later and perhaps elsewhere: what was learnt stays, where it lasts; reports begin anew."""
        self.reset()

    def observe(self, state: State) -> None:
        """Take in what the robot reports at this tick; a row (n,) that is not finite is no data."""

    def due(self) -> bool:
        """Whether `learn` is to be called after this tick's `observe`; asked once a tick."""
        due = self.learn_every > 0 and self._turns % self.learn_every == 0
        self._turns += 1
        return due

    def learn(self) -> Belief | None:
        """Update the estimate from what was observed; a new belief where there is one."""
        return None

    def adopt(self, belief: Belief) -> None:
        """Correct by this belief from now on."""

    def save(self, path: str | Path) -> None:
        """Write all that was learnt so far, whole or not at all."""
        arrays = {**collect(self), TURNS: np.array(self._turns)}
        save_tensors(path, arrays, MEMORY, MEMORY_FORMAT, self._identity())

    def load(self, path: str | Path, *, mid_run: bool = False) -> None:
        """Begin with what `save` wrote, in this process or another one.

        Args:
            path: the file.
            mid_run: go on to the bit, the last reports included, as if there had been no break: right only where the
                robot's next report follows the last one before `save`. Else as `resume` says.
        """
        arrays, header = load_tensors(path, MEMORY, MEMORY_FORMAT)
        self._check_identity(path, header)
        if TURNS not in arrays or arrays[TURNS].shape != () or arrays[TURNS].dtype.kind != "i":
            raise RetorqueError(f"'{path}' does not say at which tick it was saved; learn it anew")
        restore(self, arrays)
        self._turns = int(arrays[TURNS])
        self._restored()
        if not mid_run:
            self.resume()

    def _check_identity(self, path: str | Path, header: Mapping[str, Any]) -> None:
        for name, value in self._identity().items():
            if header.get(name) != value:
                raise RetorqueError(f"'{path}' was learnt with {name} {header.get(name)}, not {value}; learn it anew")

    def _restored(self) -> None:
        """What was remembered is back in its place."""

    def _identity(self) -> dict[str, Any]:
        """What must be the same where it is loaded."""
        return {
            "adapter": type(self).__name__,
            "robot": self.robot.name,  # many arms call their joints alike
            "joints": list(self.robot.joint_names),
            "trials": self.trials,
            "timestep": self.timestep,
        }

    @abstractmethod
    def correct(self, state: State, nominal_torque: Array) -> Array:
        """The torque to send instead of the nominal one, (trials, n) [N·m]."""
