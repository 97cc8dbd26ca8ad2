"""A UR controller in software: dashboard, program port and RTDE, enough for ur_rtde to move a simulated arm."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.runtime.drivers import ur_protocol as wire
from retorque.runtime.fakes.hidden_robot import FakeSettings, arm, hidden_target
from retorque.runtime.fakes.loopback import check_loopback, listen
from retorque.work.errors import RetorqueError

PERIOD = 0.002
"""The controller's cycle [s]."""
PATIENCE = 10.0
"""How long a controller in lockstep waits for a torque [s]."""
FAULTS = ("protective", "emergency", "silent", "program")


@dataclass(frozen=True, kw_only=True)
class UrControllerSettings(FakeSettings):
    """A fake controller; faults: protective, emergency (stops), silent (no more reports), program (it ends)."""

    robot: str = "ur10e"
    """A robot on board of 6 joints, or the path of a card, URDF or MJCF."""
    host: str = "127.0.0.1"
    """Loopback address to listen on."""
    polyscope: str = "5.26.0"
    """Software version that it claims to be."""
    local: bool = False
    """The pendant has the say: no programs from outside."""
    lockstep: bool = False
    """Once a torque has come, wait for one after every report instead of keeping real time."""

    def check(self) -> None:
        """Refuse what cannot be."""
        check_loopback(self.host)
        self.check_faults(FAULTS)


@dataclass
class _Client:
    """One connection."""

    socket: socket.socket
    port: int
    buffer: bytearray = field(default_factory=bytearray)
    outputs: list[str] = field(default_factory=list)
    layout: struct.Struct = field(default_factory=lambda: struct.Struct(">"))
    inputs: list[struct.Struct] = field(default_factory=list)
    started: bool = False


