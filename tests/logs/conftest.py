"""A swing of a Z1 whose velocities are the exact derivatives of its positions, as rows of a log."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from retorque.robots.robot import Robot


@dataclass(frozen=True)
class Swing:
    """Signals as a logger has them before it writes them."""

    robot: Robot
    time: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    torque: np.ndarray

    @property
    def names(self) -> list[str]:
        return ["time", *(f"{stem}{k + 1}" for stem in ("q", "qd", "tau") for k in range(self.robot.n))]

    @property
    def rows(self) -> np.ndarray:
        """(rows, 1 + 3 n) time, positions, velocities, torques."""
        return np.column_stack([self.time, self.q, self.qd, self.torque])


@pytest.fixture(scope="session")
def swing() -> Swing:
    robot = Robot.load("z1")
    time = np.arange(600) / 200.0
    rate = np.linspace(1.0, 3.0, robot.n)
    q = robot.home + 0.2 * np.sin(rate * time[:, None])
    qd = 0.2 * rate * np.cos(rate * time[:, None])
    return Swing(robot, time, q, qd, 3.0 * np.sin(2.0 * rate * time[:, None]) + q)
