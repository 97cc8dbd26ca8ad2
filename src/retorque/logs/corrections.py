"""What a mapping file says of a log's units: clocks, scales, signs, offsets, motors coupled to joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.logs.columns import Columns
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
"""Seconds in each unit of time."""


@dataclass(frozen=True, kw_only=True)
class Corrections:
    """From recorded numbers to SI units at the joints."""

    time: float
    """Seconds in one unit of the clock."""
    position: Array
    """(n,) rad or m in one unit."""
    offset: Array
    """(n,) added to positions [rad or m]."""
    velocity: Array
    """(n,) rad/s or m/s in one unit."""
    effort: Array
    """(n,) N·m, N or A in one unit."""
    coupling: Array | None
    """(n, n) joint position = coupling @ motor position."""

    @classmethod
    def of(cls, columns: Columns | None, robot: Robot) -> Corrections:
        """What a mapping says; nothing is changed without one."""
        said = columns or Columns()
        if said.time_unit not in SECONDS:
            raise unknown("unit of time", said.time_unit, SECONDS)
        clock = SECONDS[said.time_unit] if said.time_scale is None else float(said.time_scale)
        if not clock > 0.0:
            raise RetorqueError(f"time_scale must be above zero, got {clock}")
        degree = np.where(
            [joint.kind == "prismatic" for joint in robot.joints], 1.0, np.pi / 180.0 if said.degrees else 1.0
        )
        position = degree * _each(said.position_scale, 1.0, "position_scale", robot)
        coupling = None
        if said.coupling is not None:
            coupling = np.array(said.coupling, dtype=float)
            if coupling.shape != (robot.n, robot.n) or abs(np.linalg.det(coupling)) < 1e-9:
                raise RetorqueError(f"coupling must be a regular matrix of {robot.n} rows and columns")
        velocity = position if said.velocity_scale is None else _each(said.velocity_scale, 1.0, "velocity_scale", robot)
        return cls(
            time=clock,
            position=position,
            offset=_each(said.position_offset, 0.0, "position_offset", robot),
            velocity=velocity,
            effort=_each(said.effort_scale, 1.0, "effort_scale", robot),
            coupling=coupling,
        )

    def apply(
        self, time: Array, position: Array, velocity: Array | None, effort: Array
    ) -> tuple[Array, Array, Array | None, Array]:
        """Time (rows,) [s]; position, velocity and effort (rows, n) at the joints.

        Power is the same on both sides of a coupling: motor efforts u do u . dm = f . (C dm), so f = C^-T u.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            time, position, effort = self.time * time, self.position * position, self.effort * effort
            velocity = None if velocity is None else self.velocity * velocity
            if self.coupling is not None:
                position = position @ self.coupling.T
                velocity = None if velocity is None else velocity @ self.coupling.T
                effort = effort @ np.linalg.inv(self.coupling)
            return time, position + self.offset, velocity, effort


def _each(value: tuple[float, ...] | float | None, otherwise: float, name: str, robot: Robot) -> Array:
    """(n,) one number a joint, given as one for all, one for each, or not at all."""
    try:
        found = np.broadcast_to(np.asarray(otherwise if value is None else value, dtype=float), (robot.n,))
    except (TypeError, ValueError) as error:
        raise RetorqueError(f"{name} must be one number, or {robot.n}: one for each joint of '{robot.name}'") from error
    if not np.all(np.isfinite(found)) or (name != "position_offset" and np.any(found == 0.0)):
        raise RetorqueError(f"{name} must be finite numbers, none of them zero")
    return found
