"""Scripted demonstrations on the ideal robot: what the flip policy is cloned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import JointAction
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.flip.flip_task import FlipTask
from retorque.tasks.flip.scripted_flip import ScriptedFlip
from retorque.tasks.policy_task import Robots, play
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FPS = 20
"""Frames a second."""
AT_ONCE = 20
"""Episodes simulated together."""
CLOSED = 0.0
"""Gripper command: closed throughout."""


@dataclass(frozen=True)
class Episode:
    """One demonstration, a row a frame."""

    joints: Array
    """(frames, n) [rad]"""
    cube: Array
    """(frames, 7) position [m] and quaternion (w, x, y, z)."""
    action: Array
    """(frames, n + 1) joint targets [rad] and the gripper's."""


class RecordedFlip(ScriptedFlip):
    """The script, which keeps what it sees and what it does."""

    def reset(self, state: State) -> None:
        super().reset(state)
        self.frames: list[tuple[Array, Array, Array]] = []

    def act(self, state: State) -> JointAction:
        action = super().act(state)
        assert state.objects is not None
        self.frames.append((state.position.copy(), state.objects[:, 0, :7].copy(), action.position.copy()))
        return action


def record_demonstrations(robot: Robot, count: int, seed: int) -> list[Episode]:
    """Successful episodes among `count` that were played; none at all is refused."""
    found: list[Episode] = []
    whole = FlipTask(robot, count, seed)
    for start in range(0, count, AT_ONCE):
        task = whole.part(slice(start, start + AT_ONCE))
        script = RecordedFlip(robot)
        scores = play(task, task.target(Robots.ideal(robot, task.trials)), script)
        joints, cube, action = (np.stack(part) for part in zip(*script.frames, strict=True))
        gripper = np.full((*action.shape[:-1], 1), CLOSED)
        told = np.concatenate([action, gripper], axis=-1)
        found += [Episode(joints[:, k], cube[:, k], told[:, k]) for k in np.flatnonzero(scores > 0.5)]
    if not found:
        raise RetorqueError(
            f"none of {count} scripted flips succeeded with robot '{robot.name}'; nothing to learn from"
        )
    return found
