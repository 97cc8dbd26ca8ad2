"""Random end-effector waypoints: the operational-space segment of the source-to-OSC bench (TAM, D.1)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from retorque.control.action import PoseAction
from retorque.control.inverse_kinematics import solve
from retorque.control.reference import Reference, minimum_jerk
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

POSITION_BOUNDS = np.array([[0.05, 0.42], [-0.18, 0.18], [-0.40, 0.14]])
"""Displacement from the first pose, for an arm of the Panda's reach [m]."""
ANGLE_BOUNDS = np.deg2rad([[-40.0, 40.0], [-35.0, 35.0], [-60.0, 60.0]])
"""Roll, pitch, yaw from the first pose [rad]."""
PANDA_REACH = 0.855
"""[m]"""


class PoseWaypoints(Reference):
    """Minimum-jerk moves of a frame from a first pose through waypoints, each in an equal share of the duration.

    Args:
        position: (trials, count, 3), the first pose included [m].
        rotation: (trials, count, 3, 3).
        duration: of the whole motion [s].
    """

    def __init__(self, position: Array, rotation: Array, duration: float):
        if not np.all(np.isfinite(position)) or not np.all(np.isfinite(rotation)) or not duration > 0.0:
            raise RetorqueError("pose waypoints must be finite and last longer than 0 s")
        self.position, self.rotation, self.duration = position, rotation, duration
        turn = np.matmul(rotation[:, 1:], np.swapaxes(rotation[:, :-1], -1, -2))
        self._turn = Rotation.from_matrix(turn.reshape(-1, 3, 3)).as_rotvec().reshape(*turn.shape[:2], 3)

    @classmethod
    def sample(cls, robot: Robot, trials: int, duration: float, seed: int, *, waypoints: int = 5) -> PoseWaypoints:
        """Waypoints in the bounds of D.1 around the home pose, drawn again until the arm reaches them."""
        rng = np.random.default_rng(seed)
        body = RigidBody(robot)
        origin, turned = body.frame_pose(robot.end_effector, robot.home)
        scale = min(1.0, _reach(robot) / PANDA_REACH)
        position = np.broadcast_to(origin, (trials, waypoints + 1, 3)).copy()
        rotation = np.broadcast_to(turned, (trials, waypoints + 1, 3, 3)).copy()
        missing = np.argwhere(np.ones((trials, waypoints), dtype=bool))
        for _ in range(60):
            shift = rng.uniform(POSITION_BOUNDS[:, 0], POSITION_BOUNDS[:, 1], (len(missing), 3)) * scale
            angles = rng.uniform(ANGLE_BOUNDS[:, 0], ANGLE_BOUNDS[:, 1], (len(missing), 3)) * scale
            at = origin + shift
            turn = np.matmul(Rotation.from_euler("xyz", angles).as_matrix(), turned)
            joints, error = solve(body, robot.end_effector, at, turn, robot.home)
            # Near a singular pose the operational-space spring has no say over some joint: such waypoints are no test.
            spread = np.linalg.svd(body.jacobian(robot.end_effector, joints), compute_uv=False)[..., -1]
            good = (error < 1e-3) & (spread > 0.05 * scale)
            rows = missing[good]
            position[rows[:, 0], rows[:, 1] + 1] = at[good]
            rotation[rows[:, 0], rows[:, 1] + 1] = turn[good]
            missing = missing[~good]
            if len(missing) == 0:
                return cls(position, rotation, duration)
        raise RetorqueError(f"robot '{robot.name}' cannot reach enough waypoints around its home pose; move its home")

    def at(self, time: float) -> PoseAction:
        count = self.position.shape[1] - 1
        length = self.duration / count
        index = min(int(max(time, 0.0) / length), count - 1)
        step, rate = minimum_jerk(np.array((time - index * length) / length))
        move = self.position[:, index + 1] - self.position[:, index]
        turn = self._turn[:, index]
        rotation = np.matmul(Rotation.from_rotvec(turn * step).as_matrix(), self.rotation[:, index])
        rate = rate / length
        return PoseAction(self.position[:, index] + move * step, rotation, move * rate, turn * rate)


def _reach(robot: Robot) -> float:
    """Length of the chain to the end-effector without its pedestal [m]."""
    link, total = robot.link(robot.end_effector.link), float(np.linalg.norm(robot.end_effector.position))
    while link.parent != "world" and robot.link(link.parent).joint is not None:
        total += float(np.linalg.norm(link.position))
        link = robot.link(link.parent)
    return total
