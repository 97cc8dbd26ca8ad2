"""From what motors report to the torque at their joints (equations 2 to 7 of the compliance paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from retorque.physics.kernels.compiled import kernel
from retorque.robots.motor import Motor, motors_of, transmissions
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array, read_only
from retorque.work.errors import RetorqueError, unknown

Signal = Literal["best", "current", "pwm", "torque"]
SIGNALS: tuple[Signal, ...] = ("best", "current", "pwm", "torque")
"""best: the current where a motor measures it, else the PWM, else the torque that the drive itself reports."""
VELOCITY_THRESHOLD = 0.02
"""Below this speed the direction of drive is kept (epsilon of equation 6) [rad/s]."""


@dataclass(frozen=True)
class JointMotors:
    """The constants of a robot's motors, an entry a joint, seen at the joint; NaN: unknown."""

    motors: tuple[Motor, ...]
    torque_constant: Array
    """(n,) joint torque a motor current, r Kt [N·m/A]."""
    velocity_constant: Array
    """(n,) joint speed a volt, Kv / r [rad/s/V]."""
    winding_resistance: Array
    """(n,) [ohm]"""
    bus_voltage: Array
    """(n,) [V]"""
    efficiency: Array
    """(n,)"""
    coulomb: Array
    """(n,) at the joint [N·m]."""
    viscous: Array
    """(n,) at the joint [N·m·s/rad]."""
    ratio: Array
    """(n,) joint torque over motor torque, r of equation 8."""
    torque_limit: Array
    """(n,) of the motor, before its gear: cards give what the output drives with [N·m]."""
    armature: Array
    """(n,) rotor inertia at the joint: the robot's card's, where it has none the motor's [kg·m²]."""

    @classmethod
    def of(cls, robot: Robot, motors: tuple[Motor, ...] | None = None) -> JointMotors:
        """Of a robot whose card names its motors; other motors may be given, one a joint (calibrated ones)."""
        motors = motors_of(robot) if motors is None else motors
        if len(motors) != robot.n:
            raise RetorqueError(f"'{robot.name}' has {robot.n} joints, not {len(motors)}; give a motor for each")
        ratio = transmissions(robot)

        def column(name: str) -> Array:
            return np.array([getattr(motor, name) for motor in motors])

        eta = column("efficiency")
        return cls(
            motors,
            read_only(ratio * column("torque_constant")),
            read_only(column("velocity_constant") / np.maximum(ratio, 1.0)),
            read_only(column("winding_resistance")),
            read_only(column("bus_voltage")),
            read_only(np.nan_to_num(eta, nan=1.0)),
            read_only(np.nan_to_num(ratio * column("coulomb"))),
            read_only(np.nan_to_num(ratio * column("viscous"))),
            read_only(ratio),
            read_only(np.fmin(robot.torque_limit, ratio * column("torque_limit")) / np.nan_to_num(eta, nan=1.0)),
            read_only(np.where(robot.armature > 0.0, robot.armature, np.nan_to_num(ratio * column("armature")))),
        )

    def friction_level(self, torque: Array, forward: Array) -> Array:
        """Largest friction under a motor torque (..., n), driving forward or being driven, (..., n) [N·m]."""
        return friction_level(torque, forward, self.coulomb, self.efficiency)


def friction_level(torque: Array, forward: Array, coulomb: Array, efficiency: Array) -> Array:
    """Coulomb friction plus what the gear's load adds: |τ| (1 - η) driving, |τ| (1/η - 1) driven (equation 7)."""
    share = np.where(forward, 1.0 - efficiency, 1.0 / efficiency - 1.0)
    return coulomb + share * np.abs(torque)


def winding_current(pwm: Array, voltage: Array, velocity: Array, kv: Array, resistance: Array) -> Array:
    """(PWM V - q̇ / Kv) / Rw (equations 2 to 4), (..., n) [A]."""
    return (pwm * voltage - velocity / kv) / resistance


