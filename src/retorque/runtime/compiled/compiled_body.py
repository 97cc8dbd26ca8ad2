"""The bias torques of a whole batch in one call of the compiled core: what a controller's tick costs in a bench."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

import numpy as np

from retorque.control.joint_impedance import JointImpedance
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.runtime.compiled.build import build, load
from retorque.runtime.compiled.constants import robot_constants
from retorque.runtime.compiled.structures import filled
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class CompiledBody(RigidBody):
    """A rigid body whose bias comes from the core; everything else is Pinocchio's, as before.

    Args:
        robot: the tree; its base is fixed.
        library: the compiled core; default: built where it is not there yet.
    """

    def __init__(self, robot: Robot, library: Path | None = None):
        super().__init__(robot)
        self._bias = load(library or build()).rt_bias
        self._bias.restype = None
        self._constants, self._arrays = filled("rt_robot", robot_constants(robot))
        self._at = ctypes.c_void_p(ctypes.addressof(self._constants))
        self._lend(())

    def bias(self, q: Array, qd: Array) -> Array:
        if q.shape != qd.shape:
            return super().bias(q, qd)
        if q.shape[:-1] != self._rows[0].shape[:-1]:
            self._lend(q.shape[:-1])
        self._rows[0], self._rows[1] = q, qd
        self._bias(self._at, self._rows[0].size // self.nv, *self._places)
        return self._rows[2].copy()

    def _lend(self, lead: tuple[int, ...]) -> None:
        """Rows (3, ..., n) for positions, velocities and torques, whose places are looked up once."""
        self._rows = np.zeros((3, *lead, self.nv))
        self._places = tuple(ctypes.c_void_p(row.ctypes.data) for row in self._rows)


def compiled_impedance(controller: JointImpedance) -> JointImpedance:
    """The controller with its bias in the compiled core, where there is a compiler; otherwise as it was."""
    with contextlib.suppress(RetorqueError):  # the adapters say why they stay in NumPy
        controller.body = CompiledBody(controller.body.robot)
    return controller
