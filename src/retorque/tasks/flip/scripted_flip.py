"""The scripted demonstrator: over the cube's near side, along an arc about its far edge, and away."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from retorque.control.action import JointAction
from retorque.control.inverse_kinematics import solve
from retorque.control.reference import minimum_jerk
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.flip.flip_task import EDGE
from retorque.tasks.flip.gripper import CLOSED, OPEN
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class FlipScript:
    """The motion, in the vertical plane through the cube; chosen on the ideal robot."""

    approach: float = 1.5
    """Time to a point above and behind the cube [s]."""
    close: float = 0.3
    """The gripper is told to close after this [s]."""
    lower: float = 0.8
    """Time to come down behind it [s]."""
    turn: float = 1.8
    """Time along the arc [s]."""
    retract: float = 0.8
    """Time to leave upwards [s]."""
    clearance: float = 0.02
    """Behind the cube before the arc begins [m]."""
    touch_height: float = 0.048
    """Of the fingertips' lower end where they touch [m]."""
    lead: float = 0.06
    """How far ahead of the touching point the arc runs: soft joints push by being late [m]."""
    sweep: float = 1.3
    """Angle of the arc [rad]."""
    tip_below: float = 0.0085
    """The fingertips end below the end-effector's frame [m]."""
    tip_half: float = 0.0085
    """Half of their thickness [m]."""


class ScriptedFlip:
    """Joint targets at 20 Hz along the script, from where the cube stands at the start.

    Args:
        robot: the ideal robot.
        script: the motion.
    """

    period = 0.05

    def __init__(self, robot: Robot, script: FlipScript | None = None):
        self.robot, self.script = robot, script or FlipScript()
        self._body = RigidBody(robot)

    def reset(self, state: State) -> None:
        assert state.objects is not None
        cube = state.objects[..., 0, :]
        path, rotation = self._path(state.position, cube)
        start = np.broadcast_to(self.robot.home, (*path.shape[:-1], self.robot.n))
        self._joints, _ = solve(self._body, self.robot.end_effector, path, rotation, start, iterations=40)
        self._begun = state.time

    def act(self, state: State) -> JointAction:
        index = min(round((state.time - self._begun) / self.period), len(self._joints) - 1)
        closed = state.time - self._begun > self.script.close - 1e-9
        gripper = np.full(self._joints[index].shape[:-1], CLOSED if closed else OPEN)
        return JointAction(self._joints[index], np.zeros_like(self._joints[index]), gripper=gripper)

    def _path(self, q: Array, cube: Array) -> tuple[Array, Array]:
        """Positions (steps, ..., 3) and rotations (steps, ..., 3, 3) of the end-effector every period."""
        s = self.script
        start, turned = self._body.frame_pose(self.robot.end_effector, q)
        w, x, y, z = np.moveaxis(cube[..., 3:7], -1, 0)
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        ahead = np.stack([np.cos(yaw), np.sin(yaw), np.zeros_like(yaw)], axis=-1)
        up = np.array([0.0, 0.0, 1.0])
        half = EDGE / 2.0
        pivot = cube[..., :3] * [1.0, 1.0, 0.0] + half * ahead
        behind = pivot - (EDGE + s.tip_half + s.clearance) * ahead
        low = s.touch_height + s.tip_below
        radius = np.hypot(EDGE + s.tip_half, low)
        first = np.arctan2(low, -(EDGE + s.tip_half))
        points = [start, behind + (low + 0.06) * up, behind + low * up]
        times = [s.approach, s.lower]
        path = [_line(a, b, t, self.period) for a, b, t in zip(points, points[1:], times, strict=False)]
        steps = round(s.turn / self.period)
        arc = []
        for k in range(1, steps + 1):
            phase = k / steps
            angle = first - s.sweep * phase
            arc.append(pivot + s.lead * ahead + radius * (np.cos(angle) * ahead + np.sin(angle) * up))
        for k in range(steps // 4):  # from behind the cube onto the arc
            there = (k + 1) / (steps // 4)
            arc[k] = (1.0 - there) * (behind + low * up) + there * arc[k]
        path.append(np.array(arc))
        last = arc[-1]
        path.append(_line(last, last + 0.12 * up - 0.03 * ahead, s.retract, self.period))
        positions = np.concatenate([start[None], *path])
        share = np.clip(np.arange(len(positions)) / round(s.approach / self.period), 0.0, 1.0)
        turns = Rotation.from_rotvec((np.multiply.outer(share, yaw)[..., None] * up).reshape(-1, 3)).as_matrix()
        turns = turns.reshape(len(positions), *np.shape(yaw), 3, 3)
        return positions, np.matmul(turns, turned)


def _line(a: Array, b: Array, time: float, period: float) -> Array:
    """Points (steps, ..., 3) every period on a smooth straight move, without its first."""
    steps = round(time / period)
    phase, _ = minimum_jerk(np.arange(1, steps + 1) / steps)
    return a + phase.reshape(-1, *(1,) * a.ndim) * (b - a)
