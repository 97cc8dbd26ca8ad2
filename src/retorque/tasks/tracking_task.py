"""The tracking experiment: random sines under joint impedance, on targets with hidden parameters (TAM, D.2)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.profile import Profile
from retorque.robots.robot import Robot
from retorque.simulate.effects import effect as make_effect
from retorque.simulate.pulses import Pulses
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.target import Target
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class TrackingSettings:
    """Which world."""

    trials: int = 100
    """Randomised targets and references."""
    seed: int = 0
    """Of everything random."""
    duration: float = 16.0
    """Length of the motion [s]."""
    noise: bool = False
    """Sensor noise and delays of Table B.1."""
    contact: bool = False
    """Five smooth external-torque pulses a trial; the ideal robot feels them too."""
    nothing_hidden: bool = False
    """The target is the ideal robot: an adapter must not invent mismatch."""
    payload_step: float = 0.0
    """Payload added in the middle of the run [kg]."""
    effect: str = ""
    """An effect that no parameter describes, on top."""


class TrackingTask:
    """One robot's targets, references and pulses; `part` takes some of the trials."""

    def __init__(self, robot: Robot, settings: TrackingSettings):
        if settings.trials < 1:
            raise RetorqueError(f"a bench needs at least 1 trial, not {settings.trials}")
        self.robot, self.settings = fixed_base(robot), settings
        self.profile = profile_of(robot)
        seeds = np.random.SeedSequence([settings.seed, 1]).generate_state(6)
        trials = settings.trials
        if settings.nothing_hidden:
            self.parameters = Parameters.ideal(robot, trials)
        else:
            self.parameters = Parameters.sample(robot, self.profile, trials, int(seeds[0]))
        self.sensors = (
            SensorSettings.sample(self.profile, trials, int(seeds[1]))
            if settings.noise
            else SensorSettings.perfect(trials)
        )
        self.reference = WindowedSines.sample(
            robot.home,
            self.profile.tracking_amplitude,
            trials,
            settings.duration,
            int(seeds[2]),
            cycles=(3.0 * settings.duration / 16.0, 7.0 * settings.duration / 16.0),  # the same speeds at any length
        )
        self.pulses = Pulses.sample(robot, trials, settings.duration, int(seeds[3])) if settings.contact else None
        self.noise_seed, self.adapter_seed = int(seeds[4]), int(seeds[5])

    def part(self, rows: slice) -> TrackingTask:
        """The same experiment with some of the trials."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        r, s, p = self.reference, self.sensors, self.pulses
        other.parameters = self.parameters[rows]
        count = other.parameters.trials[0]
        other.settings = replace(self.settings, trials=count)
        other.sensors = SensorSettings(**{k: v[rows] for k, v in vars(s).items()})
        other.reference = WindowedSines(r.home, r.amplitude[rows], r.cycles[rows], r.phase[rows], r.duration)
        other.pulses = Pulses(**{k: v[rows] for k, v in vars(p).items()}) if p is not None else None
        other.noise_seed = self.noise_seed + (rows.start or 0)
        other.adapter_seed = self.adapter_seed + (rows.start or 0)
        return other

    def controller(self) -> JointImpedance:
        """Joint impedance with the profile's gains."""
        return JointImpedance(self.robot, *gains(self.robot, self.profile))

    def target(self, threads: int = 0, timestep: float = 1e-3) -> Target:
        """The robots whose parameters are hidden, at home, controlled once a `timestep` [s]."""
        effects = [make_effect(self.settings.effect)] if self.settings.effect else []
        target = Target(
            self.robot,
            self.parameters,
            sensors=self.sensors,
            effects=effects,
            timestep=timestep,
            substeps=math.ceil(timestep / 1e-3 - 1e-9),
            seed=self.noise_seed,
            threads=threads,
        )
        target.reset(self._start())
        return target

    def ideal(self, threads: int = 0) -> Target:
        """The ideal robot, once a trial, at home, with perfect sensors."""
        target = Target(self.robot, Parameters.ideal(self.robot, self.settings.trials), threads=threads)
        target.reset(self._start())
        return target

    def pushes(self, target: Target) -> Callable[[int], None]:
        """What the world does to robots just before each tick: the pulses."""

        def before(tick: int) -> None:
            if self.pulses is not None:
                target.push(self.pulses.at(tick * target.timestep))

        return before

    def events(self, target: Target) -> Callable[[int], None]:
        """The same, and what changes about the robots themselves: the payload picked up half-way."""
        pushes, half = self.pushes(target), round(0.5 * self.settings.duration / target.timestep)

        def before(tick: int) -> None:
            pushes(tick)
            if self.settings.payload_step and tick == half:
                p = target.parameters
                target.set_parameters(p.with_payload(p.payload_mass + self.settings.payload_step))

        return before

    def _start(self) -> Array:
        return self.reference.at(0.0).position


def fixed_base(robot: Robot) -> Robot:
    """The robot, if it stands on the ground; one with a free base falls over here and is refused."""
    if robot.floating:
        raise RetorqueError(f"robot '{robot.name}' has a free base; this needs an arm or a hand on a fixed one")
    return robot


def gains(robot: Robot, profile: Profile) -> tuple[Array, Array]:
    """Stiffness and damping of the tracking bench, (n,) each."""
    damping = profile.tracking_damping
    if damping is None:
        damping = critical_damping(robot, profile.tracking_stiffness, profile.tracking_amplitude)
    return profile.tracking_stiffness, damping
