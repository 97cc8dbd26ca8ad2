"""Predictive control of the ball (TAM, E.3): iLQR at 50 Hz over arm and ball, its first torque as the action."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import TorqueAction
from retorque.physics.dynamics import make_dynamics
from retorque.physics.rigid_body import RigidBody
from retorque.plan.ilqr import ILQR, PlannerSettings
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.ball.ball_filter import BallFilter
from retorque.tasks.ball.ball_tree import ball_tree
from retorque.tasks.ball.goals import Goals
from retorque.tasks.ball.plate import on_plate
from retorque.tasks.ball.plate_cost import PlateCost, PlateWeights, goal_reference
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class PlatePlannerSettings:
    """Horizon and rate are the paper's; the reference is faster than its own, which `AS_PUBLISHED` has."""

    horizon: int = 20
    """Steps of 20 ms."""
    iterations: int = 2
    """Of iLQR a decision; not published."""
    gain: float = 4.0
    """k_g of the reference (E.1) [1/s]."""
    fastest: float = 0.2
    """v_max of the reference (E.1) [m/s]."""
    velocity_memory: float = 0.01
    """Time constant of the ball's velocity filter; not published [s]."""


AS_PUBLISHED = PlatePlannerSettings(gain=1.0, fastest=0.04)
"""The reference of E.3."""


class PlatePlanner:
    """One plan a trial, begun from the last one's end; with no plan it holds the arm against gravity.

    Args:
        robot: the ideal robot with the plate.
        goals: where the ball should be, trial by trial.
        settings: horizon and reference.
        weights: of the cost.
    """

    period = 0.02

    def __init__(
        self,
        robot: Robot,
        goals: Goals,
        settings: PlatePlannerSettings | None = None,
        weights: PlateWeights | None = None,
    ):
        self.robot, self.goals = robot, goals
        self.settings = s = settings or PlatePlannerSettings()
        self._body, self._frame = RigidBody(robot), robot.frame("plate")
        tree = ball_tree(robot)
        self._solver = ILQR(
            make_dynamics(tree, self.period), PlannerSettings(horizon=s.horizon, iterations=s.iterations)
        )
        self._cost = PlateCost(tree, weights)
        self._filter = BallFilter(self.period, s.velocity_memory)

    def reset(self, state: State) -> None:
        self._filter.reset()
        hold = self._body.gravity(np.atleast_2d(state.position))
        self._inputs = np.repeat(hold[:, None], self.settings.horizon, axis=1)
        """(trials, H, n) the last plans [N·m]."""

    def act(self, state: State) -> TorqueAction:
        assert state.objects is not None
        q, qd = np.atleast_2d(state.position), np.atleast_2d(state.velocity)
        ball = on_plate(self._body, self._frame, q, state.objects[..., 0, :3].reshape(-1, 3))[:, :2]
        place, rate = self._filter.see(ball)
        torque = np.empty_like(q)
        goals = self.goals.current
        for k in range(len(q)):
            torque[k] = self._plan(k, np.concatenate([q[k], place[k], qd[k], rate[k]]), goals[k])
        return TorqueAction(torque.reshape(state.position.shape))

    def _plan(self, trial: int, x: Array, goal: Array) -> Array:
        s, n = self.settings, self.robot.n
        guess = np.concatenate([self._inputs[trial, 1:], self._inputs[trial, -1:]])
        if np.all(np.isfinite(x)):
            self._cost.reference = goal_reference(x[n : n + 2], goal, s.horizon, self.period, s.gain, s.fastest)
            found = self._solver.solve(x, self._cost, guess)
            if found is not None and np.all(np.isfinite(found.inputs)):
                guess = found.inputs
        self._inputs[trial] = guess
        return guess[0]
