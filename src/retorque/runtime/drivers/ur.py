"""Universal Robots over RTDE (ur_rtde): direct torque at 500 Hz, PolyScope 5.26 or newer."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.drivers import ur_protocol as wire
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

JOINTS = 6
VARIABLES = [
    "timestamp",
    "actual_q",
    "actual_qd",
    "target_moment",
    "robot_mode",
    "robot_status_bits",
    "safety_status_bits",
]
LOOK = 0.0001
"""Time between two looks for a new report [s]."""
SILENCE = 5000
"""Looks without a new report after which the robot counts as gone: 0.5 s, or more where this machine itself stalls."""
BEHIND = 1.0
"""Longest time that reports lag behind torques, which have a connection of their own [s]."""
LEFT: list[tuple[Any, Any]] = []
"""Clients of robots that are out of reach: ur_rtde crashes when it is taken down while it tries to reconnect."""
NO_FRICTION = [0.0] * JOINTS
"""Shares of the robot's own friction compensation: none, the adapter's work starts from the bare joint."""


class UniversalRobot(Driver):
    """A UR arm. Its torques are without gravity, which the arm adds; its own friction compensation is switched off.

    Args:
        robot: the ideal robot, of 6 joints.
        host: address of the controller.
    """

    timestep = 0.002
    adds_gravity = True
    keeps_time = True
    met_hardware = "tried with ur_rtde 1.6.5 against the fake controller; has not met an arm"

    def __init__(self, robot: Robot, host: str):
        super().__init__(robot)
        if robot.n != JOINTS:
            raise RetorqueError(f"a UR arm has {JOINTS} joints, '{robot.name}' has {robot.n}; name a UR's card")
        try:
            from rtde_receive import RTDEReceiveInterface
        except ModuleNotFoundError as error:
            raise RetorqueError("the ur driver needs ur-rtde; run: pip install 'retorque[ur]'") from error
        self._host = host
        self._control: Any = None
        self._version = _polyscope(host)
        self._receive: Any = None
        try:
            with _quiet():
                self._receive = RTDEReceiveInterface(host, 1.0 / self.timestep, VARIABLES)
        except RuntimeError as error:
            raise RobotStopped(f"no UR arm at '{host}': {error}; check --host and the network") from error
        self._lost = False  # whether the robot is out of reach
        self._stamp = float("nan")
        self._goal = np.zeros(JOINTS)

    def _begin(self, act: bool) -> None:
        if not act:
            return
        if self._version < wire.SINCE:
            raise RobotStopped(
                f"PolyScope {'.'.join(map(str, self._version))} takes no direct torque through ur_rtde; update the arm "
                f"to {'.'.join(map(str, wire.SINCE))} or newer, or watch without --act"
            )
        from rtde_control import RTDEControlInterface

        try:
            with _quiet():
                self._control = RTDEControlInterface(self._host, 1.0 / self.timestep)
        except RuntimeError as error:
            raise RobotStopped(f"the arm takes no program: {error}; is it in remote control?") from error
        until = time.monotonic() + BEHIND
        while not self._receive.getRobotStatus() & wire.RUNNING and time.monotonic() < until:
            self._await()  # the program runs, but the reports are not there yet

    def _report(self) -> State:
        self._await()
        self._check()
        receive, stamp = self._receive, self._stamp
        position, velocity = np.array(receive.getActualQ()), np.array(receive.getActualQd())
        if self.acting:
            torque = self._goal
        else:  # what the arm holds itself with includes gravity, which `read` adds
            torque = np.array(receive.getTargetMoment()) - self._body.gravity(position)
        return State(stamp, position, velocity, torque)

    def _await(self) -> None:
        """Wait for the next report."""
        for _ in range(SILENCE):
            if (stamp := self._receive.getTimestamp()) != self._stamp:
                self._stamp = stamp
                return
            time.sleep(LOOK)
        self._lost = True
        raise RobotStopped("the arm has fallen silent: no reports come; check the network and the controller")

    def _check(self) -> None:
        """Raise where the arm has stopped by itself, with the cause."""
        halted = self.acting and not self._receive.getRobotStatus() & wire.RUNNING
        if halted:  # ur_rtde hands a report over field by field, and this one may be newer than the last stamp was:
            self._await()
            self._await()  # it is whole once the next has begun
        safety = self._receive.getSafetyStatusBits()
        if safety & wire.EMERGENCY:
            raise RobotStopped("the arm has stopped: emergency stop; release it and start the arm again")
        if safety & wire.PROTECTIVE:
            raise RobotStopped("the arm has stopped: protective stop; clear the cause and unlock it at the pendant")
        if halted:
            self._lost = not self._receive.isConnected()
            raise RobotStopped("the arm has stopped: its program no longer runs; look at the pendant's log")

    def _send(self, torque: Array) -> None:
        self._goal = torque
        if not self._control.directTorque(torque.tolist(), NO_FRICTION, NO_FRICTION):
            until = time.monotonic() + BEHIND
            while time.monotonic() < until:
                self._await()
                self._check()
            raise RobotStopped("the arm takes no more torques: its program has ended; look at the pendant's log")

    def _end(self) -> None:
        control, self._control = self._control, None
        if self._lost:
            if not LEFT:
                atexit.register(_leave)
            LEFT.append((control, self._receive))
            self._receive = None
            return
        if control is not None:
            with contextlib.suppress(Exception), _quiet():
                control.stopScript()
            with contextlib.suppress(Exception), _quiet():
                control.disconnect()
        receive, self._receive = self._receive, None
        if receive is not None:
            with contextlib.suppress(Exception), _quiet():
                receive.disconnect()


def _leave() -> None:
    """End the process without taking ur_rtde down: it aborts while it tries to reconnect."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(2)


def _polyscope(host: str) -> tuple[int, int]:
    """The controller's software version, from its dashboard server."""
    try:
        with socket.create_connection((host, wire.DASHBOARD), timeout=2.0) as connection:
            connection.settimeout(2.0)
            connection.recv(4096)
            connection.sendall(b"PolyscopeVersion\n")
            answer = connection.recv(4096).decode(errors="replace")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RobotStopped(f"no UR controller at '{host}' ({reason}); check --host and the network") from error
    found = re.search(r"(\d+)\.(\d+)", answer)
    if found is None:
        raise RobotStopped(f"what answers at '{host}' is no UR controller; check --host")
    return int(found[1]), int(found[2])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what ur_rtde prints from the standard output, and this thread's scheduling as it is: ur_rtde raises it."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        os.sched_setscheduler(0, *before)
