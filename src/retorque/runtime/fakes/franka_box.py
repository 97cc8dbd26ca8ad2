"""A Franka control box in software: libfranka connects to it over TCP and UDP and moves a simulated arm."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.formats.urdf_writer import write_urdf
from retorque.runtime.drivers import franka_protocol as wire
from retorque.runtime.drivers.franka_protocol import MoveStatus, Request, RobotMode
from retorque.runtime.fakes.hidden_robot import FakeSettings, arm, hidden_target
from retorque.runtime.fakes.loopback import check_loopback, listen

PERIOD, SLIP = 1e-3, 1e-4
"""The box's cycle, and how late it may begin one before its clock gives way [s]."""
LOST_IN_A_ROW = 20
"""Commands that may be missing in a row before the arm stops, as the maker says."""
TORQUE_JUMP = 2.0
"""Change of a torque within one cycle at which the arm stops [N·m]; the maker allows 1 N·m and filters more."""
FIRST_COMMAND, PATIENCE = 1.0, 10.0
"""How long the box waits for the first torque of a motion in real time, and for any torque in lockstep [s]."""
START = 0.25
"""How long a box in lockstep waits for the first torque before it sends another state: some clients look first [s]."""
FAULTS = ("reflex", "user-stop", "nan", "silent", "hang-up")


@dataclass(frozen=True, kw_only=True)
class FrankaBoxSettings(FakeSettings):
    """A fake control box; faults: reflex, user-stop, nan (one state), silent (no more states), hang-up."""

    host: str = "127.0.0.1"
    """Loopback address to listen on; the port is always 1337, so several boxes take several addresses (127.0.0.2)."""
    lockstep: bool = False
    """Wait for every answer instead of keeping real time: slow machines lose nothing, and results repeat."""
    loss: float = 0.0
    """Share of the states that never arrive."""
    repeat: float = 0.0
    """Share of the states that arrive twice, the second time late."""
    version: int = wire.VERSION
    """Version of the protocol that the box claims to speak."""
    plain_urdf: bool = False
    """Serve a URDF without `<position_based_velocity_limits>`, which libfranka refuses."""

    def check(self) -> None:
        """Refuse what cannot be."""
        check_loopback(self.host)
        self.check_faults(FAULTS)


@dataclass
class BoxReport:
    """What a box saw of its clients."""

    states: int = 0
    """States sent while a motion ran."""
    missed: int = 0
    """Commands that did not arrive in time."""
    motions: int = 0
    """Motions begun."""
    ended: str = ""
    """How the last motion ended."""

    def words(self) -> str:
        """One line."""
        share = 100.0 * self.missed / max(1, self.states)
        return f"{self.states} states in motion, {self.missed} commands missed ({share:.3f} %); last motion: " + (
            self.ended or "none"
        )


class FrankaBox:
    """Serves one client after the other. Between motions the brakes hold the arm.

    It follows the public protocol and the maker's documented rules (20 lost commands in a row, torque jumps, joint
    limits), not the maker's software; a real arm may refuse what this one accepts.

    Args:
        settings: what it is like.
    """

    def __init__(self, settings: FrankaBoxSettings):
        settings.check()
        self.settings = settings
        self.robot = arm(settings, 7, "Franka", "panda")
        self.target = hidden_target(settings, self.robot)
        self.report = BoxReport()
        self._gravity = RigidBody(self.robot).gravity
        self._rng = np.random.default_rng([max(0, settings.seed), 7])
        self._number = 0  # of the state, one a millisecond
        self._listener = listen(settings.host, wire.PORT, 1)
        self._listener.settimeout(0.1)

    def serve(self, goes_on: Callable[[], bool] = lambda: True, told: Callable[[str], None] = lambda _: None) -> None:
        """Serve clients while `goes_on`; `told` gets a line at the end of each."""
        try:
            while goes_on():
                try:
                    connection, address = self._listener.accept()
                except TimeoutError:
                    continue
                with connection, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    with contextlib.suppress(ConnectionError):
                        _Session(self, connection, datagrams, address[0]).run(goes_on)
                told(self.report.words())
        finally:
            self._listener.close()

    def urdf(self) -> str:
        """The arm's model as the box serves it, with the element that libfranka asks for in every joint."""
        root = ElementTree.fromstring(write_urdf(self.robot))
        if not self.settings.plain_urdf:
            for joint in root.iter("joint"):
                if joint.get("type") == "revolute":
                    limits = {"kind": "linear", "velocity_offset": "0.3", "deceleration_limit": "6.0"}
                    ElementTree.SubElement(joint, "position_based_velocity_limits", limits)
        return ElementTree.tostring(root, encoding="unicode")


