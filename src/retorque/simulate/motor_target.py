"""The motor-level plant: servos and quasi-direct drives with currents, voltages, gear friction and stiction."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.physics.motor_torque import JointMotors, friction_level, winding_current
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import Base, MotorReport, State
from retorque.simulate.scene import Scene
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

STRIBECK = 0.02
"""Velocity over which friction falls from static to Coulomb, and the gear's load changes sides [rad/s]."""
STICKING = (0.995, 0.999, 0.001, 0.5, 2.0)
"""MuJoCo's impedance of joint friction: a stuck joint creeps by less than a thousandth of its free acceleration."""
STICKING_TIME = (0.005, 1.0)
"""Its time constant [s] and damping ratio."""


@dataclass(frozen=True, kw_only=True)
class MotorTruth:
    """What the motors really are; arrays (n,) or (trials, n), seen at the joints."""

    coulomb: Array
    """[N·m]"""
    static_ratio: Array
    """Static over Coulomb friction."""
    viscous: Array
    """[N·m·s/rad]"""
    efficiency: Array
    """Of the gears."""

    @classmethod
    def of_card(cls, robot: Robot) -> MotorTruth:
        """As the motors' cards have them."""
        joints = JointMotors.of(robot)
        return cls(
            coulomb=joints.coulomb,
            static_ratio=np.full(robot.n, 1.2),
            viscous=joints.viscous,
            efficiency=joints.efficiency,
        )

    @classmethod
    def frictionless(cls, robot: Robot) -> MotorTruth:
        """Ideal gears."""
        none = np.zeros(robot.n)
        return cls(coulomb=none, static_ratio=none + 1.0, viscous=none, efficiency=none + 1.0)

    @classmethod
    def sample(cls, robot: Robot, trials: int, seed: int, spread: float = 0.3, scale: float = 1.0) -> MotorTruth:
        """Friction that differs from the cards by up to `spread` either way, joint by joint; `scale` times it all."""
        rng = np.random.default_rng([seed, 14])
        card = cls.of_card(robot)

        def near() -> Array:
            return scale * rng.uniform(1.0 - spread, 1.0 + spread, (trials, robot.n))

        lost = np.minimum((1.0 - card.efficiency) * near(), 0.6)
        return cls(
            coulomb=card.coulomb * near(),
            static_ratio=rng.uniform(1.0, 1.4, (trials, robot.n)),
            viscous=card.viscous * near(),
            efficiency=1.0 - lost,
        )


@dataclass(frozen=True, kw_only=True)
class ReportSettings:
    """Noise and lateness of what the motors report; quantisation is in their cards."""

    current_noise: float = 0.003
    """Standard deviation, as a share of the current at the torque limit."""
    pwm_noise: float = 0.002
    """Standard deviation of the duty cycle."""
    torque_noise: float = 0.003
    """Standard deviation of a drive's own torque estimate, as a share of its torque limit."""
    delay: int = 2
    """Physics steps between the winding and the report."""
    quantised: bool = True
    """Whether positions, velocities, currents and duty cycles come in steps."""


class MotorServo:
    """Position loops that drive windings: the servo's own voltage, or a current loop behind a torque command.

    Args:
        joints: the motors.
        stiffness: (n,) [N·m/rad].
        damping: (n,) [N·m·s/rad].
    """

    def __init__(self, joints: JointMotors, stiffness: Array, damping: Array):
        self.joints = j = joints
        self.stiffness, self.damping = np.asarray(stiffness, dtype=float), np.asarray(damping, dtype=float)
        self.bus: Array | float = 1.0
        """Share of the bus voltage that is there; less: it sags."""
        known = np.isfinite(j.torque_constant) & np.isfinite(j.velocity_constant) & np.isfinite(j.winding_resistance)
        self._voltage_driven = known & np.array([motor.drive == "servo" for motor in j.motors])
        self._kt = np.where(np.isfinite(j.torque_constant), j.torque_constant, 1.0)
        self._kv = np.where(self._voltage_driven, j.velocity_constant, 1.0)
        self._rw = np.where(self._voltage_driven, j.winding_resistance, 1.0)
        self._emf = np.where(self._voltage_driven, self._kt / (self._kv * self._rw), 0.0)
        self.current: Array = np.zeros(np.shape(self.stiffness))
        self.pwm: Array = np.zeros(np.shape(self.stiffness))
        self._before: Array | None = None
        self._step, self._steps = 1, 1

    def begin(self, before: Array | None, steps: int) -> None:
        """A control period begins: the target moves there from the one before in so many physics steps."""
        self._before, self._step, self._steps = before, 0, steps

    def torque(
        self, target: Array, target_velocity: Array | float, position: Array, velocity: Array, limit: Array
    ) -> tuple[Array, Array]:
        """Motor torque at the joints and its fall with velocity; a voltage-driven motor brakes by its back-EMF."""
        self._step = min(self._step + 1, self._steps)
        if self._before is not None:
            target = self._before + (target - self._before) * (self._step / self._steps)
        wanted = self.stiffness * (target - position) + self.damping * (target_velocity - velocity)
        volts = self.joints.bus_voltage * self.bus
        asked = wanted * self._rw / (self._kt * self.joints.bus_voltage)
        self.pwm = np.clip(asked, -1.0, 1.0)
        servo_current = winding_current(self.pwm, volts, velocity, self._kv, self._rw)
        drawn = np.where(self._voltage_driven, servo_current, wanted / self._kt)
        self.current = np.clip(drawn, -limit / self._kt, limit / self._kt)
        free = (np.abs(drawn) * self._kt < limit) & (np.abs(asked) < 1.0)
        return self._kt * self.current, np.where(free, self.damping, 0.0) + self._emf


