"""Where a camera stands above the plate, from pictures of the plate's checkerboard (TAM, E.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from retorque.tasks.ball.plate import PLATE
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

TILES = 4
"""Along each side of the plate."""
FRAMES = 8
"""Pictures of the empty plate that are stacked."""
SMOOTH = 1.5
"""Blur before corners are looked for [pixels]."""
WORST = 1.0
"""Corners farther than this from where the fitted plate has them are not the checkerboard's [pixels]."""


@dataclass(frozen=True)
class PlateCalibration:
    """From the plate's frame to the camera's: x_camera = rotation x_plate + translation."""

    intrinsics: Array
    """(3, 3) [pixels]"""
    rotation: Array
    """(3, 3), camera's axes right, down and ahead."""
    translation: Array
    """(3,) [m]"""
    error: float
    """RMS distance of the corners from where the plate has them [pixels]."""

    def on_plane(self, rays: Array, height: float) -> Array:
        """Where rays (..., 3) of the camera's frame meet the plane of that height above the plate, (..., 2) [m]."""
        eye = -self.rotation.T @ self.translation
        ahead = rays @ self.rotation
        with np.errstate(divide="ignore", invalid="ignore"):
            way = (height - eye[2]) / ahead[..., 2]
            meet = eye[:2] + way[..., None] * ahead[..., :2]
        return np.where((way > 0.0)[..., None], meet, np.nan)


def calibrate(frames: Sequence[Array], intrinsics: Array) -> PlateCalibration:
    """The camera's pose from pictures (height, width, 3) of the empty plate, whose x axis points up in them.

    The median of the pictures is searched for the checkerboard's inner corners; a homography from the plate to the
    pixels is fitted to them and taken apart with the camera's intrinsics (3, 3).
    """
    if len(frames) < 1 or any(frame.shape != frames[0].shape or frame.ndim != 3 for frame in frames):
        raise RetorqueError(f"calibration needs pictures of one size, {FRAMES} of them; take them again")
    grey = np.median(np.stack(frames), axis=0).mean(axis=-1)
    found = _corners(grey, (TILES - 1) ** 2)
    rows = np.argsort(found[:, 1]).reshape(TILES - 1, TILES - 1)
    ordered = np.concatenate([found[row[np.argsort(found[row, 0])]] for row in rows])
    step = 2.0 * PLATE[0] / TILES
    at = step * (np.arange(TILES - 1) - 0.5 * (TILES - 2))
    # Rows of the picture go against the plate's x axis, columns against its y axis.
    plate = np.stack([np.repeat(-at, TILES - 1), np.tile(-at, TILES - 1)], axis=-1)
    map_ = _homography(plate, ordered)
    part = np.linalg.solve(intrinsics, map_)
    part = part / (0.5 * (np.linalg.norm(part[:, 0]) + np.linalg.norm(part[:, 1])))
    part = part if part[2, 2] > 0.0 else -part  # the plate is in front of the camera
    turn = np.stack([part[:, 0], part[:, 1], np.cross(part[:, 0], part[:, 1])], axis=1)
    u, _, v = np.linalg.svd(turn)
    rotation, translation = u @ v, part[:, 2]
    seen = (plate @ rotation[:, :2].T + translation) @ intrinsics.T
    off = np.linalg.norm(seen[:, :2] / seen[:, 2:] - ordered, axis=-1)
    if not off.max() < WORST:
        raise RetorqueError(
            "the plate's checkerboard is not seen as it should be; take the ball off and light the plate"
        )
    return PlateCalibration(np.array(intrinsics), rotation, translation, float(np.sqrt(np.mean(off**2))))


def _corners(grey: Array, count: int) -> Array:
    """The strongest saddles of a picture (count, 2), column and row [pixels], pixel centres at halves."""
    smooth = ndimage.gaussian_filter(grey, SMOOTH)
    xx, yy, xy = (ndimage.gaussian_filter(grey, SMOOTH, order=o) for o in ((0, 2), (2, 0), (1, 1)))
    saddle = xy * xy - xx * yy
    peaks = (saddle == ndimage.maximum_filter(saddle, size=15)) & (saddle > 0.0)
    peaks[:3], peaks[-3:], peaks[:, :3], peaks[:, -3:] = False, False, False, False
    rows, columns = np.nonzero(peaks)
    best = np.argsort(saddle[rows, columns])[::-1][:count]
    if len(best) < count or saddle[rows[best[-1]], columns[best[-1]]] < 0.05 * saddle[rows[best[0]], columns[best[0]]]:
        raise RetorqueError("no checkerboard is seen on the plate; take the ball off and light the plate")
    return np.array([_saddle_point(smooth, int(rows[k]), int(columns[k])) for k in best])


def _saddle_point(smooth: Array, row: int, column: int) -> Array:
    """The stationary point of a quadratic fitted around a pixel, column and row [pixels]."""
    dy, dx = np.mgrid[-2:3, -2:3].reshape(2, -1)
    a = np.stack([np.ones(25), dx, dy, dx * dx, dx * dy, dy * dy], axis=-1)
    _, bx, by, xx, xy, yy = np.linalg.lstsq(a, smooth[row - 2 : row + 3, column - 2 : column + 3].ravel(), rcond=None)[
        0
    ]
    move = np.linalg.solve(np.array([[2.0 * xx, xy], [xy, 2.0 * yy]]), -np.array([bx, by]))
    return np.array([column, row]) + 0.5 + np.clip(move, -1.5, 1.5)


def _homography(plate: Array, pixels: Array) -> Array:
    """(3, 3) from points of the plate (k, 2) [m] to pixels (k, 2), by the direct linear transform."""
    scale = np.array([100.0, 100.0])  # so that all columns are of one size
    rows = []
    for (x, y), (u, v) in zip(plate, pixels / scale, strict=True):
        rows.append([x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, -u])
        rows.append([0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, -v])
    found = np.linalg.svd(np.array(rows))[2][-1].reshape(3, 3)
    return np.diag([*scale, 1.0]) @ found
