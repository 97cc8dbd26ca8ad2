"""One or two hands that press on a ball on the floor and turn it without slipping."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import Base, State
from retorque.tasks.rotate.contact_servo import servo_contacts, velocity_at
from retorque.tasks.rotate.grip_settings import GRAVITY, GripSettings
from retorque.tasks.rotate.stroke_schedule import StrokeSchedule
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

PALM = 40.0
"""Stiffness of a palm's orientation, the public code's [N·m/rad]."""


@dataclass(frozen=True, kw_only=True)
class BallPolicySettings(GripSettings):
    """How a ball is pressed and turned."""

    low: float = 80.0
    high: float = 400.0
    damping: float = 40.0
    open: float = 0.02
    close: float = 2.0


class BallPolicy:
    """Approach, press, then the strokes; the ball's angle is read off the hands alone.

    Args:
        tree: of the robot with the hands that are used.
        centre: (3,) of the ball as it is thought to be [m].
        radius: of the ball [m].
        mass: of the ball [kg].
        touch: (hands, 3) unit vectors from the centre to the palms.
        palm: (hands, 3, 3) orientations of the palms on the ball.
        schedule: strokes about one axis.
        settings: forces and gains.
        locate: where a free base is thought to be; default: as reported.
    """

    period = 0.0

    def __init__(
        self,
        tree: CompiledTree,
        centre: Array,
        radius: float,
        mass: float,
        touch: Array,
        palm: Array,
        schedule: StrokeSchedule,
        settings: BallPolicySettings | None = None,
        locate: Callable[[State], Base | None] | None = None,
    ):
        self.settings = s = settings or BallPolicySettings()
        self.tree, self.schedule, self._radius, self._locate = tree, schedule, radius, locate
        self._centre, self._touch, self._palm = np.asarray(centre, dtype=float), np.asarray(touch), np.asarray(palm)
        self._axis = np.array(schedule.strokes[0].axis[3:])
        # Rolling on the floor: the centre moves with the rotation.
        self._twist = np.concatenate([np.cross(self._axis, [0.0, 0.0, radius]), self._axis])
        self._load = np.array([0.0, 0.0, -GRAVITY * mass, 0.0, 0.0, 0.0])
        lead = (tree.trials, len(self._touch))
        self._desired, self._rotation = np.zeros((*lead, 3)), np.zeros((*lead, 3, 3))
        self._soft, self._damping = np.zeros((*lead, 6, 6)), np.zeros((*lead, 6, 6))
        self._soft[..., :3, :3], self._soft[..., 3:, 3:] = s.low * np.eye(3), PALM * np.eye(3)
        self._damping[..., :3, :3] = s.damping * np.eye(3)
        self._damping[..., 3:, 3:] = 2.0 * np.sqrt(PALM) * np.eye(3)
        self._held: Array | None = None
        self.refused = np.zeros(tree.trials, dtype=np.int64)
        """(trials,) ticks at which the contacts allowed no motion towards the goal."""

    @property
    def hover(self) -> Array:
        """(hands, 3) palms before they close [m]."""
        return self._centre + (self._radius + self.settings.open) * self._touch

    def reset(self, state: State) -> None:
        self._began, self._before, self._held = state.time, state.time, None

    def act(self, state: State) -> ComplianceAction:
        s, time = self.settings, state.time - self._began
        dt, self._before = state.time - self._before, state.time
        force = np.zeros((*self._desired.shape[:2], 6))
        velocity, stiffness = np.zeros_like(force), self._soft
        normals = np.broadcast_to(-self._touch, self._desired.shape)
        self._rotation[:] = self._palm
        if time < s.begin:
            share = min(1.0, time / s.close)
            self._desired[:] = self.hover - share * s.open * self._touch
            force[..., :3] = -min(1.0, max(0.0, (time - s.close) / s.squeeze)) * s.grip * self._touch
        else:
            self.tree.at(state if self._locate is None else replace(state, base=self._locate(state)))
            if self._held is None:
                self._held = self.tree.position.copy()
            stiffness, normals = self._turn(time - s.begin, dt, velocity, force)
        position = self._desired + s.depth * normals * min(1.0, time / s.close)
        return ComplianceAction(position, self._rotation, stiffness, velocity, self._damping, force, state.time)

    def _turn(self, time: float, dt: float, velocity: Array, force: Array) -> tuple[Array, Array]:
        """Fill velocities and forces and move the desired palms on; stiffness and normals."""
        assert self._held is not None
        s, hands = self.settings, self.tree.position
        pose, twist = self.schedule.at(time)
        wanted, rate = float(pose[3:] @ self._axis), float(twist[3:] @ self._axis)
        stiffness, normals = self._soft.copy(), np.empty_like(hands)
        goal = np.concatenate([np.zeros(3), self._axis])[None]
        for t in range(len(hands)):
            angle = self._angle(hands[t] - self._held[t])
            turn = from_axis_angle(self._axis, angle)
            points = self._radius * self._touch @ turn.T
            normals[t] = -points / self._radius
            self._rotation[t] = turn @ self._palm
            try:
                action = servo_contacts(
                    points,
                    normals[t],
                    np.full(len(points), s.grip),
                    goal,
                    np.array([rate + s.follow * (wanted - angle)]),
                    self._load,
                    (s.low, s.high),
                    ground=np.array([0.0, 0.0, -self._radius]),
                )
            except RetorqueError:  # the hands cannot turn it from there: press and wait
                self.refused[t] += 1
                force[t, :, :3] = s.grip * normals[t]
                continue
            velocity[t, :, :3], force[t, :, :3] = action.velocity, action.force
            stiffness[t, :, :3, :3] = action.stiffness[:, :3, :3]
        self._desired += dt * velocity[..., :3]
        off = np.einsum("tsi,tsi->ts", hands - self._desired, normals)
        self._desired += min(1.0, s.follow * dt) * off[..., None] * normals
        return stiffness, normals

    def _angle(self, moved: Array) -> float:
        """How far the ball has turned, from the ways (hands, 3) of hands that stick to it [rad]."""
        way = np.stack([velocity_at(self._radius * u) @ self._twist for u in self._touch])
        return float(np.sum(moved * way) / np.sum(way * way))