class MotorTarget(Target):
    """Robots whose joints are motors with gears: position in, motor reports out, everything else hidden.

    Targets are followed in a straight line over the control period. Each physics step (1 ms) the position loop sets a
    voltage or a current, the winding makes a torque, and the gear takes its friction: Coulomb, static at rest, viscous,
    and a share of the load that differs between driving and being driven.

    Args:
        robot: its card names a motor for each joint.
        truth: the hidden friction; its leading axis sets the trials.
        stiffness: of the position loops (n,) [N·m/rad].
        damping: of the position loops (n,) [N·m·s/rad]; voltage-driven motors add their back-EMF.
        scene: what stands around.
        parameters: hidden inertias; default: the card's.
        reports: noise and delay of the reports.
        timestep: control period [s].
        physics_step: [s]
        seed: of the noise.
        threads: MuJoCo's threads.
    """

    servo: MotorServo

    def __init__(
        self,
        robot: Robot,
        truth: MotorTruth,
        stiffness: Array,
        damping: Array,
        *,
        scene: Scene | None = None,
        parameters: Parameters | None = None,
        reports: ReportSettings | None = None,
        timestep: float = 0.02,
        physics_step: float = 1e-3,
        seed: int = 0,
        threads: int = 1,
    ):
        self.joints = JointMotors.of(robot)
        lead = np.shape(truth.coulomb)[:-1]
        ideal = parameters or Parameters.ideal(robot, lead)
        ideal = replace(ideal, armature=np.broadcast_to(self.joints.armature, (*lead, robot.n)).copy())
        ideal = ideal.with_arrays({"viscous": np.broadcast_to(truth.viscous[..., None], (*lead, robot.n, 2)).copy()})
        limit = self.joints.torque_limit
        if not np.all(np.isfinite(stiffness)):
            raise RetorqueError("the stiffness of the position loops must be finite; give one number a joint")
        servo = MotorServo(self.joints, stiffness, damping)
        self.truth, self.reports = truth, reports or ReportSettings()
        substeps = max(1, round(timestep / physics_step))
        self._report_rng = np.random.default_rng([seed, 15])
        self._ring = np.zeros((3, self.reports.delay + 1, *lead, robot.n))
        self._ring_at = 0
        self._told: Array | None = None
        super().__init__(
            robot, ideal, scene=scene, servo=servo, timestep=timestep, substeps=substeps, seed=seed, threads=threads
        )
        self._torque_limit = limit

    def set_parameters(self, parameters: Parameters) -> None:
        super().set_parameters(parameters)
        batch, dofs = self._world.batch, self._world.joint_v
        batch.expand("dof_solimp")[:, dofs] = STICKING
        batch.expand("dof_solref")[:, dofs] = STICKING_TIME
        self._stuck = self._rows(batch.expand("dof_frictionloss"))[..., dofs]

    def write(self, command: Command) -> None:
        self.servo.begin(self._told, self._substeps)
        super().write(command)
        self._told = None if command.position is None else np.array(command.position)

    def reset(self, position: Array, velocity: Array | float = 0.0, base: Base | None = None) -> State:
        self._told = None
        self._ring[:] = 0.0
        return super().reset(position, velocity, base)

    def _substep(self, driven: Array, servo_slope: Array | None = None) -> None:
        t, v = self.truth, self.velocity
        torque = self.command
        # Driving or being driven: between the two where the joint hardly moves.
        side = 0.5 + 0.5 * np.tanh(v * np.sign(torque) / STRIBECK)
        driving = friction_level(torque, np.array(True), np.zeros(()), t.efficiency)
        being_driven = friction_level(torque, np.array(False), np.zeros(()), t.efficiency)
        static = 1.0 + (t.static_ratio - 1.0) * np.exp(-np.square(v / STRIBECK))
        self._stuck[...] = t.coulomb * static + side * driving + (1.0 - side) * being_driven
        super()._substep(driven, servo_slope)
        self._ring_at = (self._ring_at + 1) % self._ring.shape[1]
        row = self._ring[:, self._ring_at]
        row[0], row[1], row[2] = self.servo.current, self.servo.pwm, self.command

    def base_pose(self) -> Array:
        """True pose (..., 7) of a free base."""
        return self._rows(self._world.base()[0])

    def read(self) -> State:
        state = super().read()
        r, j, rng = self.reports, self.joints, self._report_rng
        current, pwm, torque = self._ring[:, (self._ring_at + 1) % self._ring.shape[1]].copy()
        shape = current.shape
        kt = np.where(np.isfinite(j.torque_constant), j.torque_constant, 1.0)
        current += r.current_noise * self._torque_limit / kt * rng.standard_normal(shape)
        pwm += r.pwm_noise * rng.standard_normal(shape)
        torque += r.torque_noise * self._torque_limit * rng.standard_normal(shape)
        if r.quantised:
            state.position = _steps(state.position, self._step("position_step"))
            state.velocity = _steps(state.velocity, self._step("velocity_step"))
            current = _steps(current, self._step("current_step"))
            pwm = _steps(pwm, self._step("pwm_step"))
        state.motor = MotorReport(
            current=np.where(np.isfinite(self._step("current_step")), current, np.nan),
            pwm=np.where(np.isfinite(self._step("pwm_step")), pwm, np.nan),
            voltage=np.broadcast_to(j.bus_voltage * self.servo.bus, shape).copy(),
        )
        state.torque = torque
        return state

    def _step(self, name: str) -> Array:
        return np.array([getattr(motor, name) for motor in self.joints.motors])


def _steps(value: Array, step: Array) -> Array:
    """Values in whole steps; where the step is unknown, as they are."""
    known = np.isfinite(step)
    width = np.where(known, step, 1.0)
    return np.where(known, np.round(value / width) * width, value)
