"""Dynamixel servos over their serial bus: goal currents out, positions and velocities back."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.robots.robot import Robot
from retorque.robots.state import MotorReport, State
from retorque.runtime.drivers import dynamixel_protocol as wire
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.runtime.drivers.dynamixel_motors import servo_motors, with_rotors
from retorque.runtime.drivers.dynamixel_protocol import Address
from retorque.runtime.drivers.wiring import numbers, read_wiring
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

FAILURES = 4
"""Reads that may fail in a row before the robot is stopped."""
WATCHDOG = 0.1
"""A servo that hears nothing for so long stops by itself [s]."""
BLOCK = 0.001
"""How long a read of the port sleeps for bytes; the SDK itself spins, which takes the core from the loop [s]."""
WIDEST = 2047
"""Largest goal current, in units."""


@dataclass(frozen=True, kw_only=True)
class DynamixelWiring:
    """A wiring file of the dynamixel driver."""

    ids: tuple[int, ...] = ()
    """Servo of each joint, in the card's order; default: 1 to n."""
    signs: tuple[float, ...] = ()
    """1 or -1 of each joint: which way the servo turns; default: 1."""
    zeros: tuple[float, ...] = ()
    """Servo angle at joint position 0 [rad]; default: pi, the middle."""
    motor: str = ""
    """A motor on board (XC330, XC330-M288, XM430-W210, ...) or the path of its card; default: what the card says."""
    torque_constants: tuple[float, ...] = ()
    """Joint torque per current [N·m/A] instead of the motor's own."""
    baud: int = 4_000_000
    """Of the bus [bit/s]."""
    rate: float = 200.0
    """Control rate [Hz]."""
    timeout: float = 0.008
    """How long to wait for the servos [s]; a USB adapter's own latency (1 to 16 ms) comes out of this."""
    at_end: str = "hold"
    """hold: the servos hold where they are; limp: they let go."""
    stamps: str = "time"
    """time, or count: every report one period after the last, for a fake that waits."""


