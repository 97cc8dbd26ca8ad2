"""A stand-in for a real arm: stick-slip, flexible joints, torque ripple, noisy sensors and inertias nobody knows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Link, Robot
from retorque.simulate.effects import Effect
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
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
    resonance: float = 600.0
    """Fastest that a link may swing on its joint's spring [rad/s]: light wrists get softer springs than their friction
    alone would say, as no step of a millisecond could follow them."""
    ripple: float = 0.05
    """Amplitude of the torque ripple over Coulomb friction."""
    ripple_order: float = 12.0
    """Periods of the ripple a turn of the joint."""
    spread: float = 0.25
    """Largest relative deviation of each of the above from joint to joint."""
    rotor: float = 0.1
    """Least rotor inertia seen at a joint [kg·m²]: the recordings' stiff gains shake lighter rotors behind springs."""
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


class RotorsBehindSprings(Effect):
    """Rotors with LuGre friction and ripple, each joined to its link by a spring; the encoders sit on the rotors.

    Rotor and bristle are integrated implicitly: they are linear in the rotor's next velocity.
    """

    angle: Array
    """(..., n) of the rotors, seen at the joints [rad]."""
    velocity: Array
    """(..., n) [rad/s]"""
    bristle: Array
    """(..., n) deflection of the friction's bristles [rad]."""

    def __init__(self, joints: Joints, settings: StandInSettings):
        self.joints, self.settings, self.substeps = joints, settings, settings.substeps

    def reset(self, position: Array, velocity: Array) -> None:
        self.angle, self.velocity = position.copy(), velocity.copy()
        self.bristle = np.zeros(position.shape)

    def encoders(self, position: Array, velocity: Array) -> tuple[Array, Array]:
        return self.angle, self.velocity

    def torque(
        self, position: Array, velocity: Array, torque: Array, slope: Array, timestep: float
    ) -> tuple[Array, Array]:
        """The springs' torque on the links, after the rotors have moved.

        With the slip rate s = sigma0 |v| / g(v) at the present velocity, the bristle's next deflection
        z' = (z + h v') / (1 + h s) and the friction sigma0 z' + sigma1 (z' - z) / h + sigma2 v' are linear in the
        rotor's next velocity v', and so is the spring's torque.
        """
        j, h = self.joints, timestep
        v, z, q, qd = self.velocity, self.bristle, position, velocity
        level = j.coulomb + (j.static - j.coulomb) * np.exp(-np.square(v / self.settings.stribeck_velocity))
        grip = 1.0 / (1.0 + h * j.bristle_stiffness * np.abs(v) / level)
        lag = j.bristle_stiffness + j.bristle_damping / h
        constant = lag * grip * z - (j.bristle_damping / h) * z
        friction_slope = lag * grip * h + j.viscous
        drive = torque + j.ripple * np.sin(self.settings.ripple_order * self.angle + j.ripple_phase)
        twist = self.angle - q
        force = drive - constant - j.spring * (twist - h * qd) + j.spring_damping * qd
        v = (j.rotor * v + h * force) / (j.rotor + h * (friction_slope + j.spring_damping + h * j.spring))
        self.bristle = (z + h * v) * grip
        self.velocity = v
        self.angle = self.angle + h * v
        # The very torque the rotor felt, so that the spring gives the arm what it takes from the motor.
        return j.spring * (self.angle - q - h * qd) + j.spring_damping * (v - qd), np.zeros_like(slope)


class StandIn(Target):
    """`trials` copies of one hidden arm: a target whose effects are rotors behind springs, with noisy encoders.

    Args:
        robot: the card; the hidden arm differs from it.
        trials: how many copies.
        seed: of what is hidden; the same seed is the same arm, whatever the number of trials.
        noise_seed: of the sensor noise, which goes on over resets.
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
        self.settings = s = settings or StandInSettings()
        rng = np.random.default_rng([seed, 5])
        self.joints = _draw(robot, s, rng)
        self.truth = _hidden_robot(robot, s, rng)
        self._rotors = RotorsBehindSprings(self.joints, s)
        super().__init__(
            self.truth,
            Parameters.ideal(self.truth, trials),
            sensors=replace(
                SensorSettings.perfect(trials),
                position_noise=np.full(trials, s.position_noise),
                velocity_noise=np.full(trials, s.velocity_noise),
            ),
            effects=[self._rotors],
            timestep=timestep,
            seed=np.random.default_rng([noise_seed, 6]),
            threads=threads,
        )
        self.robot = robot

    def hold(self, which: Array, position: Array) -> None:
        """Put the copies of a mask (trials,) to rest at a position (trials, n): a brake for those that ran away."""
        for array in (self._rotors.angle, self.position):
            array[which] = position[which]
        for array in (self._rotors.velocity, self._rotors.bristle, self.velocity):
            array[which] = 0.0

    def _settle(self) -> None:
        """Load the springs by gravity, under rotors that stay where they are; the bristles are relaxed."""
        bias = self._world.batch.bind("qfrc_bias")
        self._world.batch.forward()
        self.position[...] = self._rotors.angle - bias / self.joints.spring


def _draw(robot: Robot, s: StandInSettings, rng: np.random.Generator) -> Joints:
    n = robot.n
    coulomb = np.array([s.strength[min(i, len(s.strength) - 1)] for i in range(n)]) * _near(s, rng, n)
    rotor = np.maximum(robot.armature, s.rotor)
    link = _swinging(robot)
    return Joints(
        coulomb=coulomb,
        static=coulomb * (1.0 + (s.static - 1.0) * _near(s, rng, n)),
        bristle_stiffness=coulomb * s.bristle_stiffness * _near(s, rng, n),
        bristle_damping=coulomb * s.bristle_damping * _near(s, rng, n),
        viscous=coulomb * s.viscous * _near(s, rng, n),
        spring=np.minimum(coulomb * s.spring * _near(s, rng, n), link * s.resonance**2),
        spring_damping=np.minimum(coulomb * s.spring_damping * _near(s, rng, n), link * s.resonance),
        ripple=coulomb * s.ripple * _near(s, rng, n),
        ripple_phase=rng.uniform(-np.pi, np.pi, n),
        rotor=rotor * _near(s, rng, n),
    )


def _swinging(robot: Robot) -> Array:
    """(n,) inertia of the links that a joint's spring feels at home while all other joints are free [kg·m²]."""
    mass = RigidBody(robot).mass_matrix(np.asarray(robot.home, dtype=float)) - np.diag(robot.armature)
    return 1.0 / np.diagonal(np.linalg.inv(mass))


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
