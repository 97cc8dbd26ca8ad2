"""A robot as a URDF text."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

import numpy as np

from retorque.robots import rotation
from retorque.robots.robot import Frame, Link, Robot
from retorque.robots.shapes import Capsule, capsules

Element = ElementTree.Element
UNLIMITED = 1e9
"""Written for an unknown torque or velocity limit, without which other programs refuse a joint [N·m or rad/s]."""
AXES = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def write_urdf(robot: Robot) -> str:
    """The robot as a URDF text, with cylinders for shapes.

    The end-effector, the payload mount and the robot's frames are links on fixed joints. URDF has no place for rotor
    inertias, gravity or a home pose: armatures and home are written as comments, which `read_urdf` understands and
    other programs skip; gravity is left out. Identified friction becomes `<dynamics>`: damping is the viscous part, the
    mean of both directions, and friction the dry part of fast motion; offsets, Stribeck terms and hysteresis have no
    place there. Unknown limits are written as 1e9, which `read_urdf` understands as unknown.
    """
    root = Element("robot", name=robot.name)
    home = " ".join(f"{joint.name} {float(value)!r}" for joint, value in zip(robot.joints, robot.home, strict=True))
    root.append(ElementTree.Comment(f" home {home} "))
    fixed = robot.links[0].joint is None and not any(robot.links[0].position) and robot.links[0].quaternion[0] == 1.0
    if not fixed:  # a root link has no pose of its own in URDF, so the ground becomes one
        ElementTree.SubElement(root, "link", name="world")
    shapes = capsules(robot)
    for link in robot.links:
        _link(root, link, [shape for shape in shapes if shape.link == link.name])
        if not (fixed and link is robot.links[0]):
            _joint(root, link)
    frames = {"end_effector": robot.end_effector, "payload_mount": robot.payload_mount, **robot.frames}
    taken = {link.name for link in robot.links}
    for name, frame in frames.items():
        _frame(root, f"{name}_frame" if name in taken else name, frame)
    _losses(root, robot)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _link(root: Element, link: Link, shapes: list[Capsule]) -> None:
    element = ElementTree.SubElement(root, "link", name=link.name)
    if link.mass > 0.0:
        inertial = ElementTree.SubElement(element, "inertial")
        ElementTree.SubElement(inertial, "origin", xyz=_text(link.centre), rpy="0 0 0")
        ElementTree.SubElement(inertial, "mass", value=repr(float(link.mass)))
        values = {key: repr(float(value)) for key, value in zip(AXES, link.inertia, strict=True)}
        ElementTree.SubElement(inertial, "inertia", values)
    for shape in shapes:
        along = shape.end - shape.start
        length = float(np.linalg.norm(along))
        middle, turn = (shape.start + shape.end) / 2, _facing(along / length)
        for purpose in ("visual", "collision"):
            part = ElementTree.SubElement(element, purpose)
            ElementTree.SubElement(part, "origin", xyz=_text(middle), rpy=_text(rotation.to_roll_pitch_yaw(turn)))
            geometry = ElementTree.SubElement(part, "geometry")
            ElementTree.SubElement(geometry, "cylinder", radius=repr(shape.radius), length=repr(length))


def _facing(direction: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) that turns z into a unit direction."""
    helper = np.eye(3)[int(np.argmin(np.abs(direction)))]
    x = np.cross(helper, direction)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(direction, x), direction])


def _joint(root: Element, link: Link) -> None:
    joint = link.joint
    kind, name = "fixed", f"{link.name}_mount"
    if joint is not None:
        limited = np.isfinite(joint.lower) and np.isfinite(joint.upper)
        revolute = "revolute" if limited else "continuous"
        kind = {"free": "floating", "prismatic": "prismatic", "revolute": revolute}[joint.kind]
        name = joint.name
    element = ElementTree.SubElement(root, "joint", name=name, type=kind)
    ElementTree.SubElement(element, "parent", link=link.parent)
    ElementTree.SubElement(element, "child", link=link.name)
    turn = rotation.to_roll_pitch_yaw(rotation.from_quaternion(link.quaternion))
    ElementTree.SubElement(element, "origin", xyz=_text(link.position), rpy=_text(turn))
    if joint is None or joint.kind == "free":
        return
    ElementTree.SubElement(element, "axis", xyz=_text(joint.axis))
    limit = ElementTree.SubElement(element, "limit")
    for key, value in (("lower", joint.lower), ("upper", joint.upper)):
        if np.isfinite(value):
            limit.set(key, repr(float(value)))
    for key, value in (("effort", joint.torque_limit), ("velocity", joint.velocity_limit)):
        limit.set(key, repr(float(min(value, UNLIMITED))))
    if joint.armature > 0.0:
        element.append(ElementTree.Comment(f" armature {float(joint.armature)!r} "))


def _losses(root: Element, robot: Robot) -> None:
    """Damping and dry friction, where the robot has them: as much of its friction as the format can say."""
    if robot.friction is None:
        return
    numbers = zip(robot.joint_names, robot.friction.viscous, robot.friction.coulomb, strict=True)
    own = {name: (damping, dry) for name, damping, dry in numbers}
    for element in root.findall("joint"):
        if element.get("name") in own:
            damping, dry = own[element.get("name", "")]
            ElementTree.SubElement(element, "dynamics", damping=repr(float(damping)), friction=repr(float(dry)))


def _frame(root: Element, name: str, frame: Frame) -> None:
    ElementTree.SubElement(root, "link", name=name)
    joint = ElementTree.SubElement(root, "joint", name=f"{name}_mount", type="fixed")
    ElementTree.SubElement(joint, "parent", link=frame.link)
    ElementTree.SubElement(joint, "child", link=name)
    turn = rotation.to_roll_pitch_yaw(rotation.from_quaternion(frame.quaternion))
    ElementTree.SubElement(joint, "origin", xyz=_text(frame.position), rpy=_text(turn))


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)