class UrController:
    """Runs whatever program is uploaded as if it were ur_rtde's: a torque in its registers moves the arm.

    It follows the public protocol, not the maker's software; the program itself is not interpreted.

    Args:
        settings: what it is like.
    """

    def __init__(self, settings: UrControllerSettings):
        settings.check()
        self.settings = settings
        self.robot = arm(settings, 6, "UR", "ur10e")
        self.target = hidden_target(settings, self.robot, PERIOD)
        self._gravity = RigidBody(self.robot).gravity
        self._listeners: dict[socket.socket, int] = {}
        self._clients: list[_Client] = []
        try:
            for port in (wire.DASHBOARD, wire.SCRIPT, wire.EXCHANGE):
                self._listeners[listen(settings.host, port, 4)] = port
        except RetorqueError:
            for listener in self._listeners:
                listener.close()
            raise
        self._running, self._safety, self._silent = False, wire.NORMAL, False
        self._torque: np.ndarray | None = None
        self._new = False
        self._clock = 0.0
        self._faults = settings.due()
        self.torques = 0
        """Torques that were taken."""

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Serve clients while `goes_on`."""
        due = time.monotonic()
        try:
            while goes_on():
                now = time.monotonic()
                due = min(max(due + PERIOD, now - PERIOD), now + PERIOD)  # lockstep may have been faster, or slower
                self._hear(0.0)
                self._befall()
                self._clock += PERIOD
                if not self._silent:
                    self._report()
                self._new = False
                until = time.monotonic() + PATIENCE if self.settings.lockstep and self._torque is not None else due
                while (rest := until - time.monotonic()) > 0.0 and goes_on():
                    self._hear(min(rest, 0.05))
                    if self.settings.lockstep and (self._new or not self._running):
                        break
                if self._running and self._torque is not None:
                    self.target.write(Command(torque=self._torque + self._gravity(self.target.position)))
        finally:
            for end in (*self._listeners, *(client.socket for client in self._clients)):
                end.close()

    def words(self) -> str:
        """One line."""
        return f"{self.torques} torques taken in {self.target.time:.2f} s of simulated motion"

    def _befall(self) -> None:
        while self._running and self._faults and self._faults[0][0] <= self.target.time:
            fault = self._faults.pop(0)[1]
            if fault == "silent":
                self._silent = True
                continue
            if fault != "program":
                self._safety = wire.PROTECTIVE if fault == "protective" else wire.EMERGENCY
            self._halt()

    def _halt(self) -> None:
        """The program is over: brakes on."""
        self._running, self._torque = False, None
        self.target.velocity[...] = 0.0

    def _hear(self, wait: float) -> None:
        """Take in whatever has come, waiting at most so long [s]."""
        ends = {client.socket: client for client in self._clients}
        for ready in select.select([*self._listeners, *ends], [], [], wait)[0]:
            if ready in self._listeners:
                connection, _ = ready.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                client = _Client(connection, self._listeners[ready])
                self._clients.append(client)
                if client.port == wire.DASHBOARD:
                    self._send(client, b"Connected: Universal Robots Dashboard Server\n")
                continue
            client = ends[ready]
            try:
                data = ready.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data or not self._take(client, data):
                self._drop(client)

    def _drop(self, client: _Client) -> None:
        client.socket.close()
        if client in self._clients:
            self._clients.remove(client)
        if client.inputs:  # whoever sent torques has gone
            self._halt()

    def _take(self, client: _Client, data: bytes) -> bool:
        """Answer what a client says; False where it speaks something else."""
        client.buffer += data
        if client.port == wire.DASHBOARD:
            while b"\n" in client.buffer:
                line, _, rest = bytes(client.buffer).partition(b"\n")
                client.buffer[:] = rest
                self._send(client, self._dashboard(line.decode(errors="replace").strip()).encode() + b"\n")
        elif client.port == wire.SCRIPT:
            if bytes(client.buffer).rstrip().endswith(b"end") and not self.settings.local:
                client.buffer.clear()
                self._running = self._safety == wire.NORMAL
                self._torque = None
        else:
            try:
                for kind, payload in wire.packages(client.buffer):
                    self._exchange(client, kind, payload)
            except (ValueError, struct.error, IndexError):
                return False
        return True

    def _dashboard(self, question: str) -> str:
        if question == "stop":
            self._halt()
        return {
            "PolyscopeVersion": f"URSoftware {self.settings.polyscope}.0 (a fake)",
            "get serial number": "20260000001",
            "get robot model": "UR10",
            "is in remote control": "false" if self.settings.local else "true",
            "robotmode": "Robotmode: RUNNING",
            "running": f"Program running: {str(self._running).lower()}",
            "stop": "Stopped",
        }.get(question, f"could not understand: '{question}'")

    def _exchange(self, client: _Client, kind: int, payload: bytes) -> None:
        """One RTDE package."""
        if kind == wire.DATA:
            self._registers(client.inputs[payload[0] - 1].unpack(payload[1:]), payload)
            return
        answer = b"\x01"
        if kind == wire.CONTROLLER:
            numbers = [int(part) for part in self.settings.polyscope.split(".")[:3]]
            answer = struct.pack(">IIII", *numbers, *[0] * (4 - len(numbers)))
        elif kind == wire.OUTPUTS:
            client.outputs = [name for name in payload[8:].decode().split(",") if name]
            client.layout = wire.recipe_layout(client.outputs)
            answer = b"\x01" + ",".join(map(wire.type_of, client.outputs)).encode()
        elif kind == wire.INPUTS:
            names = [name for name in payload.decode().split(",") if name]
            client.inputs.append(wire.recipe_layout(names))
            answer = bytes([len(client.inputs)]) + ",".join(map(wire.type_of, names)).encode()
        self._send(client, wire.package(kind, answer))
        client.started = kind == wire.START or (client.started and kind != wire.PAUSE)

    def _registers(self, values: tuple[Any, ...], payload: bytes) -> None:
        command = values[0]
        if command == wire.DIRECT_TORQUE and len(values) >= 7 and self._running:
            torque = np.array(values[1:7])
            if not np.isfinite(torque).all():
                self._safety = wire.PROTECTIVE
                self._halt()
                return
            self._torque, self._new = torque, True
            self.torques += 1
        elif command == wire.STOP_SCRIPT:
            self._halt()

    def _report(self) -> None:
        """Send every started client what it asked for."""
        state = self.target.read()
        torque = np.zeros(6) if self._torque is None else self._torque
        moment = torque + self._gravity(state.position)
        known: dict[str, Any] = {
            "timestamp": self._clock,
            "actual_q": state.position,
            "target_q": state.position,
            "actual_qd": state.velocity,
            "target_moment": moment,
            "robot_mode": 7,
            "safety_mode": 1,
            "robot_status_bits": wire.POWER_ON | (wire.RUNNING if self._running else 0),
            "safety_status_bits": self._safety,
            "runtime_state": 2 if self._running else 1,
            "output_int_register_0": wire.READY if self._running else 0,
        }
        for client in list(self._clients):
            if client.started and client.outputs:
                values: list[Any] = []
                for name in client.outputs:
                    count = {"VECTOR6D": 6, "VECTOR6INT32": 6, "VECTOR3D": 3}.get(wire.type_of(name), 1)
                    values += np.ravel(known.get(name, [0] * count)).tolist()
                self._send(client, wire.package(wire.DATA, b"\x01" + client.layout.pack(*values)))

    def _send(self, client: _Client, data: bytes) -> None:
        with contextlib.suppress(OSError):
            client.socket.sendall(data)
