"""Dynamixel servos in software: a bus on a pseudo-terminal (protocol 2.0) and a simulated robot behind it."""

from __future__ import annotations

import os
import pty
import select
import time
import tty
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from retorque.physics.default_profile import critical_damping
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.runtime.drivers import dynamixel_protocol as wire
from retorque.runtime.drivers.dynamixel_motors import servo_motors, with_rotors
from retorque.runtime.drivers.dynamixel_protocol import Address, Instruction
from retorque.runtime.fakes.hidden_robot import FakeSettings, hidden_target
from retorque.work.errors import RetorqueError

STEP = 1e-3
"""Physics step [s]."""
MODEL = 1240
"""Model number that the servos give."""
BEHIND = 0.05
"""Simulated time that is made up for after a stall, at most [s]."""
ACCESS, RANGE, ALERT = 7, 4, 0x80
"""Errors in a status packet: not writable now, no such value, a hardware error."""
FAULTS = ("silent", "overheat", "noise")
BANDWIDTH = 25.0
"""Of the servos' own position control [rad/s]."""


@dataclass(frozen=True, kw_only=True)
class DynamixelBusSettings(FakeSettings):
    """Fake servos; faults: silent (one says nothing more), overheat (one lets go), noise (every packet is spoilt)."""

    robot: str = "leap_hand"
    """A robot on board, or the path of a card, URDF or MJCF."""
    motor: str = ""
    """A motor on board, such as XC330 or XM430-W350; default: what the card says."""
    first_id: int = 1
    """Number of the first joint's servo; the others follow."""
    victim: int = 0
    """Servo that faults befall; 0: the middle one."""
    corrupt: float = 0.0
    """Share of the status packets with a wrong byte."""
    old_firmware: bool = False
    """The servos do not know Fast Sync Read."""
    lockstep: float = 0.0
    """Advance so much with every read of all servos, instead of keeping real time [s]."""

    def check(self) -> None:
        """Refuse what cannot be."""
        self.check_faults(FAULTS)
        if not 0.0 <= self.lockstep <= 0.1:
            raise RetorqueError(f"--lockstep must be between 0 and 0.1 s, not {self.lockstep}")


