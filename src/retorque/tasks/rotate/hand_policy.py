"""Three fingertips that close on an object and move it as one body, pressing by force and moving by velocity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import State
from retorque.tasks.rotate.contact_servo import TURN_STIFFNESS, servo_contacts
from retorque.tasks.rotate.grip_settings import GRAVITY, GripSettings
from retorque.tasks.rotate.hand_objects import TIP_RADIUS, HandObject
from retorque.tasks.rotate.stroke_schedule import StrokeSchedule
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class HandPolicySettings(GripSettings):
    """How an object is held and moved."""

    grip: float = 3.0
    low: float = 40.0
    high: float = 300.0
    damping: float = 100.0
    open: float = 0.012
    close: float = 1.5


class HandPolicy:
    """Approach, close, squeeze, then the strokes; the object's pose is read off the fingertips alone.

    Args:
        tree: of the hand with the three tips.
        thing: what is held.
        centre: (3,) where it is thought to be [m].
        schedule: how it moves.
        settings: forces and gains.
    """

    period = 0.0

    def __init__(
        self,
        tree: CompiledTree,
        thing: HandObject,
        centre: Array,
        schedule: StrokeSchedule,
        settings: HandPolicySettings | None = None,
    ):
        self.settings = settings or HandPolicySettings()
        self.tree, self.thing, self.schedule = tree, thing, schedule
        self._centre, trials = np.asarray(centre, dtype=float), tree.trials
        self._tips, self._normals = thing.grasp()
        self._grip = thing.grips(self.settings.grip)
        self._load = np.array([0.0, 0.0, -GRAVITY * thing.thing.mass, 0.0, 0.0, 0.0])
        self._desired = np.zeros((trials, 3, 3))
        self._held: Array | None = None
        self._soft = np.zeros((trials, 3, 6, 6))
        self._soft[..., :3, :3] = self.settings.low * np.eye(3)
        self._soft[..., 3:, 3:] = TURN_STIFFNESS * np.eye(3)
        self._damping = np.zeros((trials, 3, 6, 6))
        self._damping[..., :3, :3] = self.settings.damping * np.eye(3)
        self._damping[..., 3:, 3:] = 2.0 * np.sqrt(TURN_STIFFNESS) * np.eye(3)
        self.refused = np.zeros(trials, dtype=np.int64)
        """(trials,) ticks at which the contacts allowed no motion towards the goal."""

    def reset(self, state: State) -> None:
        self._began, self._held = state.time, None
        self.tree.at(state)
        self._rotation = self.tree.rotation.copy()
        self._before = state.time

    @property
    def pregrasp(self) -> Array:
        """(3, 3) tips before they close [m]."""
        return self._centre + self._tips - self.settings.open * self._normals

    def act(self, state: State) -> ComplianceAction:
        s, time = self.settings, state.time - self._began
        dt, self._before = state.time - self._before, state.time
        force = np.zeros((len(self._desired), 3, 6))
        velocity = np.zeros_like(force)
        if time < s.begin:
            share = min(1.0, time / s.close)
            self._desired[:] = self.pregrasp + share * s.open * self._normals
            force[..., :3] = min(1.0, max(0.0, (time - s.close) / s.squeeze)) * self._grip[:, None] * self._normals
            stiffness, normals = self._soft, np.broadcast_to(self._normals, self._desired.shape)
        else:
            self.tree.at(state)
            if self._held is None:
                self._held = self.tree.position.copy()
            stiffness, normals = self._move(time - s.begin, dt, velocity, force)
        position = self._desired + s.depth * normals * min(1.0, time / s.close)
        return ComplianceAction(position, self._rotation, stiffness, velocity, self._damping, force, state.time)

    def _move(self, time: float, dt: float, velocity: Array, force: Array) -> tuple[Array, Array]:
        """Fill velocities and forces and move the desired tips on; stiffness and normals."""
        assert self._held is not None
        s, tips = self.settings, self.tree.position
        pose, twist = self.schedule.at(time)
        stiffness, normals = self._soft.copy(), np.empty_like(tips)
        for t in range(len(tips)):
            turn, centre = _rigid(self._held[t], tips[t], self._centre)
            normals[t] = self._normals @ turn.T
            away = np.concatenate([self._centre + pose[:3] - centre, _vector(_rotation(pose[3:]) @ turn.T)])
            points = tips[t] + TIP_RADIUS * normals[t] - centre
            try:
                action = servo_contacts(
                    points,
                    normals[t],
                    self._grip,
                    np.eye(6),
                    twist + s.follow * away,
                    self._load,
                    (s.low, s.high),
                )
            except RetorqueError:  # fingertips in a line: keep what was asked
                self.refused[t] += 1
                force[t, :, :3] = self._grip[:, None] * normals[t]
                continue
            velocity[t, :, :3], force[t, :, :3], stiffness[t] = action.velocity, action.force, action.stiffness
        self._desired += dt * velocity[..., :3]
        # Along the normals force decides: the desired tips stay near the true ones there.
        off = np.einsum("tsi,tsi->ts", tips - self._desired, normals)
        self._desired += min(1.0, s.follow * dt) * off[..., None] * normals
        return stiffness, normals


def _rigid(before: Array, after: Array, centre: Array) -> tuple[Array, Array]:
    """The rotation (3, 3) that took three points there, and where a centre went with them."""
    middle, now = before.mean(axis=0), after.mean(axis=0)
    left, _, right = np.linalg.svd((before - middle).T @ (after - now))
    turn = (left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right).T
    return turn, now + turn @ (centre - middle)


def _rotation(vector: Array) -> Array:
    size = float(np.linalg.norm(vector))
    return np.eye(3) if size < 1e-12 else from_axis_angle(vector / size, size)


def _vector(turn: Array) -> Array:
    """Rotation vector (3,) of a small rotation."""
    return 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
