"""The checks every robot passes, whatever it was read from: a proper tree, possible masses, sensible limits."""

from __future__ import annotations

from collections import Counter

import numpy as np

from retorque.robots.losses import check_drive, check_friction, check_uncertainty
from retorque.robots.robot import Frame, Geom, Link, Robot
from retorque.work.errors import RetorqueError, unknown

TRIANGLE_TOLERANCE = 1e-6
"""By how much of its trace an inertia may miss the triangle inequality: what rounding in a file can cause."""
LARGEST = 1e6
"""No mass, length, inertia or rotor of a robot is larger, in SI units; beyond it, sums of squares soon overflow."""
SIZES = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2}
"""How many numbers give each shape's size."""


def check(robot: Robot, where: str) -> Robot:
    """Refuse a robot that cannot exist.

    Args:
        robot: What was read.
        where: The file's name, for messages.

    Returns:
        The same robot.
    """
    _check_tree(robot, where)
    children = Counter(link.parent for link in robot.links)
    for link in robot.links:
        _check_joint(link, where)
        _check_size(link, where)
        _check_mass(link, children[link.name], where)
        for geom in link.geoms:
            _check_geom(link, geom, where)
    _check_frames(robot, where)
    _check_home(robot, where)
    if robot.friction is not None:
        check_friction(robot.friction, robot.n, where)
    if robot.drive is not None:
        check_drive(robot.drive, robot.n, where)
    if robot.uncertainty is not None:
        check_uncertainty(robot.uncertainty, len(robot.moving_links), robot.n, where)
    gravity = np.asarray(robot.gravity, dtype=float)
    if gravity.shape != (3,) or not np.all(np.abs(gravity) <= LARGEST):
        raise RetorqueError(f"{where}: gravity must be three finite numbers in m/s², not {robot.gravity}")
    return robot


def _check_tree(robot: Robot, where: str) -> None:
    if not robot.links or robot.n == 0:
        raise RetorqueError(
            f"{where}: the robot has no joint that moves; add a link with a revolute or prismatic joint"
        )
    names = [link.name for link in robot.links]
    joints = [link.joint.name for link in robot.links if link.joint is not None]
    for kind, group in (("link", names), ("joint", joints)):
        twice = [name for name, count in Counter(group).items() if count > 1]
        if twice:
            raise RetorqueError(f"{where}: the {kind} name '{twice[0]}' is used more than once; give each its own name")
    if "world" in names:
        raise RetorqueError(f"{where}: a link cannot be called 'world', which names the ground; rename it")
    for link in robot.links:
        if link.parent != "world" and link.parent not in names:
            raise RetorqueError(
                f"{where}: link '{link.name}' hangs on '{link.parent}', which does not exist; use 'world' or one of: "
                + ", ".join(names)
            )
    _check_circle(robot, where)
    path: list[str] = ["world"]
    for link in robot.links:  # depth first: each link's parent is among the ancestors of the link before it
        if link.parent not in path:
            raise RetorqueError(
                f"{where}: link '{link.name}' is out of order; list links depth first, each branch directly after its "
                f"parent '{link.parent}'"
            )
        path = [*path[: path.index(link.parent) + 1], link.name]
    roots = [link for link in robot.links if link.joint is None or link.joint.kind == "free"]
    if len(roots) > 1:
        raise RetorqueError(
            f"{where}: '{roots[0].name}' and '{roots[1].name}' are both bases; a robot has one fixed or one free base, "
            "so name the joints to keep"
        )
    if roots and (roots[0] is not robot.links[0] or roots[0].parent != "world"):
        raise RetorqueError(f"{where}: the base '{roots[0].name}' must be the first link and hang on 'world'")


def _check_circle(robot: Robot, where: str) -> None:
    parents = {link.name: link.parent for link in robot.links}
    for start in parents:
        seen = [start]
        while parents[seen[-1]] != "world":
            seen.append(parents[seen[-1]])
            if seen[-1] in seen[:-1]:
                circle = " -> ".join(reversed(seen[seen.index(seen[-1]) :]))
                raise RetorqueError(f"{where}: the links {circle} form a circle; hang one of them on 'world'")


def _check_joint(link: Link, where: str) -> None:
    joint = link.joint
    pose = np.array([*link.position, *link.quaternion], dtype=float)
    if not np.all(np.isfinite(pose)) or abs(np.linalg.norm(pose[3:]) - 1) > 1e-6:
        raise RetorqueError(
            f"{where}: the pose of link '{link.name}' needs a finite position in m and a unit quaternion (w, x, y, z)"
        )
    if joint is None or joint.kind == "free":
        return
    if not np.isclose(np.linalg.norm(joint.axis), 1.0, rtol=0.0, atol=1e-9):
        raise RetorqueError(f"{where}: the axis of joint '{joint.name}' is {joint.axis}; make it a unit vector")
    if not joint.lower < joint.upper:
        raise RetorqueError(
            f"{where}: joint '{joint.name}' has lower limit {joint.lower} and upper limit {joint.upper}; the lower one "
            "must be smaller"
        )
    if not joint.velocity_limit > 0.0:
        raise RetorqueError(
            f"{where}: the velocity limit of joint '{joint.name}' is {joint.velocity_limit}; it must be positive"
        )
    if not joint.torque_limit >= 0.0:
        raise RetorqueError(
            f"{where}: the torque limit of joint '{joint.name}' is {joint.torque_limit}; it must be positive, or zero "
            "for a passive joint"
        )
    if not (np.isfinite(joint.armature) and joint.armature >= 0.0):
        raise RetorqueError(
            f"{where}: the armature of joint '{joint.name}' is {joint.armature}; it must be zero or more, in kg·m²"
        )


