"""What the ball's planner wants: the residuals and weights of E.3, expanded along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.rigid_body import RigidBody
from retorque.plan.cost import Expansion
from retorque.robots.robot import Robot
from retorque.tasks.ball.plate import BALL_RADIUS, PLATE
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class PlateWeights:
    """Weights of the squared residuals; the first six are the paper's."""

    ball: float = 40.0
    """Of the ball's distance to its reference [1/m²]."""
    plate: float = 1.0
    """Of the plate's middle from where it is at home [1/m²]."""
    posture: float = 0.1
    """Of the joints from home [1/rad²]."""
    joint_velocity: float = 5.0
    """Of joint velocities beyond their limits [s²/rad²]."""
    torque: float = 0.2
    """Of torques beyond `torque_share` of their limits [1/(N·m)²]."""
    boundary: float = 1000.0
    """Of the ball beyond the plate's usable part [1/m²]."""
    torque_share: float = 0.8
    """Of the torque limits that costs nothing; not published."""
    velocity_share: float = 0.5
    """Of the velocity limits that costs nothing; not published."""
    edge: float = BALL_RADIUS
    """The usable part ends this far from the plate's edge; not published [m]."""
    effort: float = 3e-5
    """Of torques away from those that hold the arm at home: without it the planner has no best torque; not published
    [1/(N·m)²]."""


class PlateCost:
    """Half of the weighted squares of the residuals, for states (q, ball, q̇, ball's rate).

    Args:
        robot: arm, plate and ball as one tree, the ball's two slides last.
        weights: of the residuals.
    """

    def __init__(self, robot: Robot, weights: PlateWeights | None = None):
        self.weights = weights or PlateWeights()
        self._robot, self._n = robot, robot.n
        self._trees: dict[int, CompiledTree] = {}
        body, n = RigidBody(robot), robot.n
        self._home = np.array(robot.home[: n - 2])
        self._middle = body.frame_pose(robot.frame("plate"), robot.home)[0]
        self._fastest = self.weights.velocity_share * robot.velocity_limit[: n - 2]
        self._strongest = self.weights.torque_share * robot.torque_limit[: n - 2]
        self._hold = body.gravity(robot.home)[: n - 2]
        self._edge = PLATE[0] - self.weights.edge
        self.reference = np.zeros((1, 2))
        """(H+1, 2) where the ball should be [m]."""

    def value(self, states: Array, inputs: Array) -> float:
        w, n = self.weights, self._n
        q, ball, qd = states[:, : n - 2], states[:, n - 2 : n], states[:, n : 2 * n - 2]
        middle = self._plate(states).position[:, 0] - self._middle
        total = (
            w.ball * _square(ball - self.reference) + w.plate * _square(middle) + w.posture * _square(q - self._home)
        )
        total += w.joint_velocity * _square(_beyond(qd, self._fastest)) + w.boundary * _square(
            _beyond(ball, self._edge)
        )
        total += w.torque * _square(_beyond(inputs, self._strongest)) + w.effort * _square(inputs - self._hold)
        return 0.5 * total

    def ending(self, states: Array) -> float:
        last, self.reference, whole = states[-1:], self.reference[-1:], self.reference
        value = self.value(last, np.broadcast_to(self._hold, (0, self._n - 2)))
        self.reference = whole
        return value

    def expand(self, states: Array, inputs: Array) -> Expansion:
        w, n = self.weights, self._n
        q, ball, qd = states[:, : n - 2], states[:, n - 2 : n], states[:, n : 2 * n - 2]
        plate = self._plate(states)
        middle, jacobian = plate.position[:, 0] - self._middle, plate.jacobian[:, 0, :3, : n - 2]
        gradient, hessian = np.zeros_like(states), np.zeros((len(states), 2 * n, 2 * n))
        arm, slides, rates = np.arange(n - 2), np.arange(n - 2, n), np.arange(n, 2 * n - 2)
        gradient[:, arm] = w.posture * (q - self._home) + w.plate * np.einsum("hij,hi->hj", jacobian, middle)
        hessian[:, : n - 2, : n - 2] = w.plate * np.einsum("hij,hik->hjk", jacobian, jacobian)
        hessian[:, arm, arm] += w.posture
        out, fast, strong = _beyond(ball, self._edge), _beyond(qd, self._fastest), _beyond(inputs, self._strongest)
        gradient[:, slides] = w.ball * (ball - self.reference) + w.boundary * out
        hessian[:, slides, slides] = w.ball + w.boundary * (out != 0.0)
        gradient[:, rates] = w.joint_velocity * fast
        hessian[:, rates, rates] = w.joint_velocity * (fast != 0.0)
        by_input = w.torque * strong + w.effort * (inputs - self._hold)
        curved = np.zeros((len(inputs), n - 2, n - 2))
        curved[:, arm, arm] = w.torque * (strong != 0.0) + w.effort
        return Expansion(gradient, hessian, by_input, curved)

    def _plate(self, states: Array) -> CompiledTree:
        """Where the plate is in each state, and how the joints move it."""
        if len(states) not in self._trees:
            self._trees[len(states)] = CompiledTree(self._robot, (self._robot.frame("plate"),), len(states))
        tree = self._trees[len(states)]
        tree.update(states[:, : self._n])
        return tree


def goal_reference(ball: Array, goal: Array, steps: int, timestep: float, gain: float, fastest: float) -> Array:
    """Equation E.1: the way (steps + 1, 2) from the ball to its goal, never faster than `fastest` [m/s]."""
    way = np.empty((2, steps + 1))
    for axis, (place, end) in enumerate(zip(ball.tolist(), goal.tolist(), strict=True)):
        way[axis, 0] = place
        for k in range(1, steps + 1):  # plain numbers: a tenth of NumPy's time
            place += timestep * min(max(gain * (end - place), -fastest), fastest)
            way[axis, k] = place
    return way.T


def _square(x: Array) -> float:
    return float(np.vdot(x, x))


def _beyond(x: Array, limit: Array | float) -> Array:
    """What is left of x outside of ±limit."""
    return x - np.minimum(np.maximum(x, -limit), limit)