class MotorTorque:
    """Joint torque that the motors make, before friction, from one of the signals they report.

    Args:
        joints: the motors' constants.
        signal: which report is read.
        used: (n,) joints that matter; constants of the others may be missing. Default: all.
    """

    def __init__(self, joints: JointMotors, signal: Signal = "best", used: Array | None = None):
        if signal not in SIGNALS:
            raise unknown("signal", signal, SIGNALS)
        self.joints = joints
        n = len(joints.motors)
        used = np.ones(n, dtype=bool) if used is None else np.asarray(used, dtype=bool)
        self.source = np.zeros(n, dtype=np.int64)
        """(n,) index into `SIGNALS` of what each joint's torque is read from."""
        for k, motor in enumerate(joints.motors):
            name = _choose(motor) if signal == "best" else signal
            if used[k]:
                if name == "current":
                    motor.require("torque_constant")
                elif name == "pwm":
                    motor.require("torque_constant", "velocity_constant", "winding_resistance")
            self.source[k] = SIGNALS.index(name)
        self._missing, self._nominal = np.zeros(0), np.zeros(0)
        self.complete = True
        """Whether every joint's signal was there at the last reading."""
        # What is unknown of joints that do not matter must not spread as NaN.
        self._constant = np.where(np.isfinite(joints.torque_constant), joints.torque_constant, 0.0)
        self._kv = np.where(np.isfinite(joints.velocity_constant), joints.velocity_constant, np.inf)
        self._rw = np.where(np.isfinite(joints.winding_resistance), joints.winding_resistance, np.inf)

    def read(self, state: State) -> Array:
        """Motor torque at the joints (..., n) [N·m]; NaN where the report is missing."""
        report, shape = state.motor, state.position.shape
        if shape != self._missing.shape:
            self._missing = np.full(shape, np.nan)
            self._nominal = np.broadcast_to(self.joints.bus_voltage, shape).copy()
        current = pwm = self._missing
        voltage = self._nominal
        if report is not None:
            current = self._missing if report.current is None else report.current
            pwm = self._missing if report.pwm is None else report.pwm
            voltage = self._nominal if report.voltage is None else report.voltage
        out = np.empty(shape)
        reports: tuple[Array, ...] = (state.torque, state.velocity, current, pwm, voltage, out)
        if len(shape) != 2:
            reports = tuple(x.reshape(-1, shape[-1]) for x in reports)
        self.complete = _read(self.source, self._constant, self._kv, self._rw, *reports)
        return out


@kernel
def _read(
    source: Array,
    constant: Array,
    kv: Array,
    rw: Array,
    torque: Array,
    velocity: Array,
    current: Array,
    pwm: Array,
    voltage: Array,
    out: Array,
) -> bool:
    """Fill joint torques by signal: 1 current, 2 PWM (equations 2 to 4), 3 torque; whether all are there."""
    complete = True
    for t in range(out.shape[0]):
        for j in range(out.shape[1]):
            if source[j] == 1:
                out[t, j] = constant[j] * current[t, j]
            elif source[j] == 2:
                out[t, j] = constant[j] * (pwm[t, j] * voltage[t, j] - velocity[t, j] / kv[j]) / rw[j]
            else:
                out[t, j] = torque[t, j]
            complete = complete and np.isfinite(out[t, j])
    return complete


def _choose(motor: Motor) -> Signal:
    if np.isfinite(motor.current_step) and np.isfinite(motor.torque_constant):
        return "current"
    if np.isfinite(motor.pwm_step):
        return "pwm"
    return "torque"


class DriveDirection:
    """Forward or backward drive with hysteresis (equation 6): +1 while the motor moves the load, else -1.

    Args:
        shape: (..., n)
        threshold: speed below which the direction is kept [rad/s].
    """

    def __init__(self, shape: tuple[int, ...], threshold: float = VELOCITY_THRESHOLD):
        self.threshold = threshold
        self.direction = np.ones(shape)

    def update(self, torque: Array, velocity: Array) -> Array:
        """The direction (..., n) after a motor torque and a velocity."""
        moving = np.abs(velocity) > self.threshold
        power = np.where(torque * velocity > 0.0, 1.0, -1.0)
        self.direction = np.where(moving, power, self.direction)
        return self.direction

    def load_torque(self, torque: Array, velocity: Array, efficiency: Array) -> Array:
        """η Kt I forward, Kt I / η backward (equation 7), (..., n) [N·m]."""
        return np.where(self.update(torque, velocity) > 0.0, efficiency * torque, torque / efficiency)