def _check_size(link: Link, where: str) -> None:
    numbers = {
        "mass": [link.mass],
        "centre": link.centre,
        "inertia": link.inertia,
        "position": link.position,
        "armature": [0.0 if link.joint is None else link.joint.armature],
        "shape": [number for geom in link.geoms for number in (*geom.size, *geom.position)],
    }
    for what, values in numbers.items():
        if any(LARGEST < abs(value) < np.inf for value in values):
            raise RetorqueError(
                f"{where}: the {what} of link '{link.name}' is larger than any robot's ({max(map(abs, values)):.3g}); "
                "is its unit kg, m or kg·m²?"
            )


def _check_mass(link: Link, children: int, where: str) -> None:
    moves = link.joint is not None
    if not (np.isfinite(link.mass) and link.mass >= 0.0):
        raise RetorqueError(f"{where}: the mass of link '{link.name}' is {link.mass}; give it a positive mass in kg")
    if not np.all(np.isfinite(link.centre)) or not np.all(np.isfinite(link.inertia)):
        raise RetorqueError(f"{where}: the centre or inertia of link '{link.name}' is not finite; give numbers")
    if link.mass == 0.0:
        # Two joints of one body make a massless link between them, which is fine as long as one link follows it.
        if moves and (children != 1 or np.any(link.inertia)):
            raise RetorqueError(
                f"{where}: link '{link.name}' moves but has no mass or no inertia; give it a mass in kg, a centre in "
                "m and an inertia in kg·m²"
            )
        return
    if not moves and not np.any(link.inertia):
        return
    smallest, middle, largest = np.linalg.eigvalsh(link.inertia_matrix)
    values = f"{smallest:.3g}, {middle:.3g}, {largest:.3g} kg·m²"
    if not smallest > 0.0:
        raise RetorqueError(
            f"{where}: the inertia of link '{link.name}' is not positive definite (principal values {values}); no body "
            "has such an inertia, so correct it"
        )
    if smallest + middle < largest - TRIANGLE_TOLERANCE * (smallest + middle + largest):
        raise RetorqueError(
            f"{where}: the inertia of link '{link.name}' breaks the triangle inequality (principal values {values}: "
            "the largest may not exceed the sum of the others); correct it"
        )


def _check_geom(link: Link, geom: Geom, where: str) -> None:
    count = SIZES.get(geom.shape)
    if count is None:
        raise RetorqueError(f"{where}: a geom of link '{link.name}' has the {unknown('shape', geom.shape, SIZES)}")
    if len(geom.size) != count or not np.all(np.isfinite(geom.size)) or not min(geom.size) > 0.0:
        raise RetorqueError(
            f"{where}: a {geom.shape} of link '{link.name}' has the size {list(geom.size)}; give {count} positive "
            f"number{'s' if count > 1 else ''} in m"
        )
    pose = np.array([*geom.position, *geom.quaternion], dtype=float)
    if not np.all(np.isfinite(pose)) or abs(np.linalg.norm(pose[3:]) - 1) > 1e-6:
        raise RetorqueError(
            f"{where}: a {geom.shape} of link '{link.name}' needs a finite position in m and a unit quaternion"
        )
    if not (np.isfinite(geom.friction) and geom.friction >= 0.0):
        raise RetorqueError(f"{where}: the friction of a {geom.shape} of link '{link.name}' must be zero or more")


def _check_frames(robot: Robot, where: str) -> None:
    frames: dict[str, Frame] = {
        "end_effector": robot.end_effector,
        "payload_mount": robot.payload_mount,
        **robot.frames,
    }
    strange = [name for name in robot.end_effectors if name not in frames]
    if strange:
        raise RetorqueError(f"{where}: end_effectors names {unknown('frame', strange[0], frames)}")
    names = [link.name for link in robot.links]
    for name, frame in frames.items():
        if frame.link not in names:
            raise RetorqueError(
                f"{where}: frame '{name}' is on link '{frame.link}', which does not exist; use one of: "
                + ", ".join(names)
            )
        pose = np.array([*frame.position, *frame.quaternion], dtype=float)
        if not np.all(np.abs(pose) <= LARGEST) or abs(np.linalg.norm(pose[3:]) - 1) > 1e-6:
            raise RetorqueError(
                f"{where}: frame '{name}' needs a finite position in m and a unit quaternion (w, x, y, z)"
            )


def _check_home(robot: Robot, where: str) -> None:
    home = np.asarray(robot.home, dtype=float)
    if home.shape != (robot.n,):
        raise RetorqueError(
            f"{where}: home has {home.size} values, but the robot has {robot.n} joints; give one for each"
        )
    for joint, value in zip(robot.joints, home, strict=True):
        if not (abs(value) <= LARGEST and joint.lower <= value <= joint.upper):
            raise RetorqueError(
                f"{where}: home puts joint '{joint.name}' at {value}, outside its limits {joint.lower} to "
                f"{joint.upper}; move it inside"
            )
