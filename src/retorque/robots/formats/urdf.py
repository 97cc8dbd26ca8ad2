"""Robots from URDF files, read without meshes, and robots written as URDF."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from retorque.robots import rotation
from retorque.robots.formats.assemble import Marker, assemble
from retorque.robots.formats.repair import repaired
from retorque.robots.formats.tree import Body, Hinge, vector
from retorque.robots.formats.urdf_writer import UNLIMITED, write_urdf
from retorque.robots.formats.xml_file import read_xml
from retorque.robots.robot import Joint, Kind, Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

__all__ = ["read_urdf", "write_urdf"]

Element = ElementTree.Element
KINDS: dict[str, Kind | None] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "floating": "free",
    "fixed": None,
}


def read_urdf(path: str | Path, joints: Collection[str] | None = None, *, repair: bool = False) -> Robot:
    """The robot in a URDF file.

    Fixed joints are fused, mimic joints are welded at zero, and `<dynamics>` (damping, friction) is left out: what is
    left is the ideal rigid robot. Links that hang on a fixed joint and have neither mass nor children (such as
    tool0) become frames. URDF has no rotor inertias; `armature` is taken from the comments that `write_urdf` leaves.

    Args:
        path: The file; its meshes are never needed.
        joints: The joints to keep, in any order; None: all that move.
        repair: Whether an inertia that no body has becomes the nearest possible one, with a note, or is refused.
    """
    path = Path(path)
    where = path.name
    if not path.is_file():
        raise RetorqueError(f"there is no file '{path}'; give the path of a URDF file")
    root = read_xml(path, comments=True)
    if root.tag != "robot":
        raise RetorqueError(f"{where}: the file starts with <{root.tag}>; a URDF file starts with <robot>")
    edges = {_child(joint, where): joint for joint in root.findall("joint")}
    links = {_name(link, where): link for link in root.findall("link")}
    order = _depth_first(root, links, edges, where)
    if not any(link.find("inertial") is not None for link in links.values()):
        raise RetorqueError(f"{where}: no link has an <inertial>; add masses and inertias, without which nothing moves")
    mimics = [_name(j, where) for j in root.findall("joint") if j.find("mimic") is not None]
    bodies: list[Body] = []
    markers: list[Marker] = []
    index: dict[str, int] = {}
    leaves = set(links) - {_link_of(joint, "parent", where) for joint in edges.values()}
    for name in order:
        edge = edges.get(name)
        body = _body(name, links[name], edge, index, where)
        if name in leaves and body.mass == 0.0 and not body.hinges and body.parent >= 0:
            markers.append(Marker(name, body.parent, body.position, body.rotation))
        elif not (edge is None and name == "world"):  # a root called "world" is the ground itself
            index[name] = len(bodies)
            bodies.append(body)
    notes = [f"mimic joints welded at zero: {', '.join(mimics)}"] if mimics else []
    if repair:
        bodies, changed = repaired(bodies)
        notes += changed
    return assemble(
        name=root.get("name") or path.stem,
        bodies=bodies,
        markers=markers,
        keep=_kept(bodies, joints, mimics, where),
        poses=_home(root),
        source=where,
        notes=notes,
    )


def _kept(bodies: list[Body], joints: Collection[str] | None, mimics: list[str], where: str) -> Collection[str] | None:
    for name in mimics:
        if joints is not None and name in joints:
            raise RetorqueError(
                f"{where}: joint '{name}' follows another joint (mimic); leave it out of the joints to keep"
            )
    if joints is not None or not mimics:
        return None if joints is None else set(joints)
    return {hinge.joint.name for body in bodies for hinge in body.hinges} - set(mimics)


def _depth_first(root: Element, links: dict[str, Element], edges: dict[str, Element], where: str) -> list[str]:
    """The links' names, each branch after its parent, in the order of the file's joints."""
    if len(links) != len(root.findall("link")):
        raise RetorqueError(f"{where}: two links have the same name; give each its own")
    if len(edges) != len(root.findall("joint")):
        raise RetorqueError(f"{where}: a link is the child of two joints; URDF holds trees only, so remove one")
    children: dict[str, list[str]] = {name: [] for name in links}
    for child, joint in edges.items():
        parent = _link_of(joint, "parent", where)
        for name in (parent, child):
            if name not in links:
                raise RetorqueError(
                    f"{where}: joint '{joint.get('name')}' names link '{name}', which does not exist; add it"
                )
        children[parent].append(child)
    roots = [name for name in links if name not in edges]
    if len(roots) != 1:
        what = "no root link: its joints form a circle" if not roots else f"several root links: {', '.join(roots)}"
        raise RetorqueError(f"{where}: the file has {what}; join its links into one tree")
    order, waiting = [], [roots[0]]
    while waiting:
        order.append(waiting.pop())
        waiting.extend(reversed(children[order[-1]]))
    if len(order) != len(links):
        raise RetorqueError(f"{where}: some joints form a circle; join the links into one tree")
    return order


def _body(name: str, link: Element, edge: Element | None, index: dict[str, int], where: str) -> Body:
    position, turn = np.zeros(3), np.eye(3)
    hinges: list[Hinge] = []
    parent = -1
    if edge is not None:
        position, turn = _origin(edge, where)
        parent = index.get(_link_of(edge, "parent", where), -1)
        if edge.get("type") not in KINDS:
            raise RetorqueError(
                f"{where}: joint '{edge.get('name')}' has the type '{edge.get('type')}'; use one of: {', '.join(KINDS)}"
            )
        kind = KINDS[edge.get("type", "")]
        if kind is not None:
            hinges.append(Hinge(joint=_joint(edge, kind, where), anchor=np.zeros(3)))
    mass, centre, inertia = _inertial(name, link, where)
    return Body(
        name=name,
        parent=parent,
        position=position,
        rotation=turn,
        hinges=hinges,
        mass=mass,
        centre=centre,
        inertia=inertia,
    )


def _joint(edge: Element, kind: Kind, where: str) -> Joint:
    name = _name(edge, where)
    if kind == "free":
        return Joint(name=name, kind="free")
    axis = _numbers(edge.find("axis"), "xyz", 3, "1 0 0", where)
    length = float(np.linalg.norm(axis))
    if not length > 0.0:
        raise RetorqueError(f"{where}: the axis of joint '{name}' is zero; give it a direction")
    limit = edge.find("limit")
    lower, upper = -np.inf, np.inf
    if limit is not None and edge.get("type") != "continuous":
        lower, upper = (_number(limit, key, 0.0, where) for key in ("lower", "upper"))
        if lower == upper == 0.0:
            lower, upper = -np.inf, np.inf  # both left out
    effort = _number(limit, "effort", 0.0, where)
    velocity = _number(limit, "velocity", 0.0, where)
    return Joint(
        name=name,
        kind=kind,
        axis=vector(axis / length),
        lower=lower,
        upper=upper,
        torque_limit=effort if effort != 0.0 and effort < UNLIMITED else np.inf,
        velocity_limit=velocity if velocity != 0.0 and velocity < UNLIMITED else np.inf,
        armature=_armature(edge),
    )


def _armature(edge: Element) -> float:
    """What `write_urdf` notes as a comment, since URDF has no element for it."""
    for element in edge:
        if element.tag is ElementTree.Comment:
            words = (element.text or "").split()
            if len(words) == 2 and words[0] == "armature":
                try:
                    return float(words[1])
                except ValueError:
                    return 0.0
    return 0.0


def _home(root: Element) -> list[dict[str, float]]:
    """The home pose `write_urdf` notes as a comment: joint names and positions in turn."""
    for element in root:
        words = (element.text or "").split() if element.tag is ElementTree.Comment else []
        if words[:1] == ["home"] and len(words) % 2 == 1:
            try:
                return [{name: float(value) for name, value in zip(words[1::2], words[2::2], strict=True)}]
            except ValueError:
                return []
    return []


def _inertial(name: str, link: Element, where: str) -> tuple[float, Array, Array]:
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    centre, turn = _origin(inertial, where)
    mass, moments = inertial.find("mass"), inertial.find("inertia")
    if mass is None or moments is None:
        raise RetorqueError(f"{where}: the <inertial> of link '{name}' needs both <mass> and <inertia>; add them")
    xx, yy, zz, xy, xz, yz = (_number(moments, key, 0.0, where) for key in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return _number(mass, "value", 0.0, where), centre, turn @ inertia @ turn.T


def _origin(element: Element, where: str) -> tuple[Array, Array]:
    origin = element.find("origin")
    position = _numbers(origin, "xyz", 3, "0 0 0", where)
    return position, rotation.from_roll_pitch_yaw(_numbers(origin, "rpy", 3, "0 0 0", where))


def _numbers(element: Element | None, key: str, count: int, default: str, where: str) -> Array:
    text = element.get(key, default) if element is not None else default
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.zeros(0)
    if values.size != count or not np.all(np.isfinite(values)):
        raise RetorqueError(f'{where}: {key}="{text}" is not {count} finite numbers; correct it')
    return values


def _number(element: Element | None, key: str, default: float, where: str) -> float:
    text = element.get(key) if element is not None else None
    if text is None:
        return default
    try:
        return float(text)
    except ValueError:
        raise RetorqueError(f'{where}: {key}="{text}" is not a number; correct it') from None


def _name(element: Element, where: str) -> str:
    name = element.get("name")
    if not name:
        raise RetorqueError(f"{where}: a <{element.tag}> has no name; give it one")
    return name


def _link_of(joint: Element, end: str, where: str) -> str:
    element = joint.find(end)
    name = element.get("link") if element is not None else None
    if not name:
        raise RetorqueError(f"{where}: joint '{joint.get('name')}' has no <{end} link=...>; add it")
    return name


def _child(joint: Element, where: str) -> str:
    return _link_of(joint, "child", where)
