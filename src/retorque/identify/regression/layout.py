"""The order of everything unknown about a robot's inverse dynamics: ten numbers a link, armatures, friction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import Selection
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True)
class Layout:
    """A selection as a linear regression has it: inertial (10 x links), armature (n), friction (n x count)."""

    robot: Robot
    friction: Friction

    def __post_init__(self) -> None:
        if self.robot.floating:
            raise RetorqueError(f"'{self.robot.name}' has a free base; identification needs a fixed one")

    @cached_property
    def selection(self) -> Selection:
        """What is free; names and units are its own."""
        base = Parameters.ideal(self.robot, friction=self.friction)
        return Selection(self.robot, ("inertial", "armature", "friction"), base)

    @property
    def links(self) -> int:
        return len(self.robot.moving_links)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.selection.size

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each parameter: "Izz link3", "armature joint2", "viscous joint2"."""
        return self.selection.names

    @property
    def units(self) -> tuple[str, ...]:
        return self.selection.units

    @cached_property
    def nonnegative(self) -> Array:
        """(size,) which parameters are bounded below by zero on their own (a link's by its pseudo-inertia instead)."""
        return self.selection.lower >= 0.0

    def unpack(self, vector: Array) -> tuple[Array, Array, Array]:
        """Inertial (links, 10), armature (n,) and friction (n, count) of a vector, or of its errors."""
        inertial, armature, friction = self.selection.split(vector)
        return inertial, armature[..., 0], friction

    @cached_property
    def card(self) -> Array:
        """(size,) what the robot's card says, without friction."""
        return self.selection.to_vector(self.selection.base)

    @cached_property
    def columns(self) -> tuple[Array, ...]:
        """For each joint the parameters that its torque can depend on: the links beyond it, its own motor."""
        robot, base = self.robot, 10 * self.links
        moving = [link.name for link in robot.moving_links]
        parent = {link.name: link.parent for link in robot.links}
        found = []
        for j, own in enumerate(moving):
            beyond = []
            for index, name in enumerate(moving):
                while name not in (own, "world"):
                    name = parent[name]
                if name == own:
                    beyond.append(index)
            inertial = np.concatenate([10 * i + np.arange(10) for i in beyond])
            motor = base + j
            coefficients = base + robot.n + j * self.friction.count + np.arange(self.friction.count)
            found.append(np.concatenate([inertial, [motor], coefficients]).astype(int))
        return tuple(found)

    def rows(self, body: RigidBody, motion: Motion) -> list[Array]:
        """For each joint its regressor rows (samples, len(columns[j])): torque_j = rows[j] @ vector[columns[j]]."""
        inertial = body.regressor(motion.q, motion.qd, motion.qdd)
        features = self.friction.features(motion.qd, motion.slip)
        out = []
        for j, columns in enumerate(self.columns):
            linked = columns[columns < 10 * self.links]
            out.append(np.concatenate([inertial[:, j, linked], motion.qdd[:, j, None], features[:, j]], axis=1))
        return out

    def torque(
        self, body: RigidBody, vector: Array, q: Array, qd: Array, qdd: Array, slip: Array | None = None
    ) -> Array:
        """Joint torque (..., n) of any vector, links that cannot exist included (rigid-body engines refuse those)."""
        inertial, armature, coefficients = self.unpack(vector)
        out = body.regressor(q, qd, qdd) @ inertial.ravel()
        return out + armature * np.asarray(qdd) + self.friction.torque(qd, coefficients, slip)

    def matrix(self, body: RigidBody, motion: Motion) -> Array:
        """The dense regressor (samples, n, size)."""
        out = np.zeros((len(motion), self.robot.n, self.size))
        for j, (columns, rows) in enumerate(zip(self.columns, self.rows(body, motion), strict=True)):
            out[:, j, columns] = rows
        return out
