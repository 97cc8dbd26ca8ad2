"""The tracking experiment in the world of the TAM paper's public evaluator."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.action import JointAction
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.physics.default_profile import profile_of
from retorque.physics.inertia import robot_inertia
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.array import Array
from retorque.work.errors import unknown

SHRUNK, SHRINK = 0.4, 0.02
"""Share of the trials whose links and payload hardly differ from the ideal ones, and what is left of the difference."""
CYCLES = (3, 7)
"""Fewest and most whole periods of a sine."""
LIMIT_GUARD, FAST, SPEED_GUARD = 20.0, 4.0, 10.0
"""Stiffness beyond joint limits (times Kp), and damping (times Kd) of what is faster than this [rad/s]."""


@dataclass(frozen=True)
class PublicPreset:
    """One robot's numbers in the public code (github.com/Dongwon-Son/TAM, MIT licence)."""

    home: tuple[float, ...]
    """[rad]"""
    stiffness: tuple[float, ...]
    """Kp [N·m/rad]"""
    damping: tuple[float, ...]
    """Kd [N·m·s/rad]"""
    amplitude: tuple[float, ...]
    """[deg]"""
    armature: float
    """Of every joint of the ideal robot [kg·m²]."""


PRESETS = {
    "panda": PublicPreset(
        (0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398),
        (50, 50, 50, 30, 30, 30, 10),
        (10, 10, 10, 8, 8, 8, 3),
        (30, 25, 30, 20, 30, 25, 34),
        0.1,
    ),
    "piper": PublicPreset(
        (0.0, 1.05, -1.25, 0.0, 0.55, 0.0),
        (35, 35, 30, 15, 15, 10),
        (6, 6, 5, 3, 3, 2),
        (24, 22, 24, 22, 18, 22),
        0.01,
    ),
    "iiwa14": PublicPreset(
        (0.0, 0.785398, 0.0, -1.5708, 0.0, 0.0, 0.0),
        (60, 60, 50, 40, 30, 20, 12),
        (10, 10, 9, 7, 5, 4, 3),
        (24, 22, 24, 20, 22, 20, 26),
        0.05,
    ),
    "rizon4": PublicPreset(
        (0.0, 0.0, 0.0, 1.57, 0.0, 0.0, 0.0),
        (55, 55, 45, 35, 25, 20, 12),
        (9, 9, 8, 6, 5, 4, 3),
        (24, 22, 24, 20, 22, 20, 26),
        0.1,
    ),
    "rby1": PublicPreset(
        (0.0, 0.7, 0.0, -1.35, 0.0, 0.9, 0.0),
        (45, 45, 40, 35, 25, 20, 12),
        (8, 8, 7, 6, 5, 4, 3),
        (22, 22, 24, 20, 24, 20, 28),
        0.02,
    ),
    "google_robot": PublicPreset(
        (0.0, 0.6, 0.0, 1.2, 0.0, 0.5, 0.0),
        (50, 50, 40, 30, 20, 15, 10),
        (8, 8, 7, 6, 4, 3, 2),
        (20, 22, 22, 20, 24, 20, 26),
        0.05,
    ),
    "z1": PublicPreset(
        (0.0, 0.785, -0.261, -0.523, 0.0, 0.0),
        (25, 25, 20, 14, 10, 8),
        (5, 5, 4, 3, 2, 2),
        (22, 22, 22, 20, 18, 24),
        0.02,
    ),
}
"""Every robot of the public tracking presets."""


class GravityImpedance(JointImpedance):
    """τ = Kp (q* - q) + Kd (q̇* - q̇) + g(q), with the guards of the public code at joint limits and high speeds."""

    def __init__(self, robot: Robot, stiffness: Array, damping: Array):
        super().__init__(robot, stiffness, damping)
        self._low, self._high = robot.lower, robot.upper

    def command(self, state: State, action: JointAction) -> Command:
        q, v = state.position, state.velocity
        torque = self.stiffness * (action.position - q) + self.damping * (action.velocity - v)
        beyond = np.minimum(q - self._low, 0.0) + np.maximum(q - self._high, 0.0)
        fast = np.sign(v) * np.maximum(np.abs(v) - FAST, 0.0)
        torque -= LIMIT_GUARD * self.stiffness * beyond + SPEED_GUARD * self.damping * fast
        return Command(torque=torque + self.body.gravity(q))


class PublicTrackingTask(TrackingTask):
    """The same experiment with the public evaluator's homes, gains, amplitudes, ideal armatures and sampler.

    Sines have whole periods, the controller adds g(q) only, no torque is limited on the way to the robot, and links and
    payloads of 40 % of the trials are all but ideal. Friction, drive and noise ranges are those of the robot's profile.
    The inertias are our cards', which differ from the public ones on piper and google_robot.
    """

    def __init__(self, robot: Robot, settings: TrackingSettings):
        super().__init__(public_robot(robot), settings)
        seeds = np.random.SeedSequence([settings.seed, 2]).generate_state(2)
        rng, trials = np.random.default_rng(int(seeds[0])), settings.trials
        reference = self.reference
        cycles = rng.integers(CYCLES[0], CYCLES[1] + 1, reference.cycles.shape).astype(float)
        self.reference = WindowedSines(reference.home, reference.amplitude, cycles, reference.phase, reference.duration)
        if not settings.nothing_hidden:
            shrunk = np.random.default_rng(int(seeds[1])).random(trials) < SHRUNK
            self.parameters = shrink(self.parameters, self.robot, shrunk)

    def controller(self) -> JointImpedance:
        preset = PRESETS[self.robot.name]
        return GravityImpedance(self.robot, np.array(preset.stiffness, float), np.array(preset.damping, float))

    def target(self, threads: int = 0, timestep: float = 1e-3) -> Target:
        return self._unlimited(super().target(threads, timestep))

    def ideal(self, threads: int = 0) -> Target:
        return self._unlimited(super().ideal(threads))

    @staticmethod
    def _unlimited(target: Target) -> Target:
        target.limit_torque(None)
        return target


def public_robot(robot: Robot) -> Robot:
    """A robot on board with the home, gains, amplitudes and rotors of the public presets."""
    if robot.name not in PRESETS:
        raise unknown("robot of the public protocol", robot.name, PRESETS)
    preset = PRESETS[robot.name]
    links = tuple(
        link if link.joint is None else replace(link, joint=replace(link.joint, armature=preset.armature))
        for link in robot.links
    )
    profile = replace(
        profile_of(robot),
        tracking_stiffness=np.array(preset.stiffness, dtype=float),
        tracking_damping=np.array(preset.damping, dtype=float),
        tracking_amplitude=np.deg2rad(np.array(preset.amplitude, dtype=float)),
    )
    return replace(robot, links=links, home=np.array(preset.home), profile=profile)


def shrink(parameters: Parameters, robot: Robot, which: Array) -> Parameters:
    """The same targets, but links and payloads of some trials (trials,) keep 2 % of their difference."""
    ideal = robot_inertia(robot)
    links = np.where(which[:, None, None], ideal + SHRINK * (parameters.inertial - ideal), parameters.inertial)
    payload = np.where(which[:, None], SHRINK * parameters.payload, parameters.payload)
    return replace(parameters, inertial=links, payload=payload)
