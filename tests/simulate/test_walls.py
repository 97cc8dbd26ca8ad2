"""A stiff wall at the hand and at the elbow of every arm: the contact settles at 1 kHz."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.formats.mjcf import write_mjcf
from retorque.robots.robot import Frame, Robot
from retorque.simulate.scene import Scene, Wall
from retorque.simulate.target import Target

ARMS = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1", "ur10e", "arx_x5", "xmate3")
PUSHES = np.array([5.0, 15.0])
"""[N]"""


class Gap:
    """How far a wall is from the moving links of a robot at home."""

    def __init__(self, robot: Robot, wall: Wall):
        spec = mujoco.MjSpec.from_string(write_mjcf(robot))
        for key in list(spec.keys):
            spec.delete(key)
        body = spec.worldbody.add_body(name="wall", mocap=True)
        body.add_geom(name="wall", type=mujoco.mjtGeom.mjGEOM_BOX, size=wall.geom_size, pos=wall.geom_position)
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.data.qpos[:] = robot.home
        moving = {link.name for link in robot.moving_links}
        bodies = [self.model.body(int(b)).name for b in self.model.geom_bodyid]
        self.shapes = [g for g, name in enumerate(bodies) if name in moving]

    def __call__(self, pose: np.ndarray) -> float:
        self.data.mocap_pos[0], self.data.mocap_quat[0] = pose[:3], pose[3:]
        mujoco.mj_kinematics(self.model, self.data)
        wall = self.model.geom("wall").id
        return min(mujoco.mj_geomDistance(self.model, self.data, wall, g, 1.0, None) for g in self.shapes)


def _free_place(robot: Robot, body: RigidBody, links: list[str], wall: Wall) -> tuple[Frame, np.ndarray, np.ndarray]:
    """A wall 3 - 8 mm before one of these links: its frame, the wall's normal and its pose.

    The wall comes from 0.4 m away, along a direction in which the link moves easily, and must meet nothing else.
    """
    gap = Gap(robot, wall)
    for link in links:
        frame = robot.end_effector if robot.end_effector.link == link else Frame(link=link)
        at = body.frame_pose(frame, robot.home)[0]
        directions = np.concatenate([np.eye(3), -np.eye(3)])
        ease = [np.linalg.norm(body.jacobian(frame, robot.home)[:3].T @ d) for d in directions]
        for k in np.argsort(ease)[::-1][:4]:
            for distance in np.arange(0.4, 0.0, -0.005):
                pose = Wall.facing(at - distance * directions[k], directions[k])
                if gap(pose) < 0.008:
                    break
            if gap(pose) > 0.003 and distance < 0.15:
                return frame, directions[k], pose
    raise AssertionError("no free place for a wall")


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("where", ("hand", "elbow"))
def test_contact_with_a_stiff_wall_settles(name: str, where: str) -> None:
    robot = Robot.load(name)
    body = RigidBody(robot)
    middle = robot.n // 2
    links = [robot.end_effector.link] if where == "hand" else [robot.moving_links[middle + k].name for k in (0, 1, -1)]
    half = 0.12 if where == "hand" else 0.03
    wall = Wall(stiffness=5000.0, size=(0.02, half, half))
    frame, normal, pose = _free_place(robot, body, links, wall)
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
