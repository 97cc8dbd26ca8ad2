"""Operational space: a spring and a damper on the end-effector's pose, and a soft posture in its null space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from retorque.control.action import PoseAction
from retorque.control.controller import Controller
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Frame, Robot
from retorque.robots.state import State
from retorque.work.array import Array

WELL_CONDITIONED = 1e6
"""Condition number of J Jᵀ up to which it is inverted."""


class OperationalSpace(Controller[PoseAction]):
    """τ = Jᵀ (Kp e + Kd ė) + N (k (q_home - q) - d q̇) + h(q, q̇), N = 1 - J⁺J.

    e stacks the position error [m] and the rotation vector from the pose to its target [rad], in world axes. Without an
    inertia weight, Kp is the stiffness that is felt at the hand; a payload of weight W sags by W / Kp.

    Args:
        robot: the ideal robot.
        stiffness: (6,) linear then angular [N/m, N·m/rad].
        damping: (6,) [N·s/m, N·m·s/rad].
        nullspace_stiffness: k, pull to the home posture in the null space [N·m/rad]; d = 2 sqrt(k).
        frame: what is controlled; default: the end-effector.
    """

    def __init__(
        self,
        robot: Robot,
        stiffness: Sequence[float] = (200.0, 200.0, 200.0, 60.0, 60.0, 60.0),
        damping: Sequence[float] = (30.0, 30.0, 30.0, 10.0, 10.0, 10.0),
        nullspace_stiffness: float = 0.5,
        frame: Frame | None = None,
    ):
        self.robot = robot
        self.body = RigidBody(robot)
        self.frame = frame or robot.end_effector
        self.stiffness = np.asarray(stiffness, dtype=float)
        self.damping = np.asarray(damping, dtype=float)
        self.nullspace_stiffness = nullspace_stiffness
        self.nullspace_damping = 2.0 * np.sqrt(nullspace_stiffness)

    def command(self, state: State, action: PoseAction) -> Command:
        q, qd = state.position, state.velocity
        position, rotation = self.body.frame_pose(self.frame, q)
        jacobian = self.body.jacobian(self.frame, q)
        twist = np.matmul(jacobian, qd[..., None])[..., 0]
        error = np.concatenate([action.position - position, rotation_error(rotation, action.rotation)], axis=-1)
        rate = np.concatenate([action.velocity, action.angular_velocity], axis=-1) - twist
        wrench = self.stiffness * error + self.damping * rate
        transpose = np.swapaxes(jacobian, -1, -2)
        posture = self.nullspace_stiffness * (self.robot.home - q) - self.nullspace_damping * qd
        seen = seen_in_task(jacobian, posture)
        torque = np.matmul(transpose, wrench[..., None])[..., 0] + posture - seen + self.body.bias(q, qd)
        return Command(torque=torque)


def seen_in_task(jacobian: Array, joints: Array) -> Array:
    """J⁺J of joint vectors (..., n): what of them moves the hand, for Jacobians (..., 6, n).

    Away from singular postures by J⁺ = Jᵀ (J Jᵀ)⁻¹, several times faster than the singular values that others need.
    """
    transpose = np.swapaxes(jacobian, -1, -2)
    moved = np.matmul(jacobian, joints[..., None])
    square = np.matmul(jacobian, transpose)
    try:
        inverse = np.linalg.inv(square)
    except np.linalg.LinAlgError:  # one of them is exactly singular
        inverse = np.full_like(square, np.inf)
    with np.errstate(invalid="ignore"):
        size = np.abs(square).sum(axis=-1).max(axis=-1) * np.abs(inverse).sum(axis=-1).max(axis=-1)
        found = np.matmul(transpose, np.matmul(inverse, moved))[..., 0]
    bad = np.asarray(~(size < WELL_CONDITIONED))
    if bad.any():
        found[bad] = np.matmul(np.linalg.pinv(jacobian[bad], rcond=1e-4), moved[bad])[..., 0]
    return found


def rotation_error(rotation: Array, target: Array) -> Array:
    """Rotation vector, in world axes, that turns `rotation` into `target`, (..., 3) [rad]."""
    difference = np.matmul(target, np.swapaxes(rotation, -1, -2))
    vector = Rotation.from_matrix(difference.reshape(-1, 3, 3)).as_rotvec()
    return vector.reshape(*difference.shape[:-2], 3)
