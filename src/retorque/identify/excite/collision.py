"""How near a robot comes to itself and to its cell, by the shapes of its card in MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np

from retorque.identify.excite.cell import Cell
from retorque.robots import rotation
from retorque.robots.formats.mjcf_writer import write_mjcf
from retorque.robots.robot import Geom, Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

_SHAPE = {
    "box": mujoco.mjtGeom.mjGEOM_BOX,
    "sphere": mujoco.mjtGeom.mjGEOM_SPHERE,
    "capsule": mujoco.mjtGeom.mjGEOM_CAPSULE,
    "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
}
_MARK = "cell/"
"""Begins the names of shapes that are not the robot's own."""


class Clearance:
    """Smallest distance between links that are not neighbours, and between links and what stands in the cell.

    Links that touch at home are neighbours too: there the capsules overlap, not the robot. The first moving link may
    be as near to floor and walls as it is, for it is bolted there; any other that touches them at home is refused.

    Args:
        robot: its shapes are its card's, or capsules made from the tree.
        within: distances larger than this [m] need not be known.
        cell: what stands around it, and the tool in its hand.
    """

    def __init__(self, robot: Robot, within: float, cell: Cell | None = None):
        spec = mujoco.MjSpec.from_string(write_mjcf(replace(robot, friction=None), contact=True))
        self._add(spec, robot, cell or Cell())
        for geom in spec.geoms:
            geom.margin = 0.5 * within  # before compiling: the engine's first, coarse look needs it as well
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        if self.model.nq != robot.n:
            raise RetorqueError(f"'{robot.name}' must have a fixed base")
        self._check_home(robot)

    def _add(self, spec: mujoco.MjSpec, robot: Robot, cell: Cell) -> None:
        """The cell's walls and things in the world, the tool on the last link.

        Bits keep them apart: 1 collides with 1 (the links), 2 with links and tool only.
        """
        for geom in spec.geoms:
            geom.contype, geom.conaffinity = 1, 3
        first = robot.moving_links[0].name
        for geom in spec.geoms:
            if geom.parent.name == first:
                geom.conaffinity = 1  # bolted to the floor
        for wall in cell.walls:
            normal = np.array(wall.normal)
            across = np.cross(np.eye(3)[np.argmin(np.abs(normal))], normal)
            across /= np.linalg.norm(across)
            turn = np.stack([across, np.cross(normal, across), normal], axis=1)
            spec.worldbody.add_geom(
                name=_MARK + wall.name, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0],
                pos=wall.offset * normal, quat=rotation.to_quaternion(turn), contype=2, conaffinity=0,
            )  # fmt: skip
        for name, thing in cell.things:
            self._shape(spec.worldbody, name, thing, thing.position, thing.quaternion)
        if cell.tool is not None:
            frame = robot.end_effector
            facing = rotation.from_quaternion(frame.quaternion)
            at = np.array(frame.position) + facing @ np.array(cell.tool.position)
            turn = facing @ rotation.from_quaternion(cell.tool.quaternion)
            geom = self._shape(spec.body(frame.link), "tool", cell.tool, at, rotation.to_quaternion(turn))
            geom.contype, geom.conaffinity = 1, 3  # as any shape of that link

    @staticmethod
    def _shape(
        body: mujoco.MjsBody, name: str, shape: Geom, position: Sequence[float] | Array, quaternion: Sequence[float]
    ) -> mujoco.MjsGeom:
        size = [*shape.size, 0.0, 0.0][:3]
        return body.add_geom(
            name=_MARK + name, type=_SHAPE[shape.shape], size=size, pos=position, quat=quaternion,
            contype=2, conaffinity=0,
        )  # fmt: skip

    def _check_home(self, robot: Robot) -> None:
        distance, pair = self.nearest(np.asarray(robot.home, dtype=float)[None])
        if distance < 0.0 and any(_MARK in name for name in pair):
            first, second = (name.removeprefix(_MARK).split("#")[0] for name in pair)
            raise RetorqueError(
                f"at home {first} and {second} of '{robot.name}' overlap by {-1000 * distance:.0f} mm; move what "
                "stands in the cell, or give another --floor (nan: none)"
            )

    def distances(self, q: Array) -> Array:
        """(samples,) smallest distance of each pose (samples, n) [m]; infinite where nothing is near."""
        out = np.full(len(q), np.inf)
        for index, pose in enumerate(q):
            self._place(pose)
            if self.data.ncon:
                out[index] = np.min(self.data.contact.dist[: self.data.ncon])
        return out

    def smallest(self, q: Array) -> float:
        """Over poses (samples, n) [m]; infinite where nothing came near, negative where links overlap."""
        return float(np.min(self.distances(q), initial=np.inf))

    def nearest(self, q: Array) -> tuple[float, tuple[str, str]]:
        """The smallest distance over poses (samples, n) [m], and the names of the two shapes."""
        least, pair = np.inf, ("", "")
        for pose in q:
            self._place(pose)
            for contact in self.data.contact[: self.data.ncon]:
                if contact.dist < least:
                    least = float(contact.dist)
                    pair = (self.model.geom(contact.geom[0]).name, self.model.geom(contact.geom[1]).name)
        return least, pair

    def _place(self, pose: Array) -> None:
        self.data.qpos[:] = pose
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_collision(self.model, self.data)
