"""Capsules made from the tree alone: enough to see a robot, collide it and draw it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array

DENSITY = 1500.0
"""Mean density of a robot's link, motors and hollows together [kg/m³]; it turns a mass into a thickness."""
BALL_DENSITY = 3000.0
"""The same of a link so short that it is little more than its motor [kg/m³]."""
SHORTEST = 0.01
"""A link shorter than this becomes a ball [m]."""
THINNEST = 0.004
"""Smallest radius [m]."""


class Capsule(NamedTuple):
    """All points within `radius` of the segment from `start` to `end`, in the link's frame [m]."""

    link: str
    start: Array
    end: Array
    radius: float


def capsules(robot: Robot) -> list[Capsule]:
    """The capsules of a robot: from each link's origin to its children, or to the frames where a chain ends."""
    shapes: list[Capsule] = []
    for link in robot.links:
        targets = [np.array(child.position) for child in robot.links if child.parent == link.name]
        if robot.end_effector.link == link.name:
            targets.append(np.array(robot.end_effector.position))
        if not targets:
            targets = [np.array(frame.position) for frame in robot.frames.values() if frame.link == link.name]
        ends: list[Array] = []
        for target in targets:
            if np.linalg.norm(target) > SHORTEST and not any(np.linalg.norm(target - e) < SHORTEST for e in ends):
                ends.append(target)
        if ends:
            total = sum(float(np.linalg.norm(end)) for end in ends)
            thickness = float(np.sqrt(link.mass / (np.pi * total * DENSITY)))
            for end in ends:
                length = float(np.linalg.norm(end))
                radius = max(THINNEST, float(np.clip(thickness, 0.12 * length, 0.35 * length)))
                shapes.append(Capsule(link.name, np.zeros(3), end, radius))
        elif link.mass > 0.0:
            radius = max(THINNEST, float(np.cbrt(3 * link.mass / (4 * np.pi * BALL_DENSITY))))
            axis = np.array(link.joint.axis if link.joint is not None else (0.0, 0.0, 1.0))
            middle = np.array(link.centre)
            half = 0.1 * radius * axis
            shapes.append(Capsule(link.name, middle - half, middle + half, radius))
    return shapes
