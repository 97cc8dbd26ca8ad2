"""A camera that looks at a simulated robot: pictures rendered by MuJoCo without a screen."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

import mujoco
import numpy as np

from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

ROBOT, THING, PLACED, GROUND = (0.62, 0.68, 0.76, 1.0), (0.92, 0.38, 0.20, 1.0), (0.80, 0.84, 0.88, 1.0), 0.94
"""Colours of the robot's shapes, of what moves, of what stands, and the ground's grey."""

SKY = (246, 248, 251)
"""What is behind everything."""


@dataclass(frozen=True, kw_only=True)
class View:
    """Where a camera is."""

    at: tuple[float, float, float] = (0.4, 0.0, 0.2)
    """What it looks at [m]."""
    distance: float = 1.3
    """[m]"""
    azimuth: float = 130.0
    """About the vertical [deg]."""
    elevation: float = -22.0
    """Above the horizon where negative [deg]."""
    width: int = 360
    """[pixels]"""
    height: int = 300
    """[pixels]"""


class Camera:
    """Renders one trial of a target; used as a context, which frees the graphics memory.

    Args:
        target: what is looked at.
        view: from where.
    """

    def __init__(self, target: Target, view: View | None = None):
        self.target, self.view = target, view or View()
        try:
            from mujoco.egl import GLContext

            self._context = GLContext(self.view.width, self.view.height)
            self._context.make_current()
        except Exception as error:  # what a missing driver raises depends on the driver
            raise RetorqueError(f"pictures need EGL (Debian: libegl1), which cannot be used here ({error})") from error
        model, _ = target.snapshot()
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, self.view.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, self.view.height)
        _paint(model)
        self._scene = mujoco.MjvScene(model, maxgeom=2000)
        self._device = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._device)
        self._camera, self._options = mujoco.MjvCamera(), mujoco.MjvOption()
        self._camera.lookat[:] = self.view.at
        self._camera.distance, self._camera.azimuth = self.view.distance, self.view.azimuth
        self._camera.elevation = self.view.elevation
        self._options.geomgroup[:] = 1

    def __enter__(self) -> Camera:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._device.free()
        self._context.free()

    def picture(self, trial: int = 0) -> Array:
        """What it sees now, (height, width, 3) of bytes."""
        model, data = self.target.snapshot(trial)
        every = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(model, data, self._options, mujoco.MjvPerturb(), self._camera, every, self._scene)
        self._arrange(data)
        image = np.zeros((self.view.height, self.view.width, 3), dtype=np.uint8)
        depth = np.zeros((self.view.height, self.view.width), dtype=np.float32)
        area = mujoco.MjrRect(0, 0, self.view.width, self.view.height)
        mujoco.mjr_render(area, self._scene, self._device)
        mujoco.mjr_readPixels(image, depth, area, self._device)
        image[depth >= 1.0] = SKY  # nothing is there
        return image[::-1]

    def _arrange(self, data: mujoco.MjData) -> None:
        """What a preset changes about the scene before it is drawn."""


def _paint(model: mujoco.MjModel) -> None:
    """Colours by what a shape belongs to."""
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        if model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_PLANE:
            model.geom_rgba[geom] = (GROUND, GROUND, GROUND, 1.0)
        elif model.body_mocapid[body] >= 0:
            model.geom_rgba[geom] = PLACED
        else:
            root = int(model.body_rootid[body])
            first = int(model.body_jntadr[root])
            free = first >= 0 and model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE
            model.geom_rgba[geom] = THING if free and model.body_jntnum[root] and root == body else ROBOT
    model.vis.headlight.ambient[:] = 0.45
    model.vis.headlight.diffuse[:] = 0.5
