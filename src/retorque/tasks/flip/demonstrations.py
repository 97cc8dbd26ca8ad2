"""Scripted demonstrations on the ideal robot: what the flip policy is cloned from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import JointAction
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.cameras.ray_camera import RayCamera
from retorque.tasks.flip.flip_task import HAND_VIEW, FlipTask
from retorque.tasks.flip.scripted_flip import ScriptedFlip
from retorque.tasks.policy_task import Robots, play
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FPS = 20
"""Frames a second."""
AT_ONCE = 20
"""Episodes simulated together."""


@dataclass(frozen=True)
class Episode:
    """One demonstration, a row a frame."""

    joints: Array
    """(frames, n) [rad]"""
    cube: Array
    """(frames, 7) position [m] and quaternion (w, x, y, z)."""
    action: Array
    """(frames, n + 1) joint targets [rad] and the distance between the fingers [m]."""
    pictures: Array | None = None
    """(frames, height, width, 3) of bytes, where a camera looked on."""


class RecordedFlip(ScriptedFlip):
    """The script, which keeps what it sees and what it does; with `eyes`, pictures too."""

    eyes: RayCamera | None = None

    def reset(self, state: State) -> None:
        super().reset(state)
        self.frames: list[tuple[Array, Array, Array]] = []
        self.pictures: list[Array] = []

    def act(self, state: State) -> JointAction:
        action = super().act(state)
        assert state.objects is not None and action.gripper is not None
        told = np.concatenate([action.position, action.gripper[:, None]], axis=-1)
        self.frames.append((state.position.copy(), state.objects[:, 0, :7].copy(), told))
        if self.eyes is not None:
            self.pictures.append(self.eyes.pictures())
        return action


def record_demonstrations(robot: Robot, count: int, seed: int, pictures: bool = False) -> list[Episode]:
    """Successful episodes among `count` that were played; none at all is refused.

    Args:
        robot: the ideal robot.
        count: how many to play.
        seed: of the cubes' places.
        pictures: whether the camera on the hand looks on.
    """
    found: list[Episode] = []
    whole = FlipTask(robot, count, seed)
    for start in range(0, count, AT_ONCE):
        task = whole.part(slice(start, start + AT_ONCE))
        script, target = RecordedFlip(robot), task.target(Robots.ideal(task.robot, task.trials))
        script.eyes = RayCamera(target, HAND_VIEW) if pictures else None
        scores = play(task, target, script)
        joints, cube, action = (np.stack(part) for part in zip(*script.frames, strict=True))
        seen = np.stack(script.pictures) if pictures else None
        found += [
            Episode(joints[:, k], cube[:, k], action[:, k], None if seen is None else seen[:, k])
            for k in np.flatnonzero(scores > 0.5)
        ]
    if not found:
        raise RetorqueError(
            f"none of {count} scripted flips succeeded with robot '{robot.name}'; nothing to learn from"
        )
    return found
