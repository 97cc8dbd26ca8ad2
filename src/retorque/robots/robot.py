"""What a robot is: a tree of links, one joint each, with inertias, limits and the frames tasks care about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from retorque.robots.losses import Drive, JointFriction, Uncertainty
from retorque.robots.profile import Profile
from retorque.work.array import Array, read_only
from retorque.work.errors import RetorqueError, unknown

Kind = Literal["revolute", "prismatic", "free"]
Shape = Literal["box", "sphere", "capsule", "cylinder"]


@dataclass(frozen=True, kw_only=True)
class Joint:
    """How a link moves in its parent."""

    name: str
    kind: Kind = "revolute"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    """Unit axis in the link's own frame; the joint turns about the link's origin."""
    lower: float = -np.inf
    """Lower position limit [rad or m]."""
    upper: float = np.inf
    """Upper position limit [rad or m]."""
    velocity_limit: float = np.inf
    """[rad/s or m/s]; infinite where unknown."""
    torque_limit: float = np.inf
    """[N·m or N]; infinite where unknown, zero of a passive joint."""
    armature: float = 0.0
    """Rotor inertia seen at the joint [kg·m² or kg]."""
    motor: str = ""
    """The motor's name, where known."""


@dataclass(frozen=True, kw_only=True)
class Geom:
    """A simple shape fixed to a link, for contact."""

    shape: Shape
    size: tuple[float, ...]
    """Box: half sizes x, y, z; sphere: radius; capsule and cylinder: radius and half length along z (of a capsule
    without its caps) [m]."""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Centre in the link's frame [m]."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the link's frame, (w, x, y, z)."""
    friction: float = 1.0
    """Sliding friction coefficient; in a scene the object that is touched has the say."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """One rigid body. Its frame's origin lies on its joint; frames fixed to it are fused into it."""

    name: str
    parent: str
    """The parent link's name, or "world" for a link that is mounted on the ground."""
    joint: Joint | None
    """None only for a base that is fixed to the world."""
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Origin in the parent's frame at joint position zero [m]."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the parent's frame at joint position zero, (w, x, y, z)."""
    mass: float
    """[kg]"""
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Centre of mass in the link's frame [m]."""
    inertia: tuple[float, float, float, float, float, float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """Ixx, Iyy, Izz, Ixy, Ixz, Iyz about the centre of mass, in the link's axes [kg·m²]."""
    geoms: tuple[Geom, ...] = ()
    """What touches things; a link without any is given capsules (`retorque.robots.shapes`)."""

    @property
    def inertia_matrix(self) -> Array:  # (3, 3) [kg·m²]
        xx, yy, zz, xy, xz, yz = self.inertia
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A pose fixed to a link."""

    link: str
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Origin in the link's frame [m]."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """Orientation in the link's frame, (w, x, y, z)."""


@dataclass(frozen=True, kw_only=True)
class Robot:
    """The ideal robot: what its maker's numbers say it is.

    Links are listed parents first, depth first, so that joint i is column i of every array. `n` counts the actuated
    joints; a free base (`floating`) comes before them and is not counted.
    """

    name: str
    links: tuple[Link, ...]
    home: Array
    """(n,) a pose well inside the limits [rad]."""
    end_effector: Frame
    payload_mount: Frame
    """Where a payload is fixed: a link of the tree, usually the end-effector's."""
    title: str = ""
    """Maker and model, as a person says it."""
    source: str = ""
    """Where the numbers come from."""
    notes: str = ""
    """What a user should know: what was cut, estimated or left out."""
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    """[m/s²]"""
    hardware_adds_gravity: bool = False
    """True where the real robot's torque interface adds gravity compensation of its own."""
    profile: Profile | None = None
    """Ranges of what may be hidden, where the card has them; see `retorque.physics.default_profile.profile_of`."""
    frames: Mapping[str, Frame] = field(default_factory=dict)
    """Further named frames (fingertips, feet, camera mounts)."""
    end_effectors: tuple[str, ...] = ()
    """Names of those frames that are hands, where there are several; `end_effector` is one of them or its own."""
    friction: JointFriction | None = None
    """Of every joint, where it was identified; the ideal robot has none."""
    drive: Drive | None = None
    """Between commands and torques, where it was identified; the ideal robot's is exact."""
    uncertainty: Uncertainty | None = None
    """Of masses, inertias and armatures, where they were identified."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "home", read_only(self.home))
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))
        for part in (self.profile, self.friction, self.drive, self.uncertainty):
            for name, value in vars(part).items() if part is not None else ():
                if isinstance(value, np.ndarray):
                    object.__setattr__(part, name, read_only(value))

    def __reduce__(self) -> tuple[Callable[..., Robot], tuple[dict[str, Any]]]:
        """How a robot travels to another process: as what it was made of, so that it arrives read-only again."""
        made_of = {f.name: getattr(self, f.name) for f in fields(self)}
        return _remade, ({**made_of, "frames": dict(self.frames)},)

    @cached_property
    def joints(self) -> tuple[Joint, ...]:
        """The actuated joints in order."""
        return tuple(link.joint for link in self.links if link.joint is not None and link.joint.kind != "free")

    @property
    def n(self) -> int:
        """Number of actuated joints."""
        return len(self.joints)

    @cached_property
    def floating(self) -> bool:
        """Whether the base is free."""
        return any(link.joint is not None and link.joint.kind == "free" for link in self.links)

    @cached_property
    def moving_links(self) -> tuple[Link, ...]:
        """The links that move, in joint order (a free base first)."""
        return tuple(link for link in self.links if link.joint is not None)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def lower(self) -> Array:  # (n,) [rad]
        return read_only([joint.lower for joint in self.joints])

    @cached_property
    def upper(self) -> Array:  # (n,) [rad]
        return read_only([joint.upper for joint in self.joints])

    @cached_property
    def velocity_limit(self) -> Array:  # (n,) [rad/s]
        return read_only([joint.velocity_limit for joint in self.joints])

    @cached_property
    def torque_limit(self) -> Array:  # (n,) [N·m]
        return read_only([joint.torque_limit for joint in self.joints])

    @cached_property
    def armature(self) -> Array:  # (n,) [kg·m²]
        return read_only([joint.armature for joint in self.joints])

    def link(self, name: str) -> Link:
        """The link of that name."""
        for link in self.links:
            if link.name == name:
                return link
        raise RetorqueError(
            f"robot '{self.name}' has no link '{name}'; it has: {', '.join(x.name for x in self.links)}"
        )

    def frame(self, name: str) -> Frame:
        """The frame of that name, `end_effector` and `payload_mount` among them."""
        frames = {"end_effector": self.end_effector, "payload_mount": self.payload_mount, **self.frames}
        if name not in frames:
            raise unknown(f"frame of '{self.name}'", name, frames)
        return frames[name]

    def with_links(self, links: tuple[Link, ...]) -> Robot:
        """The same robot with other links (masses, inertias, armatures)."""
        return replace(self, links=links)

    @staticmethod
    def load(name: str | Path) -> Robot:
        """A robot on board by its name, one in a card, MJCF or URDF file by its path, or `menagerie:NAME`."""
        from retorque.robots.library import load

        return load(name)

    def save(self, path: str | Path) -> Path:
        """Write the robot as a card, which `load` reads, whole or not at all; the path."""
        from retorque.robots.card import write_card

        return write_card(self, path)


def _remade(made_of: dict[str, Any]) -> Robot:
    return Robot(**made_of)
