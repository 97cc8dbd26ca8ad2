"""Walls of the worlds bench: a free place before the hand or the elbow, and the move that presses against it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from retorque.control.reference import minimum_jerk
from retorque.physics.rigid_body import RigidBody
from retorque.robots.formats.mjcf_writer import write_mjcf
from retorque.robots.robot import Frame, Robot
from retorque.simulate.scene import Wall
from retorque.simulate.target import Target
from retorque.tasks.worlds.motions import LEARN, REACH
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STIFF, SOFT = 5000.0, 1000.0
"""Stiffness of a wall, and of one that leans [N/m]."""
DEPTH = {"wall": 0.05, "wall-elbow": 0.03, "wall-lean": 0.06}
"""How far the reference goes beyond the wall, or the wall comes [m]."""
GAP = 0.03
"""Between the robot at home and the wall [m]."""
FAR = 5.0
"""Where the wall waits while the robot learns [m]."""
HALF = {"wall": 0.12, "wall-elbow": 0.04, "wall-lean": 0.12}
"""Half its width and height [m]."""
THICK = 0.1
"""Half its thickness [m]."""
LEAN_END = 14.0
"""When a wall that leans goes away again [s]."""
END = 0.5
"""The end force is the mean over the last so many seconds [s]."""


@dataclass(frozen=True)
class WallPlace:
    """Where a wall stands, and what the robot does about it."""

    kind: str
    normal: Array
    """(3,) out of the wall, towards the robot."""
    pose: Array
    """(7,) of its face, `GAP` before the robot at home."""
    change: Array
    """(n,) joint move that would carry the touching link `DEPTH` beyond the face [rad]."""

    @property
    def wall(self) -> Wall:
        """The thing itself."""
        half = HALF[self.kind]
        stiffness = SOFT if self.kind == "wall-lean" else STIFF
        return Wall(stiffness=stiffness, size=(THICK, half, half))

    def put(self, target: Target, time: float) -> None:
        """Place the wall as it stands at a time [s]."""
        pose = self.pose.copy()
        pose[:3] += self.normal * (self._advance(time) if time >= LEARN else -FAR)
        target.place("wall", pose)

    def force(self, target: Target) -> Array:
        """How hard the robots press on the wall (trials,) [N]."""
        return -target.contact_force("wall") @ self.normal

    @property
    def until(self) -> float:
        """Until when it is there [s]."""
        return LEAN_END if self.kind == "wall-lean" else np.inf

    def moves(self, time: float) -> bool:
        """Whether it is to be placed anew at a time."""
        return self.kind == "wall-lean" and LEARN <= time <= LEAN_END + REACH

    def _advance(self, time: float) -> float:
        if self.kind != "wall-lean":
            return 0.0
        there, _ = minimum_jerk(np.array((time - LEARN) / REACH))
        back, _ = minimum_jerk(np.array((time - LEAN_END) / REACH))
        return float(there - back) * (GAP + DEPTH[self.kind])


def _place(robot: Robot, kind: str) -> WallPlace | None:
    body, gap = RigidBody(robot), _Gap(robot, HALF[kind])
    links = [robot.end_effector.link]
    if kind == "wall-elbow":
        links = [robot.moving_links[robot.n // 2 + k].name for k in (0, 1, -1)]
    # Level directions first: there the weight of what is hidden moves the robot least before it touches.
    directions = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], dtype=float)
    for link in links:
        frame = robot.end_effector if robot.end_effector.link == link else Frame(link=link)
        at, jacobian = body.frame_pose(frame, robot.home)[0], body.jacobian(frame, robot.home)[:3]
        ease = np.array([np.linalg.norm(jacobian.T @ d) for d in directions]) * np.where(directions[:, 2] == 0, 1, 0.5)
        for k in np.argsort(-ease, kind="stable")[:4]:
            normal = directions[k]
            distance = gap.closest(at, normal)
            if distance is None:
                continue
            forward = np.linalg.lstsq(jacobian, -normal * (GAP + DEPTH[kind]), rcond=0.05)[0]
            return WallPlace(kind, normal, Wall.facing(at - (distance + GAP) * normal, normal), forward)
    return None


def wall_place(robot: Robot, kind: str) -> WallPlace | None:
    """Where a wall of that kind stands; None where the world has none. A robot without a free place is refused."""
    if not kind.startswith("wall"):
        return None
    place = _place(robot, kind)
    if place is None:
        raise RetorqueError(f"robot '{robot.name}' has no free place for the world '{kind}'; leave it out")
    return place


class _Gap:
    """How far a wall is from the moving links of a robot at home."""

    def __init__(self, robot: Robot, half: float):
        spec = mujoco.MjSpec.from_string(write_mjcf(robot))
        for key in list(spec.keys):
            spec.delete(key)
        body = spec.worldbody.add_body(name="wall", mocap=True)
        body.add_geom(name="wall", type=mujoco.mjtGeom.mjGEOM_BOX, size=[THICK, half, half], pos=[-THICK, 0.0, 0.0])
        self._model = spec.compile()
        self._data = mujoco.MjData(self._model)
        self._data.qpos[:] = robot.home
        moving = {link.name for link in robot.moving_links}
        bodies = [self._model.body(int(b)).name for b in self._model.geom_bodyid]
        self._shapes = [g for g, name in enumerate(bodies) if name in moving]

    def closest(self, at: Array, normal: Array) -> float | None:
        """How near to a point (3,) the wall can come from half a metre away before it touches [m]."""
        last = None
        for distance in np.arange(0.5, 0.0, -0.005):
            if self._between(Wall.facing(at - distance * normal, normal)) < 1e-3:
                break
            last = float(distance)
        return last if last is not None and last < 0.25 else None

    def _between(self, pose: Array) -> float:
        self._data.mocap_pos[0], self._data.mocap_quat[0] = pose[:3], pose[3:]
        mujoco.mj_kinematics(self._model, self._data)
        wall = self._model.geom("wall").id
        return min(mujoco.mj_geomDistance(self._model, self._data, wall, g, 1.0, None) for g in self._shapes)
