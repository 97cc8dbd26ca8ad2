"""Joint positions that put a frame at a pose, by damped least squares within the joint limits."""

from __future__ import annotations

import numpy as np

from retorque.control.operational_space import rotation_error
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame
from retorque.work.array import Array


def solve(
    body: RigidBody,
    frame: Frame,
    position: Array,
    rotation: Array,
    start: Array,
    *,
    iterations: int = 60,
    damping: float = 1e-2,
    margin: float = 0.05,
) -> tuple[Array, Array]:
    """Levenberg-Marquardt from `start`, kept `margin` rad inside the limits.

    Args:
        body: the robot's algebra.
        frame: the frame to place.
        position: targets (..., 3) [m].
        rotation: targets (..., 3, 3).
        start: first guess (n,) or (..., n) [rad].
        iterations: steps to take.
        damping: λ of (JᵀJ + λ²1)⁻¹Jᵀ.
        margin: distance to the limits [rad]; of a joint with less room than that, half of it.

    Returns:
        Joint positions (..., n) [rad] and what is left of the pose error (...,) [m and rad in one norm].
    """
    robot = body.robot
    q = np.broadcast_to(start, (*position.shape[:-1], robot.n)).copy()
    eye = damping**2 * np.eye(6)
    room = np.minimum(margin, 0.5 * (robot.upper - robot.lower))
    for _ in range(iterations):
        error = _pose_error(body, frame, q, position, rotation)
        jacobian = body.jacobian(frame, q)
        transpose = np.swapaxes(jacobian, -1, -2)
        step = np.matmul(transpose, np.linalg.solve(np.matmul(jacobian, transpose) + eye, error[..., None]))[..., 0]
        q = np.clip(q + np.clip(step, -0.3, 0.3), robot.lower + room, robot.upper - room)
    return q, np.linalg.norm(_pose_error(body, frame, q, position, rotation), axis=-1)


def _pose_error(body: RigidBody, frame: Frame, q: Array, position: Array, rotation: Array) -> Array:
    at, turned = body.frame_pose(frame, q)
    return np.concatenate([position - at, rotation_error(turned, rotation)], axis=-1)
