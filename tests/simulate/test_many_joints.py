"""Robots with hundreds of joints: simulated, or refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Frame, Joint, Link, Robot
from retorque.robots.validate import check
from retorque.simulate.scene import Floor, Scene
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError


def _snake(joints: int) -> Robot:
    links = tuple(
        Link(
            name=f"link{k}",
            parent=f"link{k - 1}" if k else "world",
            position=(0.0, 0.0, 0.05),
            joint=Joint(name=f"joint{k}", axis=(1.0, 0.0, 0.0) if k % 2 else (0.0, 1.0, 0.0), armature=0.01),
            mass=0.1,
            inertia=(1e-4, 1e-4, 1e-4, 0.0, 0.0, 0.0),
        )
        for k in range(joints)
    )
    end = Frame(link=links[-1].name)
    return Robot(name="snake", links=links, home=np.zeros(joints), end_effector=end, payload_mount=end)


@pytest.mark.parametrize("scene", (None, Scene(objects=[Floor(position=(0.0, 0.0, -20.0))])))
def test_two_hundred_joints_are_simulated(scene: Scene | None) -> None:
    robot = check(_snake(200), "snake")
    target = Target(robot, Parameters.ideal(robot, 2), scene=scene, threads=1)
    target.reset(np.full(200, 0.01))
    for _ in range(20):
        target.write(Command(torque=np.zeros((2, 200))))
    assert not target.diverged.any() and np.abs(target.velocity).max() > 1e-3


def test_more_than_can_be_simulated_are_refused() -> None:
    robot = _snake(301)
    with pytest.raises(RetorqueError, match="at most 300"):
        Target(robot, Parameters.ideal(robot))
