"""A robot as an MJCF text and as a MuJoCo model: its tree with simple shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

from retorque.robots import rotation
from retorque.robots.robot import Frame, Joint, Link, Robot
from retorque.robots.shapes import capsules
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

if TYPE_CHECKING:
    import mujoco

Element = ElementTree.Element


def write_mjcf(robot: Robot, *, timestep: float = 0.001, contact: bool = False, limits: bool = False) -> str:
    """The robot as an MJCF text.

    There is no actuator: torques are applied to the joints (`qfrc_applied`). Identified friction becomes joint damping
    (its viscous part, the mean of both directions) and `frictionloss` (its dry part in fast motion); offsets and
    hysteresis have no place in the format, nor have velocity limits. Links have the shapes of their cards, or capsules
    where a card has none. The end-effector, the payload mount and the robot's frames are sites; the home pose is the
    keyframe "home".

    Args:
        robot: The robot.
        timestep: Of the Euler integrator [s].
        contact: Whether the links collide with each other, except neighbours and those that touch at home.
        limits: Whether the joint ranges are enforced.
    """
    excluded: set[tuple[str, str]] = set()
    if contact:
        excluded = _neighbours(robot) | _touching_at_home(_document(robot, timestep, True, limits, _neighbours(robot)))
    return _document(robot, timestep, contact, limits, excluded)


def to_mjmodel(robot: Robot, timestep: float = 0.001, contact: bool = False, limits: bool = False) -> mujoco.MjModel:
    """The robot as a compiled MuJoCo model; see `write_mjcf`. Friction is left out: simulations add their own."""
    import mujoco  # here: a text can be written without the engine

    robot = replace(robot, friction=None)
    return mujoco.MjModel.from_xml_string(write_mjcf(robot, timestep=timestep, contact=contact, limits=limits))


def _document(robot: Robot, timestep: float, contact: bool, limits: bool, excluded: Iterable[tuple[str, str]]) -> str:
    root = Element("mujoco", model=robot.name)
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="false", inertiafromgeom="false")
    option = ElementTree.SubElement(
        root, "option", timestep=repr(float(timestep)), integrator="Euler", gravity=_text(robot.gravity)
    )
    ElementTree.SubElement(option, "flag", contact="enable" if contact else "disable")
    world = ElementTree.SubElement(root, "worldbody")
    elements: dict[str, Element] = {"world": world}
    waiting: dict[str, list[Link]] = {}
    for link in robot.links:
        before = waiting.pop(link.parent, [])
        if link.joint is not None and link.mass == 0.0:
            waiting[link.name] = [*before, link]  # MuJoCo has no massless bodies: its joint goes to the link after it
            continue
        if any(frame.link in {w.name for w in before} for frame in _frames(robot).values()):
            raise RetorqueError(f"robot '{robot.name}' has a frame on a massless link; fix it to the link after it")
        elements[link.name] = _body(elements, before, link, limits)
    _shapes(robot, elements, contact)
    for name, frame in _frames(robot).items():
        ElementTree.SubElement(
            elements[frame.link],
            "site",
            name=name,
            pos=_text(frame.position),
            quat=_text(frame.quaternion),
            size="0.005",
        )
    if excluded:
        section = ElementTree.SubElement(root, "contact")
        for first, second in sorted(excluded):
            ElementTree.SubElement(section, "exclude", body1=first, body2=second)
    keyframe = ElementTree.SubElement(root, "keyframe")
    base = [*robot.links[0].position, *robot.links[0].quaternion] if robot.floating else []
    ElementTree.SubElement(keyframe, "key", name="home", qpos=_text([*base, *robot.home]))
    _losses(root, robot)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _body(elements: dict[str, Element], before: list[Link], link: Link, limits: bool) -> Element:
    """Write one body with its own joint and those of the massless links between it and the body it hangs on."""
    first = before[0] if before else link
    chain = [*before[1:], link] if before else []
    position, turn = np.array(first.position), rotation.from_quaternion(first.quaternion)
    poses = [(np.zeros(3), np.eye(3))]  # of each joint's link in the first link's frame
    for member in chain:
        at, facing = poses[-1]
        poses.append((at + facing @ np.array(member.position), facing @ rotation.from_quaternion(member.quaternion)))
    last, end = poses[-1]
    # The quaternion of the source is passed on untouched where nothing is merged, so that no digits are lost.
    quaternion = link.quaternion if not before else rotation.to_quaternion(turn @ end)
    body = ElementTree.SubElement(
        elements[first.parent], "body", name=link.name, pos=_text(position + turn @ last), quat=_text(quaternion)
    )
    for (at, facing), member in zip(poses, [*before, link], strict=True):
        if member.joint is not None:
            _joint(body, member.joint, end.T @ (at - last), end.T @ facing @ np.array(member.joint.axis), limits)
    if link.mass > 0.0:
        moments, axes = np.linalg.eigh(link.inertia_matrix)
        axes[:, 0] *= np.sign(np.linalg.det(axes))
        # Principal axes are found here: MuJoCo's own routine stops at absolute 1e-12, too early for fingers.
        ElementTree.SubElement(
            body,
            "inertial",
            pos=_text(link.centre),
            quat=_text(rotation.to_quaternion(axes)),
            mass=repr(float(link.mass)),
            diaginertia=_text(moments),
        )
    return body


def _joint(body: Element, joint: Joint, anchor: Array, axis: Array, limits: bool) -> None:
    if joint.kind == "free":
        ElementTree.SubElement(body, "freejoint", name=joint.name, align="false")
        return
    element = ElementTree.SubElement(
        body,
        "joint",
        name=joint.name,
        type="hinge" if joint.kind == "revolute" else "slide",
        pos=_text(anchor),
        axis=_text(axis),
        limited="false",
        armature=repr(float(joint.armature)),
    )
    if np.isfinite(joint.lower) and np.isfinite(joint.upper):
        element.set("range", _text((joint.lower, joint.upper)))
        element.set("limited", "true" if limits else "false")
    if np.isfinite(joint.torque_limit) and joint.torque_limit > 0.0:  # MuJoCo takes no empty range
        element.set("actuatorfrclimited", "true")
        element.set("actuatorfrcrange", _text((-joint.torque_limit, joint.torque_limit)))


def _shapes(robot: Robot, elements: dict[str, Element], contact: bool) -> None:
    """The links' own geoms, and capsules for those that have none; each is named for its link and counted."""
    bits = "1" if contact else "0"
    look = {"contype": bits, "conaffinity": bits, "rgba": "0.75 0.77 0.8 1"}
    count = dict.fromkeys(elements, 0)

    def add(link: str, **attributes: str) -> None:
        ElementTree.SubElement(elements[link], "geom", {"name": f"{link}#{count[link]}", **attributes, **look})
        count[link] += 1

    for link in robot.links:
        if link.geoms and link.name not in elements:
            raise RetorqueError(f"robot '{robot.name}' has a geom on a massless link; move it to the link after it")
        for geom in link.geoms:
            add(
                link.name,
                type=geom.shape,
                size=_text(geom.size),
                pos=_text(geom.position),
                quat=_text(geom.quaternion),
                friction=_text((geom.friction, 0.005, 0.0001)),
            )
    shaped = {link.name for link in robot.links if link.geoms}
    for capsule in capsules(robot):
        if capsule.link in elements and capsule.link not in shaped:
            add(capsule.link, type="capsule", fromto=_text([*capsule.start, *capsule.end]), size=repr(capsule.radius))


