"""A calibrated camera that a robot carries, and a checkerboard painted on what it looks at."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from retorque.simulate.cameras.camera import Camera, View
from retorque.simulate.target import Target
from retorque.work.array import Array

OPENING = 45.0
"""Vertical opening angle, MuJoCo's default [deg]."""
LIGHT, DARK = (0.92, 0.92, 0.92, 1.0), (0.10, 0.10, 0.10, 1.0)
"""Colours of a checkerboard's tiles."""


@dataclass(frozen=True, kw_only=True)
class Mounting:
    """Where a camera sits on the robot."""

    frame: str
    """The robot's frame that carries it."""
    eye: tuple[float, float, float]
    """In that frame [m]."""
    at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """What it looks at, in that frame [m]."""
    up: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """What is up in its picture, in that frame."""
    width: int = 320
    """[pixels]"""
    height: int = 240
    """[pixels]"""

    @property
    def intrinsics(self) -> Array:
        """(3, 3) from a point in the camera's frame (x right, y down, z ahead) to a pixel."""
        focal = 0.5 * self.height / np.tan(np.deg2rad(0.5 * OPENING))
        return np.array([[focal, 0.0, self.width / 2.0], [0.0, focal, self.height / 2.0], [0.0, 0.0, 1.0]])

    @property
    def rotation(self) -> Array:
        """(3, 3) whose rows are the camera's axes (right, down, ahead) in the frame that carries it."""
        ahead = np.array(self.at) - np.array(self.eye)
        ahead = ahead / np.linalg.norm(ahead)
        right = np.cross(ahead, np.array(self.up))
        right = right / np.linalg.norm(right)
        return np.stack([right, np.cross(ahead, right), ahead])


@dataclass(frozen=True, kw_only=True)
class Checkerboard:
    """Tiles on a plane z = 0 of a frame, around its origin."""

    frame: str
    """The robot's frame."""
    tiles: int
    """Along each side."""
    side: float
    """Of the whole board [m]."""


class MountedCamera(Camera):
    """Renders what a camera on the robot sees of one trial; used as a context.

    Args:
        target: what is looked at.
        mounting: where the camera sits.
        board: painted on the robot, where there is one.
    """

    def __init__(self, target: Target, mounting: Mounting, board: Checkerboard | None = None):
        super().__init__(target, View(width=mounting.width, height=mounting.height))
        self.mounting, self.board = mounting, board
        self._options.sitegroup[:] = 0  # MuJoCo would mark frames by small spheres

    def _arrange(self, data: mujoco.MjData) -> None:
        site = data.site(self.mounting.frame)
        turn = site.xmat.reshape(3, 3)
        _, down, ahead = self.mounting.rotation
        for eye in self._scene.camera:  # both eyes of a stereo pair are the same one
            eye.pos[:] = site.xpos + turn @ np.array(self.mounting.eye)
            eye.forward[:], eye.up[:] = turn @ ahead, -turn @ down
            eye.frustum_center = 0.0
        if self.board is not None:
            self._paint_board(data, self.board)

    def _paint_board(self, data: mujoco.MjData, board: Checkerboard) -> None:
        site = data.site(board.frame)
        turn = site.xmat.reshape(3, 3)
        half = 0.5 * board.side / board.tiles
        size = np.array([half, half, 1e-4])
        for k in range(board.tiles**2):
            row, column = divmod(k, board.tiles)
            x, y = (half * (2 * i + 1) - 0.5 * board.side for i in (row, column))
            colour = np.array(LIGHT if (row + column) % 2 else DARK, dtype=np.float32)
            tile = self._scene.geoms[self._scene.ngeom]
            place = site.xpos + turn @ np.array([x, y, 1e-4])
            mujoco.mjv_initGeom(tile, mujoco.mjtGeom.mjGEOM_BOX, size, place, turn.ravel(), colour)
            self._scene.ngeom += 1