class _Session:
    """One client."""

    def __init__(self, box: FrankaBox, connection: socket.socket, datagrams: socket.socket, host: str):
        self.box, self.connection, self.datagrams, self.host = box, connection, datagrams, host
        connection.setblocking(False)
        datagrams.bind((box.settings.host, 0))
        self.buffer = bytearray()
        self.port = 0  # where the client listens for states; 0: not connected yet
        self.move: int | None = None  # number of the Move request under way
        self.answered = False  # whether the motion has had its first torque
        self.began = 0.0
        self.lost = 0
        self.torque = np.zeros(7)  # without gravity [N·m]
        self.faults = box.settings.due()
        self.silent = self.gone = False
        self.arrives = True  # whether the state that was sent last does
        self.started = 0.0
        self.state = np.zeros((), dtype=wire.STATE)
        for name in ("O_T_EE", "O_T_EE_d", "F_T_EE", "EE_T_K", "F_T_NE", "NE_T_EE", "O_T_EE_c"):
            self.state[name] = np.eye(4).ravel()
        self.state["robot_mode"], self.state["controller_mode"] = RobotMode.IDLE, wire.OTHER_CONTROLLER
        self.successes = 100
        self.before: bytes | None = None

    def run(self, goes_on: Callable[[], bool]) -> None:
        """Until the client hangs up."""
        due = time.monotonic()
        while goes_on() and not self.gone:
            begin = time.monotonic()
            due = due + PERIOD if begin < due + SLIP else begin + PERIOD  # a host that stalls must not cost the client
            self._requests()
            if self.port and not self.silent:
                self._cycle(max(due, begin + PERIOD - SLIP))
            rest = due - time.monotonic()
            if rest > 0.0 and not (self.box.settings.lockstep and self.answered):
                time.sleep(rest)

    def _cycle(self, deadline: float) -> None:
        """Send a state, take the answer, move the arm."""
        box = self.box
        box._number += 1
        if self.move is not None:
            self._faults()
        self._send_state()
        if self.move is None:
            return
        box.report.states += 1
        wait = max(0.0, deadline - time.monotonic() - 0.15 * PERIOD)  # the rest is for moving the arm
        if box.settings.lockstep and self.arrives:
            wait = PATIENCE if self.answered else START
        command = self._command(wait)
        if command is None:
            self._missed()
            if self.move is None:
                return
        else:
            self.lost, self.answered = 0, True
            self.successes = min(100, self.successes + 1)
            torque = np.array(command[wire.TORQUES])
            if not np.isfinite(torque).all() or np.abs(torque - self.torque).max() > TORQUE_JUMP:
                self._abort(wire.TORQUE_JUMP)
                return
            self.torque = torque
            if any(command[index] for index in wire.OVER):
                self._end(MoveStatus.SUCCESS, "finished by the client")
                return
        if not self.answered:
            return  # the brakes still hold
        target = box.target
        target.write(Command(torque=self.torque + box._gravity(target.position)))
        if (np.abs(target.velocity) > 1.2 * box.robot.velocity_limit).any():
            self._abort(wire.JOINT_VELOCITY)
        elif ((target.position < box.robot.lower) | (target.position > box.robot.upper)).any():
            self._abort(wire.JOINT_POSITION)

    def _send_state(self) -> None:
        box, state = self.box, self.state
        report = box.target.read()
        state["message_id"] = box._number
        state["q"] = state["q_d"] = state["theta"] = report.position
        state["dq"] = state["dq_d"] = state["dtheta"] = report.velocity if self.move is not None else 0.0
        state["tau_J_d"] = self.torque
        state["tau_J"] = self.torque + box._gravity(report.position)
        state["control_command_success_rate"] = self.successes / 100.0 if self.move is not None else 0.0
        data = state.tobytes()
        settings, draw = box.settings, box._rng.uniform(size=2)
        self.arrives = draw[0] >= settings.loss
        if self.arrives:
            self._send(data)
        if self.before is not None and draw[1] < settings.repeat:
            self._send(self.before)
        self.before = data

    def _send(self, data: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # a client that has gone: the TCP side will tell
            self.datagrams.sendto(data, (self.host, self.port))

    def _command(self, wait: float) -> tuple[Any, ...] | None:
        """The answer to the present state, if it comes in time."""
        until = time.monotonic() + wait
        while True:
            rest = until - time.monotonic()
            ready = select.select([self.datagrams, self.connection], [], [], max(0.0, rest))[0]
            if self.connection in ready:
                self._requests()
                if self.move is None or self.gone:
                    return None
            if self.datagrams in ready:
                with contextlib.suppress(ConnectionError):
                    data = self.datagrams.recv(2048)
                    if len(data) == wire.COMMAND.size:
                        command = wire.COMMAND.unpack(data)
                        if command[0] == self.box._number or not self.answered:
                            return command
            if rest <= 0.0:
                return None

    def _missed(self) -> None:
        if self.move is None:
            return
        if not self.answered:
            if time.monotonic() - self.began > (PATIENCE if self.box.settings.lockstep else FIRST_COMMAND):
                self._abort(wire.COMMUNICATION)
            return
        self.box.report.missed += 1
        self.successes = max(0, self.successes - 1)
        self.lost += 1
        if self.lost > LOST_IN_A_ROW:
            self._abort(wire.COMMUNICATION)

    def _faults(self) -> None:
        elapsed = self.box.target.time - self.started
        self.state["q"] = 0.0
        while self.faults and self.faults[0][0] <= elapsed:
            _, name = self.faults.pop(0)
            if name == "reflex":
                self._abort(wire.JOINT_REFLEX)
            elif name == "user-stop":
                self._end(MoveStatus.EMERGENCY, "user stop", RobotMode.USER_STOPPED)
            elif name == "silent":
                self.silent = True
            elif name == "hang-up":
                self.gone = True
            elif name == "nan":
                self._spoil()
            if self.move is None:
                return

    def _spoil(self) -> None:
        """One state in which nothing is a number."""
        spoilt = self.state.copy()
        spoilt["message_id"] = self.box._number
        for name in ("q", "dq", "tau_J", "tau_J_d"):
            spoilt[name] = np.nan
        self._send(spoilt.tobytes())
        self._command(PATIENCE if self.box.settings.lockstep else PERIOD)
        self.box._number += 1

    def _abort(self, error: int) -> None:
        self.state["errors"][error] = self.state["reflex_reason"][error] = 1
        self._end(MoveStatus.REFLEX, f"reflex (error {error})", RobotMode.REFLEX)

    def _end(self, status: MoveStatus, words: str, mode: RobotMode = RobotMode.IDLE) -> None:
        """The motion is over: brakes on, and the client is told."""
        number, self.move = self.move, None
        self.answered = False
        self.torque = np.zeros(7)
        self.box.target.velocity[...] = 0.0
        self.box.report.ended = words
        self.state["robot_mode"], self.state["controller_mode"] = mode, wire.OTHER_CONTROLLER
        self.state["motion_generator_mode"] = 0
        assert number is not None
        self._reply(Request.MOVE, number, bytes([status]))
        if mode is not RobotMode.IDLE:
            self._send_state_again()

    def _send_state_again(self) -> None:
        self.box._number += 1
        self._send_state()

    def _requests(self) -> None:
        """Read what came over TCP and answer it."""
        try:
            data = self.connection.recv(65536)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self.gone = True
            if self.move is not None:
                self.box.report.ended = "the client hung up"
            return
        self.buffer += data
        while len(self.buffer) >= wire.HEADER.size:
            request, number, size = wire.HEADER.unpack_from(self.buffer)
            if size < wire.HEADER.size or size > 1 << 20:
                self.gone = True  # this is no libfranka
                return
            if len(self.buffer) < size:
                return
            payload = bytes(self.buffer[wire.HEADER.size : size])
            del self.buffer[:size]
            self._answer(request, number, payload)

    def _answer(self, request: int, number: int, payload: bytes) -> None:
        if request == Request.CONNECT and len(payload) == wire.CONNECT.size:
            version, port = wire.CONNECT.unpack(payload)
            ours = self.box.settings.version
            self._reply(request, number, wire.CONNECTED.pack(int(version != ours), ours))
            if version == ours:
                self.port = port
        elif request == Request.MOVE and len(payload) >= wire.MOVE.size:
            self._begin(number, *wire.MOVE.unpack_from(payload))
        elif request == Request.STOP_MOVE:
            if self.move is not None:
                self._end(MoveStatus.PREEMPTED, "stopped by the client")
            self._reply(request, number, b"\0")
        elif request == Request.GET_ROBOT_MODEL:
            self._reply(request, number, b"\0" + self.box.urdf().encode())
        elif request == Request.AUTOMATIC_ERROR_RECOVERY:
            user = int(self.state["robot_mode"]) == RobotMode.USER_STOPPED
            if not user:
                self.state["robot_mode"] = RobotMode.IDLE
                self.state["errors"] = 0
            self._reply(request, number, bytes([2 if user else 0]))
        else:
            self._reply(request, number, b"\0")

    def _begin(self, number: int, controller: int, generator: int) -> None:
        mode = int(self.state["robot_mode"])
        if mode != RobotMode.IDLE or self.move is not None or controller != wire.EXTERNAL_CONTROLLER:
            self._reply(Request.MOVE, number, bytes([MoveStatus.NOT_POSSIBLE]))
            return
        self.move, self.answered, self.lost, self.began = number, False, 0, time.monotonic()
        self.started = self.box.target.time
        self.torque = np.zeros(7)
        self.state["reflex_reason"] = 0
        self.state["robot_mode"], self.state["controller_mode"] = RobotMode.MOVE, wire.EXTERNAL_CONTROLLER
        self.state["motion_generator_mode"] = generator + 1  # a state counts from "none" on
        self.box.report.motions += 1
        self._reply(Request.MOVE, number, bytes([MoveStatus.STARTED]))

    def _reply(self, request: int, number: int, payload: bytes) -> None:
        with contextlib.suppress(ConnectionError, BlockingIOError):
            self.connection.sendall(wire.message(request, number, payload))