class DynamixelBus:
    """A bus of servos, one a joint, in position or current mode, each with its control table and watchdog.

    Args:
        settings: what it is like.
    """

    def __init__(self, settings: DynamixelBusSettings):
        settings.check()
        self.settings = settings
        robot = load(settings.robot)
        motors = servo_motors(robot, settings.motor)
        self.robot = with_rotors(robot, motors)
        self.target = hidden_target(settings, self.robot, STEP)
        n = self.robot.n
        self.ids = {settings.first_id + k: k for k in range(n)}
        self.tables = [bytearray(256) for _ in range(n)]
        for servo, k in self.ids.items():
            self._put(k, Address.MODEL, 2, MODEL)
            self._put(k, Address.ID, 1, servo)
            self._put(k, Address.OPERATING_MODE, 1, wire.POSITION_MODE)
        self._constant = np.array([motor.torque_constant for motor in motors])
        self._unit = motors[0].current_step
        inertia = RigidBody(self.robot).mass_matrix(self.robot.home)
        self._stiffness = np.maximum(BANDWIDTH**2 * np.diagonal(inertia), 0.5)
        self._damping = critical_damping(self.robot, self._stiffness)
        self._heard = np.zeros(n)  # simulated time of each servo's last instruction [s]
        self._silent: set[int] = set()
        self._noise = False
        self._faults = settings.due()
        self._rng = np.random.default_rng([max(0, settings.seed), 9])
        self._buffer = bytearray()
        self._current = np.zeros(n)
        self.reads = 0
        """Reads of all servos that were answered."""
        self._master, self._slave = pty.openpty()
        tty.setraw(self._master)
        tty.setraw(self._slave)
        self.path = os.ttyname(self._slave)
        """The serial port."""
        for k in range(n):
            self._write(k, Address.TORQUE_ENABLE, b"\x01")  # it holds itself until somebody drives it

    def serve(self, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Serve while `goes_on`."""
        begin, paused = time.monotonic(), self.target.time
        try:
            while goes_on():
                if select.select([self._master], [], [], max(0.0, STEP - self._behind(begin, paused)))[0]:
                    self._buffer += os.read(self._master, 4096)
                    for servo, instruction, parameters in wire.packets(self._buffer):
                        self._take(servo, instruction, parameters)
                if not self.settings.lockstep:
                    behind = self._behind(begin, paused)
                    if behind > BEHIND:
                        begin += behind - BEHIND
                    while self._behind(begin, paused) >= STEP:
                        self._step()
        finally:
            os.close(self._master)
            os.close(self._slave)

    def words(self) -> str:
        """One line."""
        return f"{self.reads} reads of all servos in {self.target.time:.2f} s of simulated time"

    def _behind(self, begin: float, paused: float) -> float:
        return 0.0 if self.settings.lockstep else time.monotonic() - begin - (self.target.time - paused)

    def _step(self) -> None:
        """Move the robot by one physics step under what each servo is told."""
        now, target = self.target.time, self.target
        while self._faults and self._faults[0][0] <= now:
            self._befall(self._faults.pop(0)[1])
        torque = np.zeros(self.robot.n)
        for k, table in enumerate(self.tables):
            watchdog = table[Address.WATCHDOG] * wire.WATCHDOG_UNIT
            if 0.0 < watchdog < now - self._heard[k]:
                table[Address.WATCHDOG] = 255  # tripped: nothing moves until it is cleared
            if not table[Address.TORQUE_ENABLE] or table[Address.WATCHDOG] == 255:
                continue
            if table[Address.OPERATING_MODE] == wire.CURRENT_MODE:
                torque[k] = self._get(k, Address.GOAL_CURRENT, 2) * self._unit * self._constant[k]
            else:
                goal = self._get(k, Address.GOAL_POSITION, 4) * wire.POSITION_UNIT - np.pi
                error = goal - target.position[k]
                torque[k] = self._stiffness[k] * error - self._damping[k] * target.velocity[k]
        self._current = np.clip(torque, -self.robot.torque_limit, self.robot.torque_limit) / self._constant
        target.write(Command(torque=torque))

    def _measure(self) -> None:
        """Put what the sensors say into the control tables."""
        position = np.rint((self.target.position + np.pi) / wire.POSITION_UNIT)
        velocity = np.rint(self.target.velocity / wire.VELOCITY_UNIT)
        current = np.rint(self._current / self._unit)
        for k in range(self.robot.n):
            self._put(k, Address.PRESENT_CURRENT, 2, int(current[k]))
            self._put(k, Address.PRESENT_VELOCITY, 4, int(velocity[k]))
            self._put(k, Address.PRESENT_POSITION, 4, int(position[k]))

    def _befall(self, fault: str) -> None:
        victim = self.settings.victim or self.settings.first_id + self.robot.n // 2
        if fault == "silent":
            self._silent.add(victim)
        elif fault == "noise":
            self._noise = True
        else:
            table = self.tables[self.ids[victim]]
            table[Address.HARDWARE_ERROR], table[Address.TORQUE_ENABLE] = 4, 0

    def _take(self, servo: int, instruction: int, parameters: bytes) -> None:
        if servo == wire.BROADCAST:
            if instruction in (Instruction.SYNC_READ, Instruction.FAST_SYNC_READ) and len(parameters) >= 4:
                self._sync_read(instruction, parameters)
            elif instruction == Instruction.SYNC_WRITE and len(parameters) >= 4:
                self._sync_write(parameters)
            return
        if servo not in self.ids or servo in self._silent:
            return
        k = self.ids[servo]
        self._heard[k] = self.target.time
        if instruction == Instruction.PING:
            self._answer(servo, bytes(self.tables[k][0:2]) + bytes([50]))
        elif instruction == Instruction.READ and len(parameters) == 4:
            at, size = (int.from_bytes(parameters[j : j + 2], "little") for j in (0, 2))
            self._measure()
            self._answer(servo, bytes(self.tables[k][at : at + size]), 0 if at + size <= 256 else RANGE)
        elif instruction == Instruction.WRITE and len(parameters) >= 3:
            at = int.from_bytes(parameters[:2], "little")
            self._answer(servo, b"", self._write(k, at, parameters[2:]))
        elif instruction == Instruction.REBOOT:
            self.tables[k][Address.HARDWARE_ERROR] = self.tables[k][Address.TORQUE_ENABLE] = 0
            self._answer(servo, b"")
        else:
            self._answer(servo, b"", 2)

    def _write(self, k: int, at: int, data: bytes) -> int:
        """Write into a control table as a servo does; its error number."""
        table = self.tables[k]
        if at + len(data) > 256:
            return RANGE
        if at < Address.TORQUE_ENABLE and table[Address.TORQUE_ENABLE]:
            return ACCESS
        if Address.GOAL_CURRENT <= at < Address.PRESENT_CURRENT and table[Address.WATCHDOG] == 255:
            return RANGE  # the maker's servos refuse goals until the watchdog is cleared
        if at == Address.TORQUE_ENABLE and data[0] and table[Address.OPERATING_MODE] == wire.POSITION_MODE:
            self._measure()
            self._put(k, Address.GOAL_POSITION, 4, self._get(k, Address.PRESENT_POSITION, 4))  # hold where it is
        if at == Address.TORQUE_ENABLE and table[Address.HARDWARE_ERROR]:
            return 0
        table[at : at + len(data)] = data
        return 0

    def _sync_write(self, parameters: bytes) -> None:
        at, size = (int.from_bytes(parameters[j : j + 2], "little") for j in (0, 2))
        rest = parameters[4:]
        for j in range(0, len(rest) - size, size + 1):
            servo = rest[j]
            if servo in self.ids and servo not in self._silent:
                self._heard[self.ids[servo]] = self.target.time
                self._write(self.ids[servo], at, rest[j + 1 : j + 1 + size])

    def _sync_read(self, instruction: int, parameters: bytes) -> None:
        at, size = (int.from_bytes(parameters[j : j + 2], "little") for j in (0, 2))
        servos = [servo for servo in parameters[4:] if servo in self.ids]
        for _ in range(round(self.settings.lockstep / STEP)):
            self._step()
        self._measure()
        self.reads += 1
        for servo in servos:
            self._heard[self.ids[servo]] = self.target.time
        if instruction == Instruction.SYNC_READ:
            for servo in servos:
                if servo not in self._silent:
                    self._answer(servo, bytes(self.tables[self.ids[servo]][at : at + size]))
        elif not self.settings.old_firmware and not self._silent & set(servos):  # one that is silent breaks the chain
            body = bytearray(wire.HEADER + bytes([wire.BROADCAST]))
            body += (1 + len(servos) * (size + 4)).to_bytes(2, "little") + bytes([wire.STATUS])
            for servo in servos:
                table = self.tables[self.ids[servo]]
                error = ALERT if table[Address.HARDWARE_ERROR] else 0
                body += bytes([error, servo]) + table[at : at + size]
                body += wire.crc(body).to_bytes(2, "little")
            self._transmit(bytes(body))

    def _answer(self, servo: int, data: bytes, error: int = 0) -> None:
        alert = ALERT if self.tables[self.ids[servo]][Address.HARDWARE_ERROR] else 0
        self._transmit(wire.packet(servo, wire.STATUS, bytes([error | alert]) + data))

    def _transmit(self, data: bytes) -> None:
        if self._noise or (self.settings.corrupt and self._rng.uniform() < self.settings.corrupt):
            spoilt = bytearray(data)
            spoilt[int(self._rng.integers(7, len(data)))] ^= 0x10
            data = bytes(spoilt)
        os.write(self._master, data)

    def _put(self, k: int, at: int, size: int, value: int) -> None:
        self.tables[k][at : at + size] = value.to_bytes(size, "little", signed=value < 0)

    def _get(self, k: int, at: int, size: int) -> int:
        return int.from_bytes(self.tables[k][at : at + size], "little", signed=True)
