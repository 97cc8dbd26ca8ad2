"""The ball's place on the plate from a colour picture: segmentation by hue, then ray and plane (TAM, E.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from retorque.tasks.ball.plate import BALL_RADIUS, PLATE
from retorque.tasks.ball.plate_calibration import PlateCalibration
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class BallColour:
    """What counts as the ball in hue, saturation and value."""

    hue: float = 0.04
    """In the middle of its range, 0 to 1 around the circle: red."""
    hue_range: float = 0.06
    """To either side."""
    saturation: float = 0.4
    """Least."""
    value: float = 0.15
    """Least."""
    least: int = 60
    """Pixels of the smallest patch that can be the ball."""


class BallCamera:
    """Reads the ball's place off pictures of a calibrated camera.

    Args:
        calibration: where the camera stands.
        colour: of the ball.
    """

    def __init__(self, calibration: PlateCalibration, colour: BallColour | None = None):
        self.calibration, self.colour = calibration, colour or BallColour()
        self._rays: Array | None = None

    def place(self, picture: Array) -> Array:
        """(2,) on the plate [m], from (height, width, 3) of bytes; not a number where no ball is on the plate.

        A ball's outline is a circular cone of rays: its axis, the mean of the rays by their solid angles, goes through
        the centre, which the centroid of the patch of pixels does not quite (the paper takes that).
        """
        nowhere = np.full(2, np.nan)
        if picture.ndim != 3 or picture.shape[-1] != 3:
            return nowhere
        patches, count = ndimage.label(self._coloured(picture))
        if count == 0:
            return nowhere
        sizes = np.bincount(patches.ravel())[1:]
        if sizes.max() < self.colour.least:
            return nowhere
        patch = ndimage.binary_fill_holes(patches == 1 + int(np.argmax(sizes)))
        rays = self._rays_of(picture.shape[:2])[patch]
        length = np.linalg.norm(rays, axis=-1, keepdims=True)
        axis = np.sum(rays / length**4, axis=0)  # unit rays by the cube of their cosine
        found = self.calibration.on_plane(axis, BALL_RADIUS)
        return found if np.all(np.abs(found) < PLATE[0]) else nowhere

    def _coloured(self, picture: Array) -> Array:
        """(height, width) which pixels have the ball's colour."""
        c = self.colour
        rgb = picture.astype(float) / 255.0
        most, least = rgb.max(axis=-1), rgb.min(axis=-1)
        spread = most - least
        red, green, blue = np.moveaxis(rgb, -1, 0)
        safe = np.maximum(spread, 1e-9)
        sixth = np.where(
            most == red,
            (green - blue) / safe,
            np.where(most == green, 2.0 + (blue - red) / safe, 4.0 + (red - green) / safe),
        )
        away = np.abs(np.mod(sixth / 6.0 - c.hue + 0.5, 1.0) - 0.5)
        return (away < c.hue_range) & (spread > c.saturation * most) & (most > c.value)

    def _rays_of(self, shape: tuple[int, int]) -> Array:
        """(height, width, 3) the direction of every pixel in the camera's frame, one long ahead."""
        if self._rays is None or self._rays.shape[:2] != shape:
            rows, columns = np.mgrid[: shape[0], : shape[1]] + 0.5
            pixels = np.stack([columns, rows, np.ones(shape)], axis=-1)
            self._rays = np.linalg.solve(self.calibration.intrinsics, pixels.reshape(-1, 3).T).T.reshape(*shape, 3)
        return self._rays