def _losses(root: Element, robot: Robot) -> None:
    """Damping and dry friction, where the robot has them."""
    if robot.friction is None:
        return
    numbers = zip(robot.joint_names, robot.friction.viscous, robot.friction.coulomb, strict=True)
    own = {name: (damping, dry) for name, damping, dry in numbers}
    for element in root.iter("joint"):
        damping, dry = own[element.get("name", "")]
        element.set("damping", repr(float(damping)))
        element.set("frictionloss", repr(float(dry)))


def _frames(robot: Robot) -> dict[str, Frame]:
    return {"end_effector": robot.end_effector, "payload_mount": robot.payload_mount, **robot.frames}


def _neighbours(robot: Robot) -> set[tuple[str, str]]:
    """Pairs of links that share a joint; MuJoCo skips them by itself, but not beside a base that is fixed."""
    bodies = {link.name for link in robot.links if link.joint is None or link.mass > 0.0}
    return {(link.parent, link.name) for link in robot.links if {link.parent, link.name} <= bodies}


def _touching_at_home(document: str) -> set[tuple[str, str]]:
    import mujoco

    model = mujoco.MjModel.from_xml_string(document)
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_forward(model, data)
    pairs = [sorted(int(model.geom_bodyid[geom]) for geom in c.geom) for c in data.contact]
    return {(model.body(first).name, model.body(second).name) for first, second in pairs}


def _text(values: Iterable[float]) -> str:
    return " ".join(repr(float(value) + 0.0) for value in values)
