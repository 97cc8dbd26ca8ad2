"""The Panda's gripper: its card's closed fingertips as two fingers that open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.robots.robot import Geom, Robot
from retorque.robots.rotation import from_quaternion, to_quaternion
from retorque.simulate.scene import Finger
from retorque.work.errors import RetorqueError

OPEN, CLOSED = 0.08, 0.0
"""Between the fingers [m]."""
FINGERS = ("left_finger", "right_finger")


def with_gripper(robot: Robot) -> tuple[Robot, tuple[Finger, Finger]]:
    """The robot without the box of its closed fingertips, and that box as two fingers, which open along its y axis.

    Weights and inertias stay the card's.
    """
    end = robot.end_effector
    link = next(link for link in robot.links if link.name == end.link)
    tips = next((geom for geom in link.geoms if _holds(geom, np.array(end.position))), None)
    if tips is None:
        raise RetorqueError(f"robot '{robot.name}' has no box of closed fingertips at its end-effector, as 'panda' has")
    bare = replace(link, geoms=tuple(geom for geom in link.geoms if geom is not tips))
    turn = from_quaternion(end.quaternion)
    place = turn.T @ (np.array(tips.position) - np.array(end.position))
    axes = turn.T @ from_quaternion(tips.quaternion)
    x, y, z = tips.size

    def finger(name: str, side: float) -> Finger:
        a, b, c = (float(v) for v in place + side * 0.5 * y * axes[:, 1])
        w, i, j, k = (float(v) for v in to_quaternion(axes))
        u, v, t = (float(n) for n in side * axes[:, 1])
        return Finger(
            name=name,
            mount="end_effector",
            position=(a, b, c),
            quaternion=(w, i, j, k),
            size=(x, 0.5 * y, z),
            axis=(u, v, t),
            opens=0.5 * OPEN,
        )

    left, right = (finger(name, side) for name, side in zip(FINGERS, (1.0, -1.0), strict=True))
    return robot.with_links(tuple(bare if one is link else one for one in robot.links)), (left, right)


def _holds(geom: Geom, point: np.ndarray) -> bool:
    """Whether a box lies around a point, both in the link's frame."""
    if geom.shape != "box":
        return False
    inside = from_quaternion(geom.quaternion).T @ (point - np.array(geom.position))
    return bool(np.all(np.abs(inside) <= np.array(geom.size)))
