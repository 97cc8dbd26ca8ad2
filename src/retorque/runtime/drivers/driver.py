"""What every driver does: the robot's own conventions on one side, those of `Plant` on the other; it ends in a stop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import isfinite
from types import TracebackType
from typing import Literal

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


def _finite(values: Array) -> bool:
    """Whether all numbers are finite: after a sleep plain sums take a tenth of the time of NumPy's first call."""
    return isfinite(sum(values.tolist()))


class RobotStopped(RetorqueError):
    """The robot has stopped by itself, or is out of reach: there is nothing left to control."""


class Driver(ABC):
    """A real robot behind `Plant`; used as a context, at whose end the robot has been told to stop.

    Until `start(act=True)` nothing is sent. What is sent is finite, within the torque limits, and changes no faster
    than `torque_rate`; it starts from the torque that the robot holds itself with, so that nothing jumps.

    Args:
        robot: the ideal robot.
    """

    takes: Literal["torque", "position"] = "torque"
    timestep: float
    """Control period [s]."""
    adds_gravity: bool = False
    """Whether the robot adds gravity compensation of its own to what it is sent."""
    torque_rate: float = np.inf
    """Fastest change of a torque that the robot takes [N·m/s]."""
    keeps_time: bool = False
    """Whether `read` waits for the robot's next report; otherwise whoever calls keeps the period."""
    met_hardware: str = "has not met hardware yet"
    """What it has been tried on."""

    def __init__(self, robot: Robot):
        if robot.floating:
            raise RetorqueError(f"robot '{robot.name}' has a free base; drivers serve robots on a fixed one")
        self.robot = robot
        self.acting = False
        """Whether torques are sent."""
        self.refused = 0
        """Commands that were not finite: the last good one went out again."""
        self.client_time = 0.0
        """Processor time that the maker's client took since the start, where the driver measures it [s]."""
        self._body = RigidBody(robot)
        self._limit = robot.torque_limit
        self._step = np.inf
        self._gravity = np.zeros(robot.n)
        self._position: Array | None = None  # the last one that was finite
        self._sent: Array | None = None

    def start(self, act: bool = False) -> None:
        """Begin to report, and to take torques where `act`."""
        self._step = self.torque_rate * self.timestep
        self._begin(act)
        self.acting = act

    def read(self) -> State:
        """The newest report, gravity included in its torque."""
        state = self._report()
        good = _finite(state.position)
        if good:
            self._position = state.position
        if self.adds_gravity:
            if good:
                self._gravity = self._body.gravity(state.position)
            state.torque = state.torque + self._gravity
        return state

    def write(self, command: Command) -> None:
        """Send a torque, gravity included; dropped unless `acting`."""
        if not self.acting:
            return
        torque = command.torque
        if torque is None or torque.shape != self._gravity.shape or not _finite(torque):
            self.refused += 1
            torque = self._held()
        torque = np.minimum(np.maximum(torque, -self._limit), self._limit)
        if self.adds_gravity:
            torque = torque - self._gravity
        if self._sent is None:
            self._sent = self._first()
        torque = np.minimum(np.maximum(torque, self._sent - self._step), self._sent + self._step)
        self._sent = torque
        self._send(torque)

    def stop(self) -> None:
        """Tell the robot to stop; may be called at any time, and again."""
        self.acting = False
        self._end()

    def __enter__(self) -> Driver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _first(self) -> Array:
        """What the robot holds itself with before the first torque is sent, in its own convention, (n,) [N·m]."""
        return np.zeros(self.robot.n)

    def _held(self) -> Array:
        """The last torque that went out, gravity included, (n,) [N·m]."""
        last = self._first() if self._sent is None else self._sent
        return last + self._gravity if self.adds_gravity else last

    @abstractmethod
    def _begin(self, act: bool) -> None:
        """Make the robot ready."""

    @abstractmethod
    def _report(self) -> State:
        """The newest report in the robot's own convention of gravity, in our joint order and units."""

    @abstractmethod
    def _send(self, torque: Array) -> None:
        """Send a torque (n,) in the robot's own convention of gravity."""

    @abstractmethod
    def _end(self) -> None:
        """Stop the robot and let go of it; never raises, and may be called twice."""
