"""Small robots for the tests: a cart with a pole, a sliding ball."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.robots.robot import Frame, Geom, Joint, Link, Robot


@pytest.fixture(scope="session")
def slider() -> Robot:
    """A ball of 5 cm radius and 2 kg that slides along x."""
    link = Link(
        name="carriage",
        parent="world",
        joint=Joint(name="x", kind="prismatic", axis=(1.0, 0.0, 0.0)),
        mass=2.0,
        inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0),
        geoms=(Geom(shape="sphere", size=(0.05,)),),
    )
    frame = Frame(link="carriage")
    return Robot(name="slider", links=(link,), home=np.zeros(1), end_effector=frame, payload_mount=frame)


@pytest.fixture(scope="session")
def cart_pole() -> Robot:
    """A cart that is pushed along x, with a passive pole of 1 m; its mass is at its tip, upright at zero."""
    inertia = 1e-6
    links = (
        Link(
            name="cart",
            parent="world",
            joint=Joint(name="slide", kind="prismatic", axis=(1.0, 0.0, 0.0), torque_limit=20.0),
            mass=1.0,
            inertia=(0.01, 0.01, 0.01, 0.0, 0.0, 0.0),
        ),
        Link(
            name="pole",
            parent="cart",
            joint=Joint(name="hinge", axis=(0.0, 1.0, 0.0), torque_limit=0.0),
            mass=0.5,
            centre=(0.0, 0.0, 1.0),
            inertia=(inertia, inertia, inertia, 0.0, 0.0, 0.0),
        ),
    )
    tip = Frame(link="pole", position=(0.0, 0.0, 1.0))
    return Robot(name="cart_pole", links=links, home=np.zeros(2), end_effector=tip, payload_mount=tip)
