"""What stands around a robot: floors, walls, boards, boxes, balls and cylinders, with masses and contact parameters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.rotation import to_quaternion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

Moves = Literal["free", "placed", "mounted"]


@dataclass(frozen=True, kw_only=True)
class Object:
    """One rigid thing; its origin is its centre of mass.

    With a mass it moves freely; without, it stays where it is placed; on a `mount` it is part of the robot. Its contact
    parameters hold against the robot; between two things the larger friction counts.
    """

    shape: ClassVar[str] = ""

    name: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """In the world, or in the mount's frame [m]."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation, (w, x, y, z)."""
    mass: float = 0.0
    """[kg]; zero of a thing that nothing moves."""
    inertia: tuple[float, float, float] | None = None
    """Principal moments about the centre [kg·m²]; default: of a uniform solid."""
    mount: str = ""
    """The robot's frame that carries it (`end_effector`, say)."""
    friction: float = 0.8
    """Sliding friction coefficient."""
    torsional_friction: float = 0.0
    """Radius over which friction resists spinning about the contact's normal [m]."""
    rolling_friction: float = 0.0
    """Radius over which friction resists rolling [m]."""
    stiffness: float | None = None
    """Of each contact point [N/m]; default: MuJoCo's soft contact of `solref` and `solimp`."""
    damping: float | None = None
    """That goes with a stiffness [N·s/m]; default: 10 ms x stiffness."""
    solref: tuple[float, float] = (0.02, 1.0)
    """MuJoCo's time constant [s] and damping ratio of contact."""
    solimp: tuple[float, float, float, float, float] = (0.9, 0.95, 0.001, 0.5, 2.0)
    """MuJoCo's impedance of contact."""

    @property
    def moves(self) -> Moves:
        """Free to move, placed by hand, or mounted on the robot."""
        return "mounted" if self.mount else "free" if self.mass > 0.0 else "placed"

    @property
    def geom_size(self) -> tuple[float, ...]:
        """As MuJoCo has it [m]."""
        raise NotImplementedError

    @property
    def geom_position(self) -> tuple[float, float, float]:
        """Of the shape's centre in the thing's frame [m]."""
        return (0.0, 0.0, 0.0)

    def solid_inertia(self) -> tuple[float, float, float]:
        """Principal moments of the uniform solid [kg·m²]."""
        raise NotImplementedError

    @property
    def dimensions(self) -> int:
        """MuJoCo's `condim`: which motions friction resists."""
        if self.rolling_friction > 0.0:
            return 6
        if self.torsional_friction > 0.0:
            return 4
        return 3 if self.friction > 0.0 else 1

    def check(self) -> None:
        """Refuse what cannot be."""
        what = f"the {type(self).__name__.lower()} '{self.name}'"
        pose = np.array([*self.position, *self.quaternion], dtype=float)
        if not np.all(np.isfinite(pose)) or abs(np.linalg.norm(pose[3:]) - 1.0) > 1e-6:
            raise RetorqueError(f"{what} needs a finite position in m and a unit quaternion (w, x, y, z)")
        size = [value for value in self.geom_size if value != 0.0] if self.shape == "plane" else self.geom_size
        if not np.all(np.isfinite(size)) or not min(size) > 0.0:
            raise RetorqueError(f"{what} has the size {list(self.geom_size)}; every size is a positive number in m")
        for key in ("mass", "friction", "torsional_friction", "rolling_friction"):
            if not (np.isfinite(getattr(self, key)) and getattr(self, key) >= 0.0):
                raise RetorqueError(f"the {key} of {what} is {getattr(self, key)}; it must be zero or more")
        for key in ("stiffness", "damping"):
            value = getattr(self, key)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise RetorqueError(f"the {key} of {what} is {value}; it must be positive")
        if self.damping is not None and self.stiffness is None:
            raise RetorqueError(f"{what} has a damping but no stiffness; give both, or solref and solimp")
        if self.mass > 0.0:
            moments = np.sort(self.inertia if self.inertia is not None else self.solid_inertia())
            if not moments[0] > 0.0 or moments[0] + moments[1] < moments[2] * (1.0 - 1e-6):
                raise RetorqueError(f"the inertia {list(moments)} of {what} is no body's; correct it")


@dataclass(frozen=True, kw_only=True)
class Floor(Object):
    """The plane z = 0 of its pose; it has no edge."""

    shape: ClassVar[str] = "plane"

    name: str = "floor"

    @property
    def geom_size(self) -> tuple[float, ...]:
        return (0.0, 0.0, 1.0)

    def check(self) -> None:
        if self.mass != 0.0 or self.mount:
            raise RetorqueError(f"the floor '{self.name}' cannot move; give it neither mass nor mount")
        super().check()


