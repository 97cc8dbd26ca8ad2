"""A robot that has a bit of everything."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.robots.robot import Frame, Joint, Link, Robot


@pytest.fixture(scope="session")
def tangled() -> Robot:
    """A sliding cart with a sloped axis, a passive pole and a second branch."""
    links = (
        Link(
            name="cart",
            parent="world",
            joint=Joint(name="slide", kind="prismatic", axis=(0.6, 0.0, 0.8), torque_limit=20.0),
            mass=1.5,
            centre=(0.1, 0.0, 0.0),
            inertia=(0.1, 0.1, 0.1, 0.0, 0.0, 0.0),
        ),
        Link(
            name="pole",
            parent="cart",
            joint=Joint(name="hinge", axis=(0.0, 1.0, 0.0), torque_limit=0.0),
            position=(0.0, 0.1, 0.2),
            mass=0.5,
            centre=(0.0, 0.0, 0.5),
            inertia=(0.04, 0.05, 0.02, 0.001, 0.0, 0.0),
        ),
        Link(
            name="arm",
            parent="cart",
            joint=Joint(name="elbow", axis=(0.0, 0.6, 0.8), torque_limit=5.0),
            position=(0.3, 0.0, 0.0),
            quaternion=(0.8, 0.6, 0.0, 0.0),
            mass=0.7,
            centre=(0.2, 0.1, 0.0),
            inertia=(0.02, 0.03, 0.04, 0.0, 0.002, 0.0),
        ),
    )
    end = Frame(link="arm")
    return Robot(name="tangled", links=links, home=np.zeros(3), end_effector=end, payload_mount=end)
