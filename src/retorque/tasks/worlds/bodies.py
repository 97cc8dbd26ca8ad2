"""Targets whose tree is not the one that was told, and ranges wider than those told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.robots.profile import Profile
from retorque.robots.robot import Link, Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.errors import unknown

BODIES = ("tilted", "longer")
TILT = np.deg2rad(5.0)
"""[rad]"""
LONGER = 0.03
"""[m]"""


def true_body(robot: Robot, kind: str) -> Robot:
    """The robot as it really is: the same, on a tilted base, or with a link in the middle that is longer."""
    if not kind:
        return robot
    if kind not in BODIES:
        raise unknown("body", kind, BODIES)
    if kind == "tilted":
        c, s = np.cos(TILT), np.sin(TILT)
        x, y, z = np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]]) @ np.array(robot.gravity)
        return replace(robot, gravity=(float(x), float(y), float(z)))
    middle = robot.moving_links[robot.n // 2].name
    return robot.with_links(tuple(_longer(link) if link.parent == middle else link for link in robot.links))


def _longer(link: Link) -> Link:
    """Farther out along the way from its parent's joint, or along its parent's z axis where there is none."""
    at = np.array(link.position)
    away = at if np.linalg.norm(at) > 1e-6 else from_quaternion((1.0, 0.0, 0.0, 0.0))[:, 2]
    x, y, z = (float(v) for v in at + LONGER * away / np.linalg.norm(away))
    return replace(link, position=(x, y, z))


def wider(profile: Profile, times: float) -> Profile:
    """Ranges so many times as wide, about the same ideal robot."""
    p = profile

    def about_one(pair: tuple[float, float]) -> tuple[float, float]:
        low, high = pair
        return max(0.05, 1.0 - times * (1.0 - low)), 1.0 + times * (high - 1.0)

    return replace(
        p,
        armature_min=p.armature_min / times,
        armature_max=p.armature_max * times,
        friction_max=p.friction_max * times,
        viscous_max=p.viscous_max * times,
        bias_max=p.bias_max * times,
        dead_zone_max=p.dead_zone_max * times,
        payload_mass=(p.payload_mass[0], p.payload_mass[1] * times),
        payload_centre=p.payload_centre * times,
        mass_scale=about_one(p.mass_scale),
        centre_offset=p.centre_offset * times,
        torque_scale=about_one(p.torque_scale),
    )
