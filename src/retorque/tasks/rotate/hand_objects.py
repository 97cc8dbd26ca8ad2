"""The compliance paper's objects for in-hand turning, and where three fingertips take hold of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.robots.robot import Frame
from retorque.simulate.scene import Ball, Box, Cylinder, Object
from retorque.work.array import Array
from retorque.work.errors import unknown

TIPS = {
    "index_ball": Frame(link="if_ds", position=(0.0, -0.035, 0.015), quaternion=(1.0, 0.0, 0.0, 0.0)),
    "middle_ball": Frame(link="mf_ds", position=(0.0, -0.035, 0.015), quaternion=(1.0, 0.0, 0.0, 0.0)),
    "thumb_ball": Frame(link="th_ds", position=(0.0, -0.045, -0.015), quaternion=(1.0, 0.0, 0.0, 0.0)),
}
"""Centres of the round ends of the fingertips that hold."""
TIP_RADIUS = 0.01
"""[m]"""
APART = 0.0227
"""Half the distance between index and middle finger [m]."""
TORSION, ROLLING = 0.002, 0.0002
"""Radii of torsional and rolling friction of a soft fingertip [m]."""


@dataclass(frozen=True, kw_only=True)
class HandObject:
    """One thing to turn; the public code's sizes, masses and friction."""

    thing: Object
    half_height: float
    """From its centre to what it stands on [m]."""
    half_width: float
    """From its centre to the surface that the fingers touch [m]."""
    flat: bool = False
    """Whether index and middle finger touch it along the same normal."""
    firmness: float = 1.0
    """Times the usual grip: flat things slip where round ones would be squeezed out."""
    quaternion: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
    """How it is handed over, (w, x, y, z)."""

    def grasp(self) -> tuple[Array, Array]:
        """Tip centres (3, 3) from the object's centre [m], and unit normals (3, 3) into the object."""
        reach = self.half_width + TIP_RADIUS
        if self.flat:
            centres = np.array([[reach, -APART, 0.0], [reach, APART, 0.0], [-reach, 0.0, 0.0]])
            return centres, np.array([[-1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
        out = np.sqrt(reach**2 - APART**2)
        centres = np.array([[out, -APART, 0.0], [out, APART, 0.0], [-reach, 0.0, 0.0]])
        return centres, -centres / reach

    def grips(self, force: float) -> Array:
        """(3,) normal forces that balance each other, `force` times the firmness at the thumb [N]."""
        _, normals = self.grasp()
        thumb = self.firmness * force
        each = -0.5 * thumb / normals[0, 0]
        return np.array([each, each, thumb])


HAND_OBJECTS = {
    "sphere": HandObject(
        thing=Ball(
            name="object",
            radius=0.0343,
            mass=0.06,
            friction=0.8,
            torsional_friction=TORSION,
            rolling_friction=ROLLING,
        ),
        half_height=0.0343,
        half_width=0.0343,
    ),
    "cube": HandObject(
        thing=Box(
            name="object",
            size=(0.03, 0.03, 0.03),
            mass=0.1,
            friction=1.0,
            torsional_friction=TORSION,
            rolling_friction=ROLLING,
        ),
        half_height=0.03,
        half_width=0.03,
        flat=True,
        firmness=1.5,
    ),
    "cylinder": HandObject(
        thing=Cylinder(
            name="object",
            radius=0.0325,
            half_length=0.0605,
            mass=0.1,
            friction=0.8,
            torsional_friction=TORSION,
            rolling_friction=ROLLING,
        ),
        half_height=0.0325,
        half_width=0.0325,
        flat=True,
        firmness=1.5,
        quaternion=(0.5**0.5, 0.5**0.5, 0.0, 0.0),  # its axis lies along the hand's width
    ),
}
"""By name."""


def hand_object(name: str) -> HandObject:
    """The object of that name."""
    if name not in HAND_OBJECTS:
        raise unknown("object", name, HAND_OBJECTS)
    return HAND_OBJECTS[name]
