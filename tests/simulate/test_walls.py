"""A stiff wall at the hand and at the elbow of every arm: the contact settles at 1 kHz."""

from __future__ import annotations

import numpy as np
import pytest
from walls import ARMS, free_place

from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.scene import Scene, Wall
from retorque.simulate.target import Target

PUSHES = np.array([5.0, 15.0])
"""[N]"""


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("where", ("hand", "elbow"))
def test_contact_with_a_stiff_wall_settles(name: str, where: str) -> None:
    robot = Robot.load(name)
    body = RigidBody(robot)
    middle = robot.n // 2
    links = [robot.end_effector.link] if where == "hand" else [robot.moving_links[middle + k].name for k in (0, 1, -1)]
    half = 0.12 if where == "hand" else 0.03
    wall = Wall(stiffness=5000.0, size=(0.02, half, half))
    frame, normal, pose = free_place(robot, body, links, wall)
    target = Target(robot, Parameters.ideal(robot, len(PUSHES)), scene=Scene(objects=[wall]), threads=1)
    target.place("wall", pose)
    stiffness = profile_of(robot).tracking_stiffness
    damping = critical_damping(robot, stiffness)
    push = -PUSHES[:, None] * (normal @ body.jacobian(frame, robot.home)[:3])
    forces = []
    for tick in range(2500):
        q, qd = target.position.copy(), target.velocity.copy()
        torque = stiffness * (robot.home - q) - damping * qd + body.gravity(q) + push * min(1.0, tick / 500.0)
        target.write(Command(torque=torque))
        forces.append(target.contact_force("robot", by="wall") @ normal)
    late = np.array(forces[-500:])
    assert not target.diverged.any()
    assert late[:, -1].max() > 3.0  # it touches
    # Contact points may change and links may creep along the wall, but nothing chatters [N a tick].
    assert np.median(np.abs(np.diff(late, axis=0)), axis=0).max() < 0.05
    assert np.max(forces) < 5.0 * PUSHES[-1]
