"""From a file's bodies to a robot's links: unwanted joints are welded and whatever is rigid is fused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from retorque.robots import rotation
from retorque.robots.robot import Frame, Geom, Joint, Link
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown


@dataclass(frozen=True, kw_only=True)
class Hinge:
    """One joint of a body, as files describe it."""

    joint: Joint
    """Its axis is in the body's axes."""
    anchor: Array
    """(3,) a point on the axis in the body's frame [m]."""
    reference: float = 0.0
    """Joint position at which the body stands where the file puts it [rad or m]."""


@dataclass(frozen=True, kw_only=True)
class Body:
    """One body of a file: it may have no joint or several, and may have no mass."""

    name: str
    parent: int
    """Index of the parent body; -1: the world."""
    position: Array
    """(3,) in the parent's frame [m]."""
    rotation: Array
    """(3, 3) in the parent's frame."""
    hinges: Sequence[Hinge] = ()
    """The joints, in the order in which they act."""
    mass: float
    """[kg]"""
    centre: Array
    """(3,) in the body's frame [m]."""
    inertia: Array
    """(3, 3) about the centre of mass in the body's axes [kg·m²]."""
    geoms: Sequence[Geom] = ()
    """Simple shapes that touch things, in the body's frame."""


@dataclass(frozen=True)
class Placement:
    """Where a body of the file has ended up: a pose fixed to a link, or to the world where `link` is None."""

    link: int | None
    position: Array
    rotation: Array

    def then(self, position: Array, turn: Array) -> Placement:
        """The pose of something that stands at `position` and `turn` in this one."""
        return Placement(self.link, self.position + self.rotation @ position, self.rotation @ turn)


@dataclass
class _Part:
    """A link while masses are being added to it."""

    link: Link
    masses: list[tuple[float, Array, Array]] = field(default_factory=list)
    """Mass [kg], centre (3,) [m] and inertia (3, 3) about it [kg·m²], each in the link's frame."""
    geoms: list[Geom] = field(default_factory=list)

    def finished(self) -> Link:
        mass = sum(m for m, _, _ in self.masses)
        if mass == 0.0:
            return replace(self.link, geoms=tuple(self.geoms))
        if len(self.masses) == 1:
            _, centre, inertia = self.masses[0]
        else:
            centre = sum((m * c for m, c, _ in self.masses), np.zeros(3)) / mass
            inertia = np.zeros((3, 3))
            for m, c, i in self.masses:
                d = c - centre
                inertia = inertia + i + m * (d @ d * np.eye(3) - np.outer(d, d))
        geoms = tuple(self.geoms)
        return replace(self.link, mass=float(mass), centre=vector(centre), inertia=six(inertia), geoms=geoms)


def vector(values: Array) -> tuple[float, float, float]:
    """Three floats of an array, without negative zeros."""
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def six(inertia: Array) -> tuple[float, float, float, float, float, float]:
    """Ixx, Iyy, Izz, Ixy, Ixz, Iyz of a (3, 3) inertia."""
    i = (inertia + inertia.T) / 2
    return (*vector(np.diag(i)), *vector(np.array([i[0, 1], i[0, 2], i[1, 2]])))


def all_joints(bodies: Sequence[Body]) -> list[Joint]:
    """The joints of all bodies in order."""
    return [hinge.joint for body in bodies for hinge in body.hinges]


def cut(
    bodies: Sequence[Body], keep: Collection[str] | None, where: str
) -> tuple[tuple[Link, ...], tuple[Placement, ...]]:
    """Weld every joint that is not kept and fuse what does not move.

    Args:
        bodies: Parents before children, depth first.
        keep: Names of the joints to keep; None: all of them.
        where: What the bodies come from, for messages.

    Returns:
        The links, depth first, and for each body where it has ended up.
    """
    names = [joint.name for joint in all_joints(bodies)]
    for name in keep if keep is not None else ():
        if name not in names:
            raise RetorqueError(f"{where}: {unknown('joint', name, names)}")
    kept = [[h for h in body.hinges if keep is None or h.joint.name in keep] for body in bodies]
    parts: list[_Part] = []
    placements: list[Placement] = []
    world = Placement(None, np.zeros(3), np.eye(3))
    ground = _ground(bodies, kept)
    for body, hinges in zip(bodies, kept, strict=True):
        here = (placements[body.parent] if body.parent >= 0 else world).then(body.position, body.rotation)
        if ground is not None and not parts:
            parts.append(_Part(_link(parts, bodies[ground[0]].name, "world", None, ground[1])))
        if not hinges and here.link is None:
            assert ground is not None
            back = ground[1].rotation.T
            here = Placement(0, back @ (here.position - ground[1].position), back @ here.rotation)
        for hinge in hinges:
            # MuJoCo turns the body about each anchor in turn, so each joint but the last moves a massless link.
            name = body.name if hinge is hinges[-1] else f"{body.name}/{hinge.joint.name}"
            at_zero = _back_to_zero(here.then(hinge.anchor, np.eye(3)), hinge)
            owner = "world" if here.link is None else parts[here.link].link.name
            parts.append(_Part(_link(parts, name, owner, hinge.joint, at_zero)))
            here = Placement(len(parts) - 1, -hinge.anchor, np.eye(3))
        placements.append(here)
        if not (np.isfinite(body.mass) and body.mass >= 0.0):
            raise RetorqueError(f"{where}: the mass of '{body.name}' is {body.mass}; give it a positive mass in kg")
        if body.geoms:
            assert here.link is not None
            parts[here.link].geoms += [_moved(geom, here) for geom in body.geoms]
        if body.mass > 0.0 or np.any(body.inertia):
            assert here.link is not None
            turned = here.rotation @ body.inertia @ here.rotation.T
            parts[here.link].masses.append((body.mass, here.position + here.rotation @ body.centre, turned))
    return tuple(part.finished() for part in parts), tuple(placements)