class Dynamixel(Driver):
    """Servos in current mode; `robot` has their rotors, where its card has none.

    A read that fails is a report of NaN; several in a row stop the robot.

    Every servo's own watchdog stops it when nothing is heard for 0.1 s, so that also a killed process stops the robot.

    Args:
        robot: the ideal robot.
        port: serial port, such as /dev/ttyUSB0.
        wiring: TOML file; default: ids 1 to n, all turning forward, zero in the middle.
    """

    met_hardware = "tried with dynamixel-sdk 4.1.0 against the fake bus; has not met servos"

    def __init__(self, robot: Robot, port: str, *, wiring: Path | None = None):
        self.wiring = w = read_wiring(wiring, DynamixelWiring)
        motors = servo_motors(robot, w.motor)
        super().__init__(with_rotors(robot, motors))
        n, self._unit = robot.n, motors[0].current_step
        self.ids = [int(x) for x in (w.ids or range(1, n + 1))]
        if len(self.ids) != n or len(set(self.ids)) != n or not all(0 <= x < 253 for x in self.ids):
            raise RetorqueError(f"'ids' in the wiring must be {n} different numbers from 0 to 252, one a joint")
        self._sign = np.array(numbers("signs", w.signs, n, 1.0))
        if not np.all(np.abs(self._sign) == 1.0):
            raise RetorqueError("'signs' in the wiring must be 1 or -1")
        self._zero = np.array(numbers("zeros", w.zeros, n, float(np.pi)))
        self._constant = np.array(numbers("torque_constants", w.torque_constants, n, 0.0))
        if not w.torque_constants:
            self._constant = np.array([motor.torque_constant for motor in motors])
        if not np.all(self._constant > 0.0):
            raise RetorqueError("'torque_constants' in the wiring must be above 0; a servo turned round has sign -1")
        if not 10.0 <= w.rate <= 1000.0:
            raise RetorqueError(f"'rate' in the wiring must be between 10 and 1000 Hz, not {w.rate}")
        self.timestep = 1.0 / w.rate
        # what the largest current gives is a limit too
        self._limit = np.minimum(self._limit, WIDEST * self._unit * self._constant)
        self._open(port)
        self._failed = self._ticks = 0
        self.failures = 0
        """Reads that failed."""
        self._began = time.monotonic()
        self._goal = np.zeros(n)
        self._fine: Array | None = None

    def _open(self, port: str) -> None:
        try:
            import dynamixel_sdk
        except ModuleNotFoundError as error:
            raise RetorqueError(
                "the dynamixel driver needs dynamixel-sdk; run: pip install 'retorque[dynamixel]'"
            ) from error
        self._sdk = dynamixel_sdk
        self._port = _quick_port(dynamixel_sdk, port, self.wiring.timeout)
        try:
            opened = self._port.setBaudRate(self.wiring.baud)
        except (OSError, ValueError, TypeError) as error:
            raise RobotStopped(f"no servos at '{port}': {error}; check --host, the cable and your rights") from error
        if not opened:
            raise RobotStopped(f"'{port}' does not do {self.wiring.baud} bit/s; set 'baud' in the wiring")
        self._port.ser.timeout = BLOCK
        self._handler = dynamixel_sdk.PacketHandler(2.0)
        silent = self._silent()
        if silent:
            self._port.closePort()
            raise RobotStopped(
                f"no answer from {_servos(silent)} at '{port}'; check power, cable, 'ids' and 'baud' in the wiring"
            )
        self._reader = dynamixel_sdk.GroupSyncRead(self._port, self._handler, Address.PRESENT_CURRENT, wire.PRESENT)
        for servo in self.ids:
            self._reader.addParam(servo)
        self._writer = dynamixel_sdk.GroupSyncWrite(self._port, self._handler, Address.GOAL_CURRENT, 2)
        self._fast = self._reader.fastSyncRead() == dynamixel_sdk.COMM_SUCCESS  # newer firmware only
        self._closed = False

    def _begin(self, act: bool) -> None:
        if act:
            self._set(Address.TORQUE_ENABLE, 1, 0)
            self._set(Address.OPERATING_MODE, 1, wire.CURRENT_MODE)
            self._set(Address.GOAL_CURRENT, 2, 0)
            self._set(Address.WATCHDOG, 1, 0)
            self._set(Address.TORQUE_ENABLE, 1, 1)
            self._set(Address.WATCHDOG, 1, round(WATCHDOG / wire.WATCHDOG_UNIT))

    def _report(self) -> State:
        sdk, reader = self._sdk, self._reader
        now = time.monotonic() - self._began if self.wiring.stamps == "time" else self._ticks * self.timestep
        self._ticks += 1
        result = reader.fastSyncRead() if self._fast else reader.txRxPacket()
        if result != sdk.COMM_SUCCESS:
            return self._no_report(now)
        self._failed = 0
        data = np.frombuffer(b"".join(bytes(reader.data_dict[servo]) for servo in self.ids), REPORT)
        current = self._sign * data["current"] * self._unit
        velocity = self._sign * data["velocity"] * wire.VELOCITY_UNIT
        position = self._between(self._sign * (data["position"] * wire.POSITION_UNIT - self._zero), velocity)
        torque = self._goal if self.acting else current * self._constant
        return State(now, position, velocity, torque, motor=MotorReport(current=current))

    def _between(self, position: Array, velocity: Array) -> Array:
        """The position within the encoder's step, carried on by the velocity: never more than half a step away.

        A slow joint would otherwise report the same position many times in a row while it moves.
        """
        half = 0.5 * wire.POSITION_UNIT
        carried = position if self._fine is None else self._fine + velocity * self.timestep
        self._fine = np.minimum(np.maximum(carried, position - half), position + half)
        return self._fine

    def _no_report(self, now: float) -> State:
        """A report in which nothing is a number; the robot is stopped once there were too many of them."""
        self.failures += 1
        self._failed += 1
        if self._failed > FAILURES:
            silent = self._silent()
            who = f"{_servos(silent)} fell silent" if silent else "what the servos say cannot be read (CRC errors)"
            raise RobotStopped(f"{who}; check power and cable, and a longer 'timeout' in the wiring")
        nothing = np.full(self.robot.n, np.nan)
        return State(now, nothing, nothing, nothing)

    def _send(self, torque: Array) -> None:
        units = np.rint(torque / (self._constant * self._unit)).astype(np.int16)
        self._goal = units * self._unit * self._constant
        raw = (self._sign * units).astype("<i2").tobytes()
        writer = self._writer
        writer.clearParam()
        for k, servo in enumerate(self.ids):
            writer.addParam(servo, list(raw[2 * k : 2 * k + 2]))
        writer.txPacket()

    def _end(self) -> None:
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(Exception):
            if self._sent is not None:  # we drove: leave them as the wiring says, whatever the last goal was
                self._set(Address.WATCHDOG, 1, 0, strict=False)
                self._set(Address.TORQUE_ENABLE, 1, 0, strict=False)
                if self.wiring.at_end == "hold":
                    self._set(Address.OPERATING_MODE, 1, wire.POSITION_MODE, strict=False)
                    self._set(Address.TORQUE_ENABLE, 1, 1, strict=False)
        with contextlib.suppress(Exception):
            self._port.closePort()

    def _set(self, address: Address, size: int, value: int, strict: bool = True) -> None:
        """Write a value into every servo, one after the other, so that each says whether it took it."""
        write = self._handler.write1ByteTxRx if size == 1 else self._handler.write2ByteTxRx
        for servo in self.ids:
            for _ in range(3):
                result, error = write(self._port, servo, address, value)
                if result == self._sdk.COMM_SUCCESS:
                    break
            if not strict:
                continue
            if result != self._sdk.COMM_SUCCESS:
                raise RobotStopped(f"servo {servo} does not answer; check power, cable and 'ids' in the wiring")
            if error & 0x80:
                raise RobotStopped(f"servo {servo} reports a hardware error (heat, load or voltage); reboot it")
            if error:
                raise RobotStopped(f"servo {servo} refuses {address.name} = {value}; can it be driven by current?")

    def _silent(self) -> list[int]:
        """Servos that do not answer a ping, twice."""
        found = []
        for servo in self.ids:
            if all(self._handler.ping(self._port, servo)[1] != self._sdk.COMM_SUCCESS for _ in range(2)):
                found.append(servo)
        return found


REPORT = np.dtype([("current", "<i2"), ("velocity", "<i4"), ("position", "<i4")])


def _quick_port(sdk: Any, name: str, timeout: float) -> Any:
    """The SDK's port with a shorter patience: its own is 34 ms a packet, seven control periods."""

    port = sdk.PortHandler(name)

    def set_timeout(packet_length: int) -> None:
        port.setPacketTimeoutMillis(port.tx_time_per_byte * packet_length + 1000.0 * timeout)

    port.setPacketTimeout = set_timeout
    return port


def _servos(ids: list[int]) -> str:
    return f"servo {ids[0]}" if len(ids) == 1 else f"servos {', '.join(map(str, ids))}"
