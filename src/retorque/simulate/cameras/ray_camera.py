"""A small colour camera on a robot by ray casts: shaded pictures of all trials, without a graphics driver."""

from __future__ import annotations

import mujoco
import numpy as np

from retorque.simulate.cameras.camera import GROUND, PLACED, ROBOT
from retorque.simulate.cameras.mounted_camera import OPENING, Mounting
from retorque.simulate.target import Target
from retorque.work.array import Array

FACES = np.array(
    [
        [0.85, 0.20, 0.15],
        [0.95, 0.60, 0.10],
        [0.15, 0.45, 0.85],
        [0.55, 0.25, 0.70],
        [0.20, 0.65, 0.30],
        [0.9, 0.9, 0.9],
    ]
)
"""Colours of a free thing's sides that look along +x, -x, +y, -y, +z, -z of its own axes."""
LIGHT = np.array([0.30, 0.25, 0.92])
"""Where the light comes from: a unit vector in the world."""
AMBIENT = 0.5
"""Share of the light that reaches every side."""
RAYS = 2
"""Along each side of a pixel."""
FARTHEST = 3.0
"""What is beyond is black [m]."""


class RayCamera:
    """What a camera on each robot sees, with every shape in one colour and a free thing's six sides in six.

    Args:
        target: what is looked at.
        mounting: where the camera sits; its picture is small, since each pixel costs `RAYS`² rays.
    """

    def __init__(self, target: Target, mounting: Mounting):
        self.mounting, self._target = mounting, target
        model, self._data = target.snapshot()
        tall = np.tan(np.deg2rad(0.5 * OPENING))
        rows, columns = np.mgrid[: mounting.height * RAYS, : mounting.width * RAYS] + 0.5
        down = (2.0 * rows / (mounting.height * RAYS) - 1.0) * tall
        right = (2.0 * columns / (mounting.width * RAYS) - 1.0) * tall * mounting.width / mounting.height
        rays = np.stack([right, down, np.ones_like(right)], axis=-1) @ mounting.rotation
        self._rays = (rays / np.linalg.norm(rays, axis=-1, keepdims=True)).reshape(-1, 3)  # in the mount's axes
        self._colour = np.array([_colour(model, geom) for geom in range(model.ngeom)])
        self._free = np.array([_is_free(model, int(body)) for body in model.geom_bodyid])
        count = len(self._rays)
        self._shape, self._distance = np.empty(count, dtype=np.int32), np.empty(count)
        self._normal = np.empty(3 * count)

    def pictures(self) -> Array:
        """(trials, height, width, 3) of bytes."""
        m = self.mounting
        seen = np.stack([self._picture(trial) for trial in range(self._target.trials)])
        pixels = seen.reshape(-1, m.height, RAYS, m.width, RAYS, 3).mean(axis=(2, 4))
        return np.rint(255.0 * np.clip(pixels, 0.0, 1.0)).astype(np.uint8)

    def _picture(self, trial: int) -> Array:
        """Colours (rays, 3) within 0 and 1."""
        model, data = self._target.snapshot(trial, self._data)
        site = data.site(self.mounting.frame)
        turn = site.xmat.reshape(3, 3)
        eye = site.xpos + turn @ np.array(self.mounting.eye)
        rays = self._rays @ turn.T
        self._shape[:] = -1
        mujoco.mj_multiRay(
            model, data, eye, rays.ravel(), None, 1, -1, self._shape, self._distance, self._normal, len(rays), FARTHEST
        )
        hit = self._shape >= 0
        shape, normal = self._shape[hit], self._normal.reshape(-1, 3)[hit]
        colour = self._colour[shape]
        for geom in np.flatnonzero(self._free):
            own = shape == geom
            if own.any():
                inside = normal[own] @ data.geom_xmat[geom].reshape(3, 3)
                axis = np.argmax(np.abs(inside), axis=-1)
                colour[own] = FACES[2 * axis + (inside[np.arange(len(axis)), axis] < 0.0)]
        picture = np.zeros((len(rays), 3))
        lit = AMBIENT + (1.0 - AMBIENT) * np.maximum(normal @ LIGHT, 0.0)
        picture[hit] = colour * lit[:, None]
        return picture


def _colour(model: mujoco.MjModel, geom: int) -> tuple[float, ...]:
    """Of a shape that is not free."""
    if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
        return (GROUND, GROUND, GROUND)
    return (PLACED if model.body_mocapid[model.geom_bodyid[geom]] >= 0 else ROBOT)[:3]


def _is_free(model: mujoco.MjModel, body: int) -> bool:
    first = int(model.body_jntadr[body])
    return first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE
