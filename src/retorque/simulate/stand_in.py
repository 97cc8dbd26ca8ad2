"""A stand-in for a real arm: stick-slip, flexible joints, torque ripple, noisy sensors and inertias nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import mujoco.batch
import numpy as np

from retorque.robots.mjcf import to_mjmodel
from retorque.robots.robot import Link, Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class StandInSettings:
    """What the stand-in hides. Per-joint values are multiples of the joint's `strength`."""

    strength: tuple[float, ...] = (1.2, 1.2, 1.0, 1.0, 0.5, 0.4, 0.25)
    """Coulomb friction of each joint from the base outwards [N·m]; the last value serves any further joint."""
    static: float = 1.3
    """Static over Coulomb friction."""
    stribeck_velocity: float = 0.03
    """Velocity over which friction falls from static to Coulomb [rad/s]."""
    bristle_stiffness: float = 1600.0
    """LuGre stiffness sigma0 over Coulomb friction [1/rad]."""
    bristle_damping: float = 1.0
    """LuGre damping sigma1 over Coulomb friction [s/rad]."""
    viscous: float = 1.6
    """Viscous friction over Coulomb friction [s/rad]."""
    spring: float = 5000.0
    """Joint stiffness over Coulomb friction [1/rad]."""
    spring_damping: float = 5.0
    """Joint damping over Coulomb friction [s/rad]."""
    ripple: float = 0.05
    """Amplitude of the torque ripple over Coulomb friction."""
    ripple_order: float = 12.0
    """Periods of the ripple a turn of the joint."""
    spread: float = 0.25
    """Largest relative deviation of each of the above from joint to joint."""
    rotor: float = 0.1
    """Rotor inertia seen at the joint where the card has none [kg·m²]."""
    mass_spread: float = 0.1
    """Largest relative error of the card's masses and inertias."""
    centre_spread: float = 0.01
    """Largest error per axis of the card's centres of mass [m]."""
    position_noise: float = 5e-5
    """Standard deviation of the measured positions [rad]."""
    velocity_noise: float = 1e-3
    """Standard deviation of the measured velocities [rad/s]."""
    substeps: int = 2
    """Physics steps a control period."""


@dataclass(frozen=True, kw_only=True)
class Joints:
    """Hidden per-joint values, each (n,)."""

    coulomb: Array
    static: Array
    bristle_stiffness: Array
    bristle_damping: Array
    viscous: Array
    spring: Array
    spring_damping: Array
    ripple: Array
    ripple_phase: Array
    rotor: Array


@dataclass
class _Motion:
    """The state that MuJoCo does not hold, each (trials, n)."""

    angle: Array = field(default_factory=lambda: np.zeros(0))
    velocity: Array = field(default_factory=lambda: np.zeros(0))
    bristle: Array = field(default_factory=lambda: np.zeros(0))


class StandIn:
    """`trials` copies of one hidden arm, stepped together at 1 kHz under commanded torques.

    Each joint is a rotor with LuGre friction and ripple, joined to its link by a spring; the encoders sit on the
    rotors. Rotor and bristle are integrated implicitly (they are linear in the rotor's next velocity), the arm by
    MuJoCo.

    Args:
        robot: the card; the hidden arm differs from it.
        trials: how many copies.
        seed: of what is hidden; the same seed is the same arm, whatever the number of trials.
        noise_seed: of the sensor noise.
        settings: sizes of what is hidden.
        timestep: control period [s].
        threads: MuJoCo's threads; 0 takes all cores.
    """

    def __init__(
        self,
        robot: Robot,
        trials: int,
        *,
        seed: int = 0,
        noise_seed: int = 0,
        settings: StandInSettings | None = None,
        timestep: float = 1e-3,
        threads: int = 1,
    ):
        if robot.floating:
            raise RetorqueError(f"robot '{robot.name}' has a free base; the stand-in needs a fixed one")
        self.robot, self.trials, self.timestep = robot, trials, timestep
        self.settings = settings or StandInSettings()
        rng = np.random.default_rng([seed, 5])
        self.joints = _draw(robot, self.settings, rng)
        self.truth = _hidden_robot(robot, self.settings, rng)
        self._step = timestep / self.settings.substeps
        self._batch = mujoco.batch.Batch(to_mjmodel(self.truth, timestep=self._step), trials, threads)
        self._position, self._velocity = self._batch.bind("qpos"), self._batch.bind("qvel")
        self._applied = self._batch.bind("qfrc_applied")
        self._noise = np.random.default_rng([noise_seed, 6])
        self._motion = _Motion()
        self._limit = robot.torque_limit
        self.reset(np.broadcast_to(robot.home, (trials, robot.n)))

    def reset(self, position: Array, velocity: Array | float = 0.0) -> State:
        """Start at a state (trials, n), springs loaded by gravity, bristles relaxed."""
        shape = (self.trials, self.robot.n)
        self.time = 0.0
        motion = self._motion
        motion.angle = np.array(np.broadcast_to(position, shape), dtype=float)
        motion.velocity = np.array(np.broadcast_to(velocity, shape), dtype=float)
        motion.bristle = np.zeros(shape)
        self._position[:], self._velocity[:] = motion.angle, motion.velocity
        self._batch.forward()
        self._position[:] = motion.angle - self._batch.bind("qfrc_bias") / self.joints.spring
        self.command = np.zeros(shape)
        return self.read()

    def hold(self, which: Array, position: Array) -> None:
        """Put the copies of a mask (trials,) to rest at a position (trials, n): a brake for those that ran away."""
        motion = self._motion
        for array, value in ((motion.angle, position), (self._position, position)):
            array[which] = value[which]
        for array in (motion.velocity, motion.bristle, self._velocity):
            array[which] = 0.0

    def read(self) -> State:
        """What the encoders say now; once a tick."""
        s, shape = self.settings, (self.trials, self.robot.n)
        position = self._motion.angle + s.position_noise * self._noise.standard_normal(shape)
        velocity = self._motion.velocity + s.velocity_noise * self._noise.standard_normal(shape)
        return State(self.time, position, velocity, self.command)

    def step(self, command: Array) -> State:
        """One control period under a command (trials, n) [N·m], clipped to the torque limits."""
        self.command = np.clip(command, -self._limit, self._limit)
        for _ in range(self.settings.substeps):
            self._substep(self.command)
        self.time += self.timestep
        return self.read()

    def _substep(self, command: Array) -> None:
        """Rotor and bristle implicitly, then the arm under the springs' torque.

        With the slip rate s = sigma0 |v| / g(v) at the present velocity, the bristle's next deflection
        z' = (z + h v') / (1 + h s) and the friction sigma0 z' + sigma1 (z' - z) / h + sigma2 v' are linear in the
        rotor's next velocity v', and so is the spring's torque.
        """
        j, h, motion = self.joints, self._step, self._motion
        v, z, q, qd = motion.velocity, motion.bristle, self._position, self._velocity
        level = j.coulomb + (j.static - j.coulomb) * np.exp(-np.square(v / self.settings.stribeck_velocity))
        grip = 1.0 / (1.0 + h * j.bristle_stiffness * np.abs(v) / level)
        lag = j.bristle_stiffness + j.bristle_damping / h
        constant = lag * grip * z - (j.bristle_damping / h) * z
        slope = lag * grip * h + j.viscous
        drive = command + j.ripple * np.sin(self.settings.ripple_order * motion.angle + j.ripple_phase)
        twist = motion.angle - q
        force = drive - constant - j.spring * (twist - h * qd) + j.spring_damping * qd
        v = (j.rotor * v + h * force) / (j.rotor + h * (slope + j.spring_damping + h * j.spring))
        motion.bristle = (z + h * v) * grip
        motion.velocity = v
        motion.angle = motion.angle + h * v
        # The very torque the rotor felt, so that the spring gives the arm what it takes from the motor.
        self._applied[:] = j.spring * (motion.angle - q - h * qd) + j.spring_damping * (v - qd)
        self._batch.step()


def _draw(robot: Robot, s: StandInSettings, rng: np.random.Generator) -> Joints:
    n = robot.n
    coulomb = np.array([s.strength[min(i, len(s.strength) - 1)] for i in range(n)]) * _near(s, rng, n)
    rotor = np.where(robot.armature > 0.0, robot.armature, s.rotor)
    return Joints(
        coulomb=coulomb,
        static=coulomb * (1.0 + (s.static - 1.0) * _near(s, rng, n)),
        bristle_stiffness=coulomb * s.bristle_stiffness * _near(s, rng, n),
        bristle_damping=coulomb * s.bristle_damping * _near(s, rng, n),
        viscous=coulomb * s.viscous * _near(s, rng, n),
        spring=coulomb * s.spring * _near(s, rng, n),
        spring_damping=coulomb * s.spring_damping * _near(s, rng, n),
        ripple=coulomb * s.ripple * _near(s, rng, n),
        ripple_phase=rng.uniform(-np.pi, np.pi, n),
        rotor=rotor * _near(s, rng, n),
    )


def _near(s: StandInSettings, rng: np.random.Generator, n: int) -> Array:
    return rng.uniform(1.0 - s.spread, 1.0 + s.spread, n)


def _hidden_robot(robot: Robot, s: StandInSettings, rng: np.random.Generator) -> Robot:
    """The arm as it really is: other masses and centres; the rotors are held apart, so no armature."""
    links = []
    for link in robot.links:
        scale = float(rng.uniform(1.0 - s.mass_spread, 1.0 + s.mass_spread))
        offset = rng.uniform(-s.centre_spread, s.centre_spread, 3)
        links.append(_changed(link, scale, offset))
    return robot.with_links(tuple(links))


def _changed(link: Link, scale: float, offset: Array) -> Link:
    joint = None if link.joint is None else replace(link.joint, armature=0.0, lower=-np.inf, upper=np.inf)
    x, y, z = (float(a + b) for a, b in zip(link.centre, offset, strict=True))
    xx, yy, zz, xy, xz, yz = (scale * value for value in link.inertia)
    return replace(link, mass=scale * link.mass, centre=(x, y, z), inertia=(xx, yy, zz, xy, xz, yz), joint=joint)
