"""ToddlerBot's right arm on a torso that is held: what UniFP and FACET are trained on and act on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.robots.robot import Robot
from retorque.work.array import Array

SITE = "pen"
"""The frame that touches."""


def force_arm(robot: Robot, start: Array) -> tuple[Robot, Array]:
    """The chain from the held base to `SITE` as a robot of its own, at home where the whole one starts.

    Args:
        robot: with the pen among its frames.
        start: (n,) of the whole robot [rad].

    Returns:
        The arm, and which of the whole robot's joints are its own (arm's n,).
    """
    by_name = {link.name: link for link in robot.links}
    chain = [by_name[robot.frame(SITE).link]]
    while chain[0].parent in by_name:
        chain.insert(0, by_name[chain[0].parent])
    names = [link.name for link in chain]
    joints = np.array([robot.joint_names.index(link.joint.name) for link in chain[1:] if link.joint is not None])
    held = replace(chain[0], joint=None)
    frames = {name: frame for name, frame in robot.frames.items() if frame.link in names}
    home = np.asarray(start, dtype=float)[joints]
    return replace(robot, links=(held, *chain[1:]), frames=frames, home=home), joints