def _moved(geom: Geom, place: Placement) -> Geom:
    if np.array_equal(place.rotation, np.eye(3)):
        return replace(geom, position=vector(place.position + np.array(geom.position)))
    there = place.then(np.array(geom.position), rotation.from_quaternion(geom.quaternion))
    return replace(geom, position=vector(there.position), quaternion=rotation.to_quaternion(there.rotation))


def _ground(bodies: Sequence[Body], kept: Sequence[Sequence[Hinge]]) -> tuple[int, Placement] | None:
    """The first body that stands still, which gives the fixed base its name and frame, and its pose in the world."""
    still: dict[int, Placement] = {-1: Placement(None, np.zeros(3), np.eye(3))}
    for index, body in enumerate(bodies):
        if body.parent in still and not kept[index]:
            return index, still[body.parent].then(body.position, body.rotation)
    return None


def _link(parts: Sequence[_Part], name: str, parent: str, joint: Joint | None, place: Placement) -> Link:
    taken = {part.link.name for part in parts} | {"world"}
    unique, count = name or "link", 2
    while unique in taken:
        unique, count = f"{name}_{count}", count + 1
    return Link(
        name=unique,
        parent=parent,
        joint=joint,
        position=vector(place.position),
        quaternion=rotation.to_quaternion(place.rotation),
        mass=0.0,
    )


def _back_to_zero(place: Placement, hinge: Hinge) -> Placement:
    """The pose at joint position zero of a link that stands at `place` at the joint's reference position."""
    if hinge.reference == 0.0 or hinge.joint.kind == "free":
        return place
    axis = np.array(hinge.joint.axis)
    if hinge.joint.kind == "prismatic":
        return place.then(-hinge.reference * axis, np.eye(3))
    return place.then(np.zeros(3), rotation.from_axis_angle(axis, -hinge.reference))


def frame_at(links: Sequence[Link], place: Placement) -> Frame:
    """A placement as a named link's frame."""
    link = links[place.link if place.link is not None else 0]
    return Frame(link=link.name, position=vector(place.position), quaternion=rotation.to_quaternion(place.rotation))


def end_of_longest_chain(links: Sequence[Link]) -> int:
    """Index of the link with the most joints between it and the ground; of equals, the farthest at joint zero."""
    joints: dict[str, int] = {"world": 0}
    reach: dict[str, float] = {"world": 0.0}
    for link in links:
        joints[link.name] = joints[link.parent] + (link.joint is not None)
        reach[link.name] = reach[link.parent] + float(np.linalg.norm(link.position))
    return max(range(len(links)), key=lambda k: (joints[links[k].name], reach[links[k].name], -k))


def default_end(links: Sequence[Link], frames: dict[str, Frame], fused: Sequence[Frame]) -> Frame:
    """The end-effector of a robot whose file does not name one.

    It is on the last link of the longest chain: at the named frame farthest from its joint, else at the farthest body
    that was fused into it, else at its centre of mass.
    """
    last = links[end_of_longest_chain(links)]
    for candidates in (list(frames.values()), list(fused)):
        here = [f for f in candidates if f.link == last.name and float(np.linalg.norm(f.position)) > 1e-6]
        if here:
            return max(here, key=lambda f: float(np.linalg.norm(f.position)))
    return Frame(link=last.name, position=last.centre)


def default_home(lower: Array, upper: Array, margin: float = 0.6) -> Array:
    """Zero moved inside the limits by `margin` [rad or m], or the middle where the range is narrower; (n,)."""
    low, high = lower + margin, upper - margin
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isfinite(lower + upper), (lower + upper) / 2, 0.0)
        return np.where(low > high, middle, np.clip(0.0, low, np.maximum(low, high))) + 0.0
