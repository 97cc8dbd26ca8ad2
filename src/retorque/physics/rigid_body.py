"""Rigid-body algebra of one robot, over Pinocchio, for arrays with any leading axes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from retorque.physics.inertia import from_vector, robot_inertia
from retorque.robots.robot import Frame, Joint, Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.array import Array


def _pose(position: tuple[float, ...], quaternion: tuple[float, ...]) -> pin.SE3:
    return pin.SE3(from_quaternion(quaternion), np.array(position, dtype=float))


def _joint_model(joint: Joint) -> pin.JointModel:
    if joint.kind == "free":
        return pin.JointModelFreeFlyer()
    aligned = "XYZ"[int(np.argmax(np.abs(joint.axis)))] if np.isclose(np.max(joint.axis), 1.0, atol=1e-12) else None
    stem = "R" if joint.kind == "revolute" else "P"
    if aligned:
        return getattr(pin, f"JointModel{stem}{aligned}")()
    unaligned = pin.JointModelRevoluteUnaligned if stem == "R" else pin.JointModelPrismaticUnaligned
    return unaligned(np.array(joint.axis, dtype=float))


class RigidBody:
    """Inverse and forward dynamics, mass matrix, bias, regressor, Jacobians and frames of a robot's tree.

    Positions are Pinocchio's `q` (nq,), velocities, accelerations and torques (nv,); for a robot with a fixed base both
    are (n,). Every method takes leading axes: (..., n) in, (..., n) out. Armature counts as inertia; friction does not
    exist here.

    Args:
        robot: the tree.
        inertial: ten parameters for each moving link, (links, 10); default: the robot's own.
        armature: (n,) rotor inertias [kg·m²]; default: the robot's own.
    """

    def __init__(self, robot: Robot, inertial: Array | None = None, armature: Array | None = None):
        self.robot = robot
        self.inertial = robot_inertia(robot) if inertial is None else np.array(inertial, dtype=float)
        self.model = pin.Model()
        self.model.gravity.linear[:] = robot.gravity
        self._joint_id = {"world": 0}
        self._weld = {"world": pin.SE3.Identity()}
        mass, centre, inertia = from_vector(self.inertial)
        index = 0
        for link in robot.links:
            placement = self._weld[link.parent] * _pose(link.position, link.quaternion)
            parent = self._joint_id[link.parent]
            if link.joint is None:
                self._joint_id[link.name], self._weld[link.name] = parent, placement
                continue
            joint_id = self.model.addJoint(parent, _joint_model(link.joint), placement, link.joint.name)
            body = pin.Inertia(float(mass[index]), centre[index], inertia[index])
            self.model.appendBodyToJoint(joint_id, body, pin.SE3.Identity())
            self._joint_id[link.name], self._weld[link.name] = joint_id, pin.SE3.Identity()
            index += 1
        rotor = robot.armature if armature is None else np.array(armature, dtype=float)
        self.model.armature = np.concatenate([np.zeros(self.model.nv - robot.n), rotor])
        self.data = self.model.createData()
        self.nq, self.nv, self.links = self.model.nq, self.model.nv, index
        self._frames: dict[Frame, int] = {}

    def inverse_dynamics(self, q: Array, qd: Array, qdd: Array) -> Array:
        """M(q) qdd + h(q, qd), (..., nv) [N·m]."""
        return self._map(lambda a, b, c: pin.rnea(self.model, self.data, a, b, c), (self.nv,), q, qd, qdd)

    def torque(self, q: Array, qd: Array, qdd: Array) -> Array:
        """`inverse_dynamics`, under the name that every inverse-dynamics model has."""
        return self.inverse_dynamics(q, qd, qdd)

    def forward_dynamics(self, q: Array, qd: Array, torque: Array) -> Array:
        """Acceleration under a torque, (..., nv) [rad/s²]."""
        return self._map(lambda a, b, c: pin.aba(self.model, self.data, a, b, c), (self.nv,), q, qd, torque)

    def mass_matrix(self, q: Array) -> Array:
        """Joint-space inertia with armature, (..., nv, nv) [kg·m²]."""
        found = self._map(lambda a: pin.crba(self.model, self.data, a), (self.nv, self.nv), q)
        return np.triu(found) + np.swapaxes(np.triu(found, 1), -1, -2)

    def bias(self, q: Array, qd: Array) -> Array:
        """Coriolis, centrifugal and gravity torque h(q, qd), (..., nv) [N·m]."""
        return self._map(lambda a, b: pin.nonLinearEffects(self.model, self.data, a, b), (self.nv,), q, qd)

    def gravity(self, q: Array) -> Array:
        """Gravity torque, (..., nv) [N·m]."""
        return self._map(lambda a: pin.computeGeneralizedGravity(self.model, self.data, a), (self.nv,), q)

    def regressor(self, q: Array, qd: Array, qdd: Array) -> Array:
        """Y with Y @ inertial.ravel() + armature * qdd = inverse dynamics, (..., nv, 10 links)."""
        shape = (self.nv, 10 * self.links)
        return self._map(
            lambda a, b, c: pin.computeJointTorqueRegressor(self.model, self.data, a, b, c), shape, q, qd, qdd
        )

    def frame_pose(self, frame: Frame, q: Array) -> tuple[Array, Array]:
        """Position (..., 3) [m] and rotation matrix (..., 3, 3) of a frame in the world."""
        frame_id = self._frame_id(frame)

        def one(a: Array) -> Array:
            pin.framesForwardKinematics(self.model, self.data, a)
            return self.data.oMf[frame_id].homogeneous[:3]

        pose = self._map(one, (3, 4), q)
        return pose[..., 3], pose[..., :3]

    def jacobian(self, frame: Frame, q: Array) -> Array:
        """Linear then angular velocity of a frame, in world axes, per joint velocity, (..., 6, nv)."""
        frame_id = self._frame_id(frame)
        world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        return self._map(lambda a: pin.computeFrameJacobian(self.model, self.data, a, frame_id, world), (6, self.nv), q)

    def _frame_id(self, frame: Frame) -> int:
        if frame not in self._frames:
            placement = self._weld[self.robot.link(frame.link).name] * _pose(frame.position, frame.quaternion)
            parent = self._joint_id[frame.link]
            name = f"{frame.link}#{len(self._frames)}"
            self._frames[frame] = self.model.addFrame(pin.Frame(name, parent, placement, pin.FrameType.OP_FRAME))
            self.data = self.model.createData()
        return self._frames[frame]

    @staticmethod
    def _map(function: Callable[..., Array], shape: tuple[int, ...], *arguments: Array) -> Array:
        """Call `function` for every leading index of the arguments."""
        if all(np.ndim(x) == 1 for x in arguments):
            return np.array(function(*(np.asarray(x, dtype=float) for x in arguments)))
        lead = np.shape(arguments[0])[:-1]
        if any(np.shape(x)[:-1] != lead for x in arguments):
            lead = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arguments))
            arguments = tuple(np.broadcast_to(x, (*lead, np.shape(x)[-1])) for x in arguments)
        if lead == (1,):  # one robot at the control rate
            return np.array(function(*(x[0] for x in arguments)))[None]
        flat = [np.reshape(x, (-1, np.shape(x)[-1])) for x in arguments]
        out = np.empty((len(flat[0]), *shape))
        for index, row in enumerate(zip(*flat, strict=True)):
            out[index] = function(*row)
        return out.reshape(*lead, *shape)
