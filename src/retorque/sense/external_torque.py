"""Torque that the world exerts on the joints: one interface, and the paper's quasi-static estimate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import DriveDirection, JointMotors, MotorTorque, Signal
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.gear_friction import GearFriction
from retorque.work.array import Array

LEFT_OUT = 1e6
"""Variance of a joint whose torque is unknown [(N·m)²]."""


@dataclass(slots=True)
class TorqueEstimate:
    """External torque on the joints, and how sure it is."""

    torque: Array
    """(trials, n) [N·m]"""
    variance: Array
    """(trials, n) [(N·m)²]; joints taken as independent."""
    resting: Array
    """(trials, n) how far friction hides the torque: 0 sliding, 1 at rest."""
    lag: Array | None = None
    """(trials, n) squares of what the torque lags behind [(N·m)²]; None: nothing."""
    hidden: Array | None = None
    """(trials, n) the part of the variance that is friction at rest [(N·m)²]; None: nothing."""


class ExternalTorque(ABC):
    """One estimator on one robot or a batch; call `update` once a tick."""

    @abstractmethod
    def reset(self, state: State) -> None:
        """A run begins here."""

    @abstractmethod
    def update(self, state: State, tree: CompiledTree) -> TorqueEstimate:
        """The estimate at a report; `tree` has been updated to it."""


@dataclass(frozen=True, kw_only=True)
class TorqueSettings:
    """Settings of the estimates that read motors."""

    signal: Signal = "best"
    """What each motor's torque is read from."""
    smoothing: float = 1.0
    """Weight of the newest sample in the moving average, 1: none (alpha of the paper)."""
    noise: float = 0.01
    """Standard deviation of a motor's torque report, as a share of its torque limit."""
    card_error: float = 0.3
    """Largest relative error of the cards' friction."""
    backdrive_gain: float = 0.0
    """Without `friction`: factor on the torque while a joint is driven, as the public code has it; 0: equation 7."""
    friction: bool = True
    """Whether friction is taken off by the motors' cards; without: the paper's efficiency alone (equation 7)."""


class QuasiStatic(ExternalTorque):
    """-(r τ_load - τ_gravity), equation 8: inertia and Coriolis torques are neglected.

    With `friction`, the load torque is the motor's less Coulomb, viscous and load-dependent friction, each with what is
    unknown of it as variance; without, the paper's forward and backward efficiency.

    Args:
        robot: its card names the motors.
        trials: robots served at once.
        timestep: control period [s].
        settings: signal, smoothing, noise.
        used: (n,) joints that matter.
        joints: the motors' constants; default: from their cards.
    """

    def __init__(
        self,
        robot: Robot,
        trials: int = 1,
        timestep: float = 0.02,
        settings: TorqueSettings | None = None,
        used: Array | None = None,
        joints: JointMotors | None = None,
    ):
        self.robot, self.trials, self.timestep = robot, trials, timestep
        self.settings = s = settings or TorqueSettings()
        self.joints = joints or JointMotors.of(robot)
        self.motor = MotorTorque(self.joints, s.signal, used)
        limit = self.joints.torque_limit
        self._noise = np.square(s.noise * np.where(np.isfinite(limit), limit, 10.0))
        self.friction = GearFriction(self.joints, trials, timestep, s.card_error, self._noise)
        self._shape = (trials, robot.n)
        self.smooth: Array | None = None

    def reset(self, state: State) -> None:
        self.friction.reset(np.reshape(state.position, self._shape))
        self._direction = DriveDirection(self._shape)
        self.smooth = None

    def update(self, state: State, tree: CompiledTree) -> TorqueEstimate:
        q, qd, drive = state.position, state.velocity, self.motor.read(state)
        if q.shape != self._shape:
            q, qd, drive = q.reshape(self._shape), qd.reshape(self._shape), drive.reshape(self._shape)
        missing = None
        if not self.motor.complete:
            missing = ~np.isfinite(drive)
            drive = np.where(missing, 0.0, drive)
        self._drive = drive
        passed, variance, resting, hidden = self._passed(drive, q, qd)
        external = self._balance(q, qd, passed, tree)
        if missing is not None:
            external, variance = np.where(missing, 0.0, external), np.where(missing, LEFT_OUT, variance)
        return TorqueEstimate(self._smoothed(external), variance, resting, self._lag(), hidden)

    def _passed(self, drive: Array, q: Array, qd: Array) -> tuple[Array, Array, Array, Array | None]:
        """Torque behind the gear, its variance, how far the joints rest, and what that hides of the variance."""
        if self.settings.friction:
            return self.friction.update(drive, q, qd)
        none, noise = np.zeros(self._shape), np.tile(self._noise, (self.trials, 1))
        gain = self.settings.backdrive_gain
        if gain > 0.0:
            forward = self._direction.update(drive, qd) > 0.0
            return self.joints.efficiency * drive * np.where(forward, 1.0, gain), noise, none, None
        return self._direction.load_torque(drive, qd, self.joints.efficiency), noise, none, None

    def _balance(self, q: Array, qd: Array, passed: Array, tree: CompiledTree) -> Array:
        return tree.gravity - passed

    def _lag(self) -> Array | None:
        """Squares (trials, n) of what the estimate lags behind [(N·m)²]."""
        return None

    def _smoothed(self, external: Array) -> Array:
        alpha = self.settings.smoothing
        if alpha >= 1.0 or self.smooth is None:
            self.smooth = external
        else:
            self.smooth = self.smooth + alpha * (external - self.smooth)
        return self.smooth

    def settle(self, external: Array, free: Array) -> None:
        """Where nothing touches a joint's sites (trials, n), what looks external is friction of joints at rest."""
        self.friction.settle(external, self._drive, free)
