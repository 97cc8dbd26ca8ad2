"""Walls before the links of an arm, for tests."""

from __future__ import annotations

import mujoco
import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.formats.mjcf import write_mjcf
from retorque.robots.robot import Frame, Robot
from retorque.simulate.scene import Wall

ARMS = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1", "ur10e", "arx_x5", "xmate3")
"""Every arm on board."""


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


def free_place(robot: Robot, body: RigidBody, links: list[str], wall: Wall) -> tuple[Frame, np.ndarray, np.ndarray]:
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
