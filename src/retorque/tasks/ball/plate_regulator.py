"""A linear-quadratic regulator of the ball on the plate, as torques at 50 Hz."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_discrete_are
from scipy.signal import cont2discrete

from retorque.control.action import TorqueAction
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.ball.ball_filter import BallFilter
from retorque.tasks.ball.goals import Goals
from retorque.tasks.ball.plate import linear_model, on_plate


@dataclass(frozen=True, kw_only=True)
class RegulatorSettings:
    """Weights, chosen on the ideal robot."""

    ball: float = 2000.0
    """Of the ball's distance to where it should be [1/m²]."""
    ball_velocity: float = 100.0
    """[s²/m²]"""
    posture: float = 1.0
    """Of the joints' distance to home [1/rad²]."""
    joint_velocity: float = 0.3
    """[s²/rad²]"""
    acceleration: float = 0.003
    """Of the joints' accelerations [s⁴/rad²]."""
    farthest: float = 0.06
    """A goal that is farther away pulls no harder [m]."""
    velocity_memory: float = 0.04
    """Time constant of the ball's velocity filter [s]."""


class PlateRegulator:
    """τ = M(q) u + h(q, q̇), u = -K x, with x from the joints, the ball's place on the plate and its filtered rate.

    Args:
        robot: the ideal robot with the plate.
        goals: where the ball should be, trial by trial.
        settings: weights.
    """

    period = 0.02

    def __init__(self, robot: Robot, goals: Goals, settings: RegulatorSettings | None = None):
        self.robot, self.goals = robot, goals
        self.settings = s = settings or RegulatorSettings()
        self._body, self._frame, n = RigidBody(robot), robot.frame("plate"), robot.n
        a, b = linear_model(robot)
        ad, bd, *_ = cont2discrete((a, b, np.eye(len(a)), np.zeros((len(a), n))), self.period)
        q = np.diag([s.posture] * n + [s.joint_velocity] * n + [s.ball] * 2 + [s.ball_velocity] * 2)
        r = s.acceleration * np.eye(n)
        p = solve_discrete_are(ad, bd, q, r)
        self.gain = np.linalg.solve(r + bd.T @ p @ bd, bd.T @ p @ ad)
        """(n, 2 n + 4)"""
        self._filter = BallFilter(self.period, s.velocity_memory)

    def reset(self, state: State) -> None:
        self._filter.reset()

    def act(self, state: State) -> TorqueAction:
        assert state.objects is not None
        q, qd = state.position, state.velocity
        ball, rate = self._filter.see(on_plate(self._body, self._frame, q, state.objects[..., 0, :3])[..., :2])
        away = ball - self.goals.current
        distance = np.linalg.norm(away, axis=-1, keepdims=True)
        away = away * np.minimum(1.0, self.settings.farthest / np.maximum(distance, 1e-9))
        x = np.concatenate([q - self.robot.home, qd, away, rate], axis=-1)
        wanted = -np.matmul(x, self.gain.T)
        return TorqueAction(self._body.inverse_dynamics(q, qd, wanted))
