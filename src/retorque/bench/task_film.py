"""Pictures of a task while it is played: the first trial with its goal, as a strip or an animation."""

from __future__ import annotations

import io
from pathlib import Path

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from retorque.physics.rigid_body import RigidBody
from retorque.simulate.cameras.camera import Camera, View
from retorque.simulate.target import Target
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.policy_task import PolicyTask
from retorque.tasks.push.box_task import HALF, BoxTask, box_pose
from retorque.work.array import Array
from retorque.work.files import write_whole

VIEWS = {
    "push": View(at=(0.42, 0.0, 0.26), distance=1.5, azimuth=145.0, elevation=-30.0),
    "flip": View(at=(0.40, 0.0, 0.26), distance=1.2, azimuth=115.0, elevation=-14.0),
    "ball": View(at=(0.52, 0.0, 0.66), distance=1.05, azimuth=140.0, elevation=-32.0),
}
"""From where each task is seen."""
STILLS = {"push": (1.0, 2.0, 4.0, 8.0, 15.0), "flip": (1.2, 2.4, 3.6, 4.8, 6.0), "ball": (3.0, 6.0, 9.0, 12.0, 15.0)}
"""When the pictures of a strip are taken: most boxes arrive early [s]."""
FRAMES = 5.0
"""Pictures a second of an animation."""
GOAL, FLAT = (0.10, 0.62, 0.36, 1.0), 0.002
"""Colour of the mark where the box or the ball should be, and half of its height [m]."""


class Film:
    """Takes pictures of the first trial now and then.

    Args:
        task: what is played.
        target: who plays it.
        file: what is to be drawn in the end; None: nothing.
    """

    def __init__(self, task: PolicyTask, target: Target, file: Path | None):
        self._camera = None if file is None else GoalCamera(task, target)
        still = file is not None and file.suffix.lower() == ".png"
        moments = STILLS[task.name] if still else np.arange(1, round(FRAMES * task.duration) + 1) / FRAMES
        self._at = {round(moment / target.timestep) - 1: moment for moment in moments}
        self._taken: list[tuple[float, Array]] = []

    def look(self, tick: int) -> None:
        """A tick is about to begin."""
        if self._camera is not None and tick in self._at:
            self._taken.append((self._at[tick], self._camera.picture()))

    def end(self) -> list[tuple[float, Array]]:
        """The pictures, each with its time [s]; the camera is put away."""
        if self._camera is not None:
            self._camera.__exit__(None, None, None)
        return self._taken


class GoalCamera(Camera):
    """Draws the goal of the first trial into the scene.

    Args:
        task: whose goal it is.
        target: what is looked at.
    """

    def __init__(self, task: PolicyTask, target: Target):
        super().__init__(target, VIEWS[task.name])
        model, _ = target.snapshot()
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.7, 0.35  # the ground is seen at a low angle
        self._task, self._body = task, RigidBody(task.robot)

    def _arrange(self, data: mujoco.MjData) -> None:
        task = self._task
        if isinstance(task, BoxTask):
            pose = box_pose(task.goal[0])
            turn = np.empty(9)
            mujoco.mju_quat2Mat(turn, pose[3:])
            self._mark(mujoco.mjtGeom.mjGEOM_BOX, np.array([*HALF[:2], FLAT]), pose[:3] * [1.0, 1.0, 0.0], turn)
        elif isinstance(task, BallTask):
            middle, turn = self._body.frame_pose(task.robot.frame("plate"), self.target.position[0])
            place = middle + turn @ np.array([*task.goals.current[0], 0.0])
            self._mark(mujoco.mjtGeom.mjGEOM_CYLINDER, np.array([0.01, 0.01, FLAT]), place, turn.ravel())

    def _mark(self, kind: mujoco.mjtGeom, size: Array, place: Array, turn: Array) -> None:
        scene = self._scene
        mujoco.mjv_initGeom(scene.geoms[scene.ngeom], kind, size, place, turn, np.array(GOAL, dtype=np.float32))
        scene.ngeom += 1


def draw(path: Path, films: dict[str, tuple[str, list[tuple[float, Array]]]]) -> None:
    """Write the strip or the animation whole.

    Args:
        path: a .png or a .gif.
        films: by method, how it ended and the pictures with their times.
    """
    titles = {"ideal": "ideal robot", "direct": "real robot, uncorrected"}
    labelled = [
        [_labelled(image, f"{titles.get(method, f'real robot, {method}')}: {end}", moment) for moment, image in taken]
        for method, (end, taken) in films.items()
    ]
    data = io.BytesIO()
    if path.suffix.lower() == ".png":
        strip = np.concatenate([np.concatenate(taken, axis=1) for taken in labelled], axis=0)
        Image.fromarray(strip).save(data, "PNG")
    else:
        frames = [Image.fromarray(np.concatenate(three, axis=1)) for three in zip(*labelled, strict=True)]
        small = [frame.quantize(64) for frame in frames]
        small[0].save(data, "GIF", save_all=True, append_images=small[1:], duration=round(1000.0 / FRAMES), loop=0)
    write_whole(path, data.getvalue())


def _labelled(image: Array, text: str, moment: float) -> Array:
    """The picture with a white band above it that says who, how it ended, and when this was."""
    band = np.full((24, *image.shape[1:]), 255, dtype=np.uint8)
    picture = Image.fromarray(np.concatenate([band, image]))
    pen, font = ImageDraw.Draw(picture), ImageFont.load_default(size=14)
    pen.text((8, 4), text, fill=(30, 40, 55), font=font)
    pen.text((image.shape[1] - 8, 4), f"{moment:.1f} s", fill=(30, 40, 55), font=font, anchor="ra")
    return np.asarray(picture)
