"""Recording of demonstrations: what is seen, x_des, x_ref and the felt wrench, ten times a second."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.compliance import Compliance
from retorque.robots.state import State
from retorque.tasks.scoop.pose_numbers import pose_numbers
from retorque.tasks.scoop.pose_source import PoseSource
from retorque.tasks.scoop.scoop_frames import COLUMNS, Frames
from retorque.tasks.scoop.scoop_task import SEEN, ScoopTask
from retorque.work.array import Array


class ScoopEyes:
    """What a policy sees: the spoon's pose by the encoders, and the ball from above, not how high it lies.

    Args:
        task: robots and trials.
        seed: of what the camera gets wrong.
    """

    def __init__(self, task: ScoopTask, seed: int):
        self._tree = task.tree(task.settings.trials)
        self._rng = np.random.default_rng([seed, 43])

    def look(self, state: State) -> Array:
        """(trials, 11) pose numbers and the ball's place [m]."""
        assert state.objects is not None
        self._tree.at(state)
        ball = state.objects[:, 0, :2] + SEEN * self._rng.standard_normal((len(state.objects), 2))
        return np.concatenate([pose_numbers(self._tree.position[:, 0], self._tree.rotation[:, 0]), ball], axis=-1)


class PoseRecorder:
    """A source of poses that keeps what it says, what was seen, and what compliance makes of it.

    Args:
        source: who leads.
        controller: whose references and felt wrenches are kept.
        eyes: what is seen.
    """

    def __init__(self, source: PoseSource, controller: Compliance, eyes: ScoopEyes):
        self.source, self.controller, self.eyes = source, controller, eyes

    def reset(self, state: State) -> None:
        self.source.reset(state)
        self._kept: dict[str, list[Array]] = {name: [] for name in COLUMNS}

    def pose(self, state: State) -> tuple[Array, Array]:
        position, rotation = self.source.pose(state)
        masses, felt = self.controller.admittance, self.controller.felt
        now = {
            "seen": self.eyes.look(state),
            "x_des": pose_numbers(position, rotation),
            "x_ref": pose_numbers(masses.position[:, 0], masses.rotation[:, 0]),
            "wrench": np.zeros((len(position), 6)) if felt is None else felt.wrench[:, 0].copy(),
        }
        for name, value in now.items():
            self._kept[name].append(value)
        return position, rotation

    def episodes(self) -> list[Frames]:
        """One of each trial.

        A pose is to be reached one frame after it was asked for, so the reference of a frame is that of the next.
        """
        kept = {name: np.stack(value, axis=1) for name, value in self._kept.items()}
        reference = kept["x_ref"]
        kept["x_ref"] = np.concatenate([reference[:, 1:], reference[:, -1:]], axis=1)
        return [{name: value[trial] for name, value in kept.items()} for trial in range(len(reference))]
