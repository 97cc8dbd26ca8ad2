"""How well a correction explains what the robot did, whether it was applied or not."""

from __future__ import annotations

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array

WINDOW = 0.02
"""Time that is averaged [s]."""
MEMORY = 2.0
"""Time that is remembered [s]."""


class Score:
    """Torque that went missing, with and without the correction, trial by trial.

    Over a window the robot received τ and answered with an acceleration; the ideal robot would have needed
    ID₀(q, q̇, q̈) for it. The difference d = τ - ID₀ is what was lost. An adapter that knows the robot asks for a
    correction c of just that size, so d - c is what it fails to explain, and d what no correction leaves unexplained.

    Args:
        robot: the ideal robot.
        shape: of a report, (..., n).
        timestep: control period [s].
    """

    def __init__(self, robot: Robot, shape: tuple[int, ...], timestep: float):
        self._body = RigidBody(robot)
        self._window = max(2, round(WINDOW / timestep))
        self.period = self._window * timestep
        """Length of a window [s]."""
        self._rate = self.period / MEMORY
        self._sums = np.zeros((2, *shape))  # reported torque, correction
        self._torque_sum, self._correction_sum = self._sums
        self.left, self.mean_correction = np.zeros(shape), np.zeros(shape)
        """(..., n) of the last window: torque that nothing explains, and correction [N·m]."""
        self.good = np.zeros(shape[:-1], dtype=bool)
        """(...) whether the last window counted."""
        self.motion, self.torque = np.zeros((3, *shape)), np.zeros(shape)
        """Mean position, velocity and acceleration (3, ..., n) and torque (..., n) of the last window."""
        self.ended = False
        """Whether a window ended with the last tick."""
        self._from = np.zeros((3, *shape))
        self._squares = np.zeros((2, *shape))
        self._broken = np.zeros(shape[:-1], dtype=bool)
        self.samples = np.zeros(shape[:-1], dtype=np.int64)
        """(...) windows that counted."""
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._squares[:] = 0.0
        self.samples[...] = 0
        self._count = -1

    @property
    def without(self) -> Array:
        """RMS of the missing torque, (..., n) [N·m]."""
        return np.sqrt(self._squares[0] / self._fill())

    @property
    def corrected(self) -> Array:
        """RMS of the missing torque that the correction does not explain, (..., n) [N·m]."""
        return np.sqrt(self._squares[1] / self._fill())

    def spoil(self, which: Array | bool = True) -> None:
        """The window under way does not count in these trials (...)."""
        self._broken |= which

    def move(self, by: Array) -> None:
        """Positions and velocities have turned out to be wrong by so much (2, ..., n): that is no motion."""
        self._from[:2] += by

    def tick(self, report: Array, correction: Array) -> bool:
        """Take in a report (3, ..., n) of position, velocity and torque, and the correction asked for at it [N·m].

        Returns:
            Whether a window ended.
        """
        ended = self.ended = False
        if self._count < 0:
            self._begin(report)
        else:
            np.add(self._torque_sum, report[2], out=self._torque_sum)
            self._count += 1
            if self._count == self._window:
                self._finish(report)
                self._begin(report)
                ended = self.ended = True
        np.add(self._correction_sum, correction, out=self._correction_sum)
        return ended

    def _begin(self, report: Array) -> None:
        self._count = 0
        self._sums[:] = 0.0
        self._broken[...] = False
        self._from[:] = report

    def _finish(self, report: Array) -> None:
        acceleration = (report[1] - self._from[1]) / self.period
        middle, speed = 0.5 * (report[:2] + self._from[:2])
        torque, self.mean_correction = self._sums / self._window
        self.motion, self.torque = np.stack([middle, speed, acceleration]), torque
        lost = torque - self._body.inverse_dynamics(*self.motion)
        self.left = left = lost - self.mean_correction
        self.good = good = ~self._broken & np.isfinite(left).all(axis=-1)
        rate = self._rate * good[..., None]
        for squares, error in zip(self._squares, (lost, left), strict=True):
            squares += rate * (np.where(good[..., None], error, 0.0) ** 2 - squares)
        self.samples += good

    def _fill(self) -> Array:
        """How much of the running mean's weight has been filled, (..., 1)."""
        return np.where(self.samples > 0, 1.0 - (1.0 - self._rate) ** self.samples, 1.0)[..., None]
