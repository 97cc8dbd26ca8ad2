"""Imagined pushes: the hand sags and lags as a robot's parameters say, then the forward model of the ideal one."""

from __future__ import annotations

import numpy as np

from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import OperationalSpace
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.tasks.push.box_task import HALF
from retorque.tasks.push.push_choice import sense
from retorque.tasks.push.push_model import PushModel
from retorque.tasks.push.push_planner import HEIGHT
from retorque.tasks.push.pushes import LENGTH, NORMALS, OFFSET, TILT, TIP, Pushes, change_of, moved_box
from retorque.work.array import Array

MIDDLE = (0.53, 0.0, HEIGHT)
"""Where sag and lag are computed: the middle of the table [m]."""
TOO_HIGH, TOO_LOW = 0.033, -0.055
"""Higher, the hand passes over the box; lower, it drags on the table [m]."""
STICKS = 0.6
"""Share of the friction that helps to hold a hand at rest."""
DRAGGING = 0.5
"""Share of a push that is left then."""
NOISE = (0.004, 0.04)
"""Of a push's outcome [m, rad]."""


class SaggingPushes:
    """Quasi-static: operational space holds the hand off its target by K⁻¹ (Jᵀ)⁺ of the torque that is missing.

    Args:
        robot: the ideal robot.
        model: what pushes of the ideal robot do.
        parameters: what is hidden about each robot.
        seed: of the noise.
    """

    def __init__(self, robot: Robot, model: PushModel, parameters: Parameters, seed: int):
        self.trials, self._robot, self._model = parameters.trials[0], robot, model
        self._rng = np.random.default_rng(seed)
        body = RigidBody(robot)
        rotation = body.frame_pose(robot.end_effector, robot.home)[1]
        self._joints, _ = solve(body, robot.end_effector, np.array(MIDDLE), rotation, robot.home)
        self._jacobian = body.jacobian(robot.end_effector, self._joints)
        self._inverse = np.linalg.pinv(self._jacobian)
        self._gives = self._inverse.T / OperationalSpace(robot).stiffness[:, None]  # K⁻¹ (Jᵀ)⁺
        self._held = body.gravity(self._joints)
        self.set_parameters(parameters)

    def set_parameters(self, parameters: Parameters) -> None:
        """Other robots."""
        inertial = parameters.total_inertial(self._robot)
        weight = np.array([RigidBody(self._robot, one).gravity(self._joints) for one in inertial])
        needed = (weight - parameters.torque_bias.mean(axis=-1)) / parameters.torque_scale.mean(axis=-1)
        self._friction = parameters.friction_amplitude.mean(axis=-1)
        missing = needed - self._held
        missing = np.sign(missing) * np.maximum(np.abs(missing) - STICKS * self._friction, 0.0)
        self._sag = -(missing @ self._gives.T)[:, :3]
        """(trials, 3) of a hand at rest, were there no table [m]."""

    def push(self, box: Array, pushes: Pushes, shift: Array) -> tuple[Array, Array]:
        """Boxes after a push each, and what is sensed of it."""
        first, last = (point + shift[:, :2] for point in pushes.ends(box))
        way = last - first
        along = np.concatenate([way / np.linalg.norm(way, axis=-1, keepdims=True), np.zeros((len(way), 4))], axis=-1)
        against = self._friction * np.tanh(along @ self._inverse.T / 0.1)
        lag = self._sag - (against @ self._gives.T)[:, :3]
        lag = lag + NOISE[0] * self._rng.standard_normal(lag.shape)
        lag[:, 2] = np.maximum(lag[:, 2], TOO_LOW - shift[:, 2])  # the table holds it
        change = self._change(box, pushes, first + self._sag[:, :2], last + lag[:, :2])
        height = shift[:, 2] + lag[:, 2]
        change = change * np.where(height > TOO_HIGH, 0.0, np.where(height <= TOO_LOW, DRAGGING, 1.0))[:, None]
        moved = np.abs(change).max(axis=-1, keepdims=True) > 0.0
        noise = self._rng.standard_normal(change.shape) * [NOISE[0], NOISE[0], NOISE[1]]
        after = moved_box(box, change + np.where(moved, noise, 0.0))
        joints = np.broadcast_to(self._joints, (len(box), len(self._joints)))
        return after, sense(lag, change_of(box, after), pushes, shift, joints)

    def _change(self, box: Array, pushes: Pushes, first: Array, last: Array) -> Array:
        """What a push from and to other places (trials, 2) than were meant does to the box, in its frame."""
        cos, sin = np.cos(box[:, 2:3]), np.sin(box[:, 2:3])
        normal = NORMALS[pushes.face]
        side = np.stack([-normal[:, 1], normal[:, 0]], axis=-1)
        face = np.abs(normal) @ np.array(HALF[:2]) + TIP
        width = np.abs(side) @ np.array(HALF[:2])

        def split(point: Array) -> tuple[Array, Array]:
            x, y = np.split(point - box[:, :2], 2, axis=-1)
            own = np.concatenate([cos * x + sin * y, cos * y - sin * x], axis=-1)
            return np.sum(own * normal, axis=-1), np.sum(own * side, axis=-1)

        (out, beside), (deep, beyond) = split(first), split(last)
        way = np.maximum(out - deep, 1e-6)
        offset = (beside + (beyond - beside) * np.clip((out - face) / way, 0.0, 1.0)) / width
        tilt = np.arctan2(beside - beyond, way)
        length = np.maximum(face - deep, 0.0) / np.cos(tilt)
        real = Pushes(
            pushes.face,
            np.clip(offset, -OFFSET, OFFSET),
            np.clip(length, *LENGTH),
            np.clip(tilt, -1.5 * TILT, 1.5 * TILT),
        )
        touched = (out > face - 0.01) & (np.abs(offset) < 1.0)  # else the hand came down on the box, or passed by
        return self._model(real) * (touched * np.clip(length / LENGTH[0], 0.0, 1.0))[:, None]
