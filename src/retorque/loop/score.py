"""How well a correction explains what the robot did, whether it was applied or not."""

from __future__ import annotations

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array


class Score:
    """Torque that went missing, with and without the correction.

    Over a few ticks the robot received τ and answered with an acceleration; the ideal robot would have needed
    ID₀(q, q̇, q̈) for it. The difference d = τ - ID₀ is what was lost. An adapter that knows the robot asks for a
    correction c of just that size, so d - c is what it fails to explain, and d what no correction leaves unexplained.
    Both are averaged over `window` ticks and remembered for about `memory` seconds.

    Args:
        robot: the ideal robot.
        trials: how many at once.
        timestep: control period [s].
        window: ticks averaged.
        memory: [s]
    """

    def __init__(self, robot: Robot, trials: int, timestep: float, window: int = 20, memory: float = 2.0):
        self._body = RigidBody(robot)
        self._period = window * timestep
        self._window = window
        self._rate = self._period / memory
        self._torque = np.zeros((trials, robot.n))
        self._correction = np.zeros((trials, robot.n))
        self._from = np.zeros((2, trials, robot.n))
        self._squares = np.zeros((2, trials, robot.n))
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._squares[:] = 0.0
        self.samples = 0
        self.restart()

    def restart(self) -> None:
        """Begin a new window: the last ticks do not hang together."""
        self._count = -1

    @property
    def without(self) -> Array:
        """RMS of the missing torque, (trials, n) [N·m]."""
        return np.sqrt(self._squares[0] / self._fill())

    @property
    def corrected(self) -> Array:
        """RMS of the missing torque that the correction does not explain, (trials, n) [N·m]."""
        return np.sqrt(self._squares[1] / self._fill())

    def tick(self, state: State, correction: Array) -> None:
        """Take in a clean report and the correction asked for at it, (trials, n) [N·m]."""
        if self._count < 0:
            self._begin(state)
        else:
            self._torque += state.torque
            self._count += 1
            if self._count == self._window:
                self._finish(state)
                self._begin(state)
        self._correction += correction

    def _begin(self, state: State) -> None:
        self._count = 0
        self._torque[:] = 0.0
        self._correction[:] = 0.0
        self._from[0], self._from[1] = state.position, state.velocity

    def _finish(self, state: State) -> None:
        acceleration = (state.velocity - self._from[1]) / self._period
        middle = 0.5 * (state.position + self._from[0])
        speed = 0.5 * (state.velocity + self._from[1])
        lost = self._torque / self._window - self._body.inverse_dynamics(middle, speed, acceleration)
        left = lost - self._correction / self._window
        self._squares[0] += self._rate * (lost * lost - self._squares[0])
        self._squares[1] += self._rate * (left * left - self._squares[1])
        self.samples += 1

    def _fill(self) -> float:
        """How much of the running mean's weight has been filled."""
        return 1.0 - (1.0 - self._rate) ** self.samples if self.samples else 1.0
