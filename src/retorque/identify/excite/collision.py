"""How near a robot's links come to each other, by the capsules of its card in MuJoCo."""

from __future__ import annotations

import mujoco
import numpy as np

from retorque.robots.formats.mjcf_writer import to_mjmodel
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


class Clearance:
    """Smallest distance between links that are not neighbours.

    Links that touch at home are neighbours too: there the capsules overlap, not the robot.

    Args:
        robot: its shapes are capsules made from the tree.
        within: distances larger than this [m] need not be known.
    """

    def __init__(self, robot: Robot, within: float):
        self.model = to_mjmodel(robot, contact=True)
        self.model.geom_margin[:] = 0.5 * within
        self.data = mujoco.MjData(self.model)
        if self.model.nq != robot.n:
            raise RetorqueError(f"'{robot.name}' must have a fixed base")

    def smallest(self, q: Array) -> float:
        """Over poses (samples, n) [m]; infinite where nothing came near, negative where links overlap."""
        least = np.inf
        for pose in q:
            self.data.qpos[:] = pose
            mujoco.mj_kinematics(self.model, self.data)
            mujoco.mj_comPos(self.model, self.data)
            mujoco.mj_collision(self.model, self.data)
            if self.data.ncon:
                least = min(least, float(np.min(self.data.contact.dist[: self.data.ncon])))
        return least