@dataclass(frozen=True, kw_only=True)
class Box(Object):
    """A cuboid."""

    shape: ClassVar[str] = "box"

    size: tuple[float, float, float]
    """Half sizes along x, y and z [m]."""

    @property
    def geom_size(self) -> tuple[float, ...]:
        return self.size

    def solid_inertia(self) -> tuple[float, float, float]:
        x, y, z = (value**2 for value in self.size)
        return (self.mass / 3.0 * (y + z), self.mass / 3.0 * (x + z), self.mass / 3.0 * (x + y))


@dataclass(frozen=True, kw_only=True)
class Finger(Box):
    """A cuboid on the robot that slides away from where it is closed, driven by a motor of its own.

    The robot's card already carries its weight: give it next to none.
    """

    mass: float = 1e-3
    """[kg]"""
    axis: tuple[float, float, float]
    """Along which it opens, in the mount's frame."""
    opens: float = 0.04
    """How far; it begins there [m]."""
    force: float = 70.0
    """Largest [N]."""
    speed: float = 0.05
    """In the air [m/s]."""

    def check(self) -> None:
        if not self.mount:
            raise RetorqueError(f"the finger '{self.name}' is on no robot; name the frame that it is mounted on")
        values = np.array([*self.axis, self.opens, self.force, self.speed], dtype=float)
        if not np.all(np.isfinite(values)) or not (np.linalg.norm(values[:3]) > 0.0 and values[3:].min() > 0.0):
            raise RetorqueError(f"the finger '{self.name}' needs an axis, and an opening, force and speed above zero")
        super().check()


@dataclass(frozen=True, kw_only=True)
class Board(Box):
    """A flat cuboid: a table, a whiteboard, a plate in a hand."""

    name: str = "board"
    size: tuple[float, float, float] = (0.3, 0.3, 0.01)
    """Half sizes along x, y and z [m]."""


@dataclass(frozen=True, kw_only=True)
class Wall(Object):
    """A cuboid whose pose is that of its front face: the face's centre, with the x axis pointing out of the wall."""

    shape: ClassVar[str] = "box"

    name: str = "wall"
    size: tuple[float, float, float] = (0.05, 0.3, 0.3)
    """Half sizes: thickness, width and height [m]."""

    @property
    def geom_size(self) -> tuple[float, ...]:
        return self.size

    @property
    def geom_position(self) -> tuple[float, float, float]:
        return (-self.size[0], 0.0, 0.0)

    def check(self) -> None:
        if self.mass != 0.0:
            raise RetorqueError(f"the wall '{self.name}' cannot move freely; use a Box, or leave out its mass")
        super().check()

    @staticmethod
    def facing(point: Array, normal: Array) -> Array:
        """The pose (..., 7) of a wall whose face goes through a point (..., 3), its normal (..., 3) out of the wall."""
        point, normal = np.broadcast_arrays(np.asarray(point, dtype=float), np.asarray(normal, dtype=float))
        poses = np.empty((*point.shape[:-1], 7))
        for index in np.ndindex(point.shape[:-1]):
            x = normal[index] / np.linalg.norm(normal[index])
            y = np.cross(np.eye(3)[np.argmin(np.abs(x))], x)
            y /= np.linalg.norm(y)
            poses[index] = [*point[index], *to_quaternion(np.stack([x, y, np.cross(x, y)], axis=1))]
        return poses


@dataclass(frozen=True, kw_only=True)
class Ball(Object):
    """A sphere."""

    shape: ClassVar[str] = "sphere"

    name: str = "ball"
    radius: float
    """[m]"""

    @property
    def geom_size(self) -> tuple[float, ...]:
        return (self.radius,)

    def solid_inertia(self) -> tuple[float, float, float]:
        moment = 0.4 * self.mass * self.radius**2
        return (moment, moment, moment)


@dataclass(frozen=True, kw_only=True)
class Cylinder(Object):
    """A cylinder along its z axis."""

    shape: ClassVar[str] = "cylinder"

    radius: float
    """[m]"""
    half_length: float
    """[m]"""

    @property
    def geom_size(self) -> tuple[float, ...]:
        return (self.radius, self.half_length)

    def solid_inertia(self) -> tuple[float, float, float]:
        across = self.mass * (self.radius**2 / 4.0 + self.half_length**2 / 3.0)
        return (across, across, self.mass * self.radius**2 / 2.0)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The things around a robot."""

    objects: tuple[Object, ...] | list[Object] = ()
    self_contact: bool = False
    """Whether the robot's own links touch each other."""
    impratio: float = 10.0
    """How much harder friction is than contact in the normal direction (MuJoCo's name for it); more slips less."""

    def check(self, robot: Robot) -> None:
        """Refuse a scene that this robot cannot stand in."""
        links = {link.name for link in robot.links}
        for name, count in Counter(thing.name for thing in self.objects).items():
            if count > 1 or name in links or name in ("", "robot", "world"):
                raise RetorqueError(
                    f"'{name}' cannot name a thing of the scene; give each a name of its own that no link has"
                )
        for thing in self.objects:
            thing.check()
            if thing.mount:
                robot.frame(thing.mount)
