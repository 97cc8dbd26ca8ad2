"""The ball as two passive slides on the plate, so that arm and ball are one tree that the planner knows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.robots.robot import Joint, Link, Robot
from retorque.robots.rotation import from_quaternion
from retorque.tasks.ball.plate import BALL_MASS, BALL_RADIUS

SPIN = 0.4
"""Moment of inertia of a solid ball in m r²: rolling feels like so much more mass along the plate."""


def ball_tree(robot: Robot) -> Robot:
    """The robot with the plate, and two slides that carry the ball; the last two joints are its place on the plate [m].

    A rolling ball takes up 5/7 of an acceleration: the slides' armature is its spin. It keeps its spin while the plate
    turns under it, as if its centre were 7/5 of its radius above the plate.
    """
    plate = robot.frame("plate")
    turn = from_quaternion(plate.quaternion)
    x, y, z = (float(v) for v in np.array(plate.position) + turn @ np.array([0.0, 0.0, (1.0 + SPIN) * BALL_RADIUS]))
    small = (1e-7, 1e-7, 1e-7, 0.0, 0.0, 0.0)
    links = []
    for name, axis, mass in (("ball_x", (1.0, 0.0, 0.0), 1e-4), ("ball_y", (0.0, 1.0, 0.0), BALL_MASS - 1e-4)):
        joint = Joint(name=name, kind="prismatic", axis=axis, torque_limit=0.0, armature=SPIN * BALL_MASS)
        first = name == "ball_x"
        links.append(
            Link(
                name=name,
                parent=plate.link if first else "ball_x",
                joint=joint,
                position=(x, y, z) if first else (0.0, 0.0, 0.0),
                quaternion=plate.quaternion if first else (1.0, 0.0, 0.0, 0.0),
                mass=mass,
                inertia=small,
            )
        )
    return replace(
        robot,
        name=f"{robot.name} with a ball",
        links=(*robot.links, *links),
        home=np.concatenate([robot.home, np.zeros(2)]),
        profile=None,
    )
