"""What a bench needs beside its adapters, in C: the controller's bias torques, and steps of robots without a scene."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.runtime.compiled.build import build, load
from retorque.runtime.compiled.constants import robot_constants
from retorque.runtime.compiled.structures import filled
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def _at(array: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class CompiledBody(RigidBody):
    """Rigid-body algebra whose bias torques of a batch come from the core.

    Args:
        robot: the tree.
        library: the compiled core.
    """

    def __init__(self, robot: Robot, library: Path):
        super().__init__(robot)
        self._constants, self._kept = filled("rt_robot", robot_constants(robot))
        self._calls = load(library)

    def bias(self, q: Array, qd: Array) -> Array:
        q, qd = np.ascontiguousarray(q, dtype=float), np.ascontiguousarray(qd, dtype=float)
        if q.shape != qd.shape:
            return super().bias(q, qd)
        out = np.empty_like(q)
        robot = ctypes.c_void_p(ctypes.addressof(self._constants))
        self._calls.rt_bias_all(robot, q.size // self.robot.n, _at(q), _at(qd), _at(out))
        return out


class CompiledSteps:
    """Stands in for MuJoCo's batch behind a target whose robots touch nothing: the same integrator, in C.

    Args:
        target: robots without scene, effects or joint limits.
        library: the compiled core.
    """

    def __init__(self, target: Target, library: Path):
        self._target, self._batch = target, target._world.batch
        self._constants, self._kept = filled("rt_robot", robot_constants(target.robot))
        self._step = load(library).rt_step_all
        self._step.restype = None
        self._parameters: object = None
        # Made once: an address costs as much as a step.
        arrays = (target._applied, target._damping, target.position, target.velocity)
        self._rows = np.array([array.strides[0] // array.itemsize for array in arrays], dtype=np.intc)
        self._arrays = [_at(x) for x in (self._rows, *arrays)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)  # everything but stepping is still MuJoCo's

    def step(self, running: Array | None = None) -> None:
        """One step of all robots, or of those that are still running."""
        target = self._target
        if self._parameters is not target.parameters:
            self._parameters = target.parameters
            self._inertial = np.ascontiguousarray(target.parameters.total_inertial(target.robot))
            self._armature = np.ascontiguousarray(target.parameters.armature)
        which = None if running is None else np.ascontiguousarray(running, dtype=np.int64)
        self._step(
            ctypes.c_void_p(ctypes.addressof(self._constants)),
            target.trials if which is None else len(which),
            None if which is None else _at(which),
            ctypes.c_double(target.timestep),
            _at(self._inertial),
            _at(self._armature),
            *self._arrays,
        )


def fast_body(robot: Robot) -> RigidBody:
    """The robot's algebra with compiled bias torques; without a compiler, Pinocchio's alone."""
    try:
        return CompiledBody(robot, build())
    except RetorqueError:
        return RigidBody(robot)


def step_in_c(target: Target) -> bool:
    """Let a target's robots be stepped by the core, where nothing but their joints moves them; whether it is so."""
    arrays = (target.position, target.velocity, target._applied, target._damping)
    simple = not target.effects and target._substeps == 1 and target.servo is None and not target.robot.floating
    whole = all(
        array.shape == (target.trials, target.robot.n) and array.strides[1] == array.itemsize for array in arrays
    )
    bare = target._world.model.nv == target.robot.n and not target._world.model.jnt_limited.any()
    if not (simple and whole and bare):
        return False
    try:
        target._world.batch = CompiledSteps(target, build())
    except RetorqueError:
        return False
    return True
