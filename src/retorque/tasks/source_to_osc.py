"""The source-to-OSC experiment: learn under joint impedance, then follow poses in operational space (TAM, D.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.operational_space import OperationalSpace
from retorque.control.pose_waypoints import PoseWaypoints
from retorque.physics.target import Target
from retorque.robots.robot import Robot
from retorque.tasks.tracking import TrackingSettings, TrackingTask

Array = np.ndarray

CONDITIONS = {"nominal": 0.0, "+1 kg": 1.0}
"""Payload at the hand [kg], by condition; everything else is hidden in both."""


@dataclass(frozen=True, kw_only=True)
class SourceToOscSettings:
    """Which world."""

    trials: int = 100
    """Randomised targets, source motions and pose motions."""
    seed: int = 0
    """Of everything random."""
    noise: bool = False
    """Sensor noise and delays of Table B.1."""
    source_duration: float = 16.0
    """Length of the joint-impedance segment [s]."""
    osc_duration: float = 8.0
    """Length of the operational-space segment [s]."""


class SourceToOscTask:
    """One robot's targets, with a joint-space motion and a pose motion each; `part` takes some of the trials."""

    def __init__(self, robot: Robot, settings: SourceToOscSettings):
        self.robot, self.settings = robot, settings
        source = TrackingSettings(
            trials=settings.trials, seed=settings.seed, duration=settings.source_duration, noise=settings.noise
        )
        self.source = TrackingTask(robot, source)
        seed = int(np.random.SeedSequence([settings.seed, 2]).generate_state(1)[0])
        self.poses = PoseWaypoints.sample(robot, settings.trials, settings.osc_duration, seed)

    def part(self, rows: slice) -> SourceToOscTask:
        """The same experiment with some of the trials."""
        other = object.__new__(SourceToOscTask)
        other.robot = self.robot
        other.source = self.source.part(rows)
        other.settings = replace(self.settings, trials=other.source.settings.trials)
        other.poses = PoseWaypoints(self.poses.position[rows], self.poses.rotation[rows], self.poses.duration)
        return other

    def controller(self) -> OperationalSpace:
        """Operational space with the gains of D.1."""
        return OperationalSpace(self.robot)

    def target(self, condition: str, threads: int = 0) -> Target:
        """The robots whose parameters are hidden, with the condition's payload."""
        target = self.source.target(threads)
        mass = np.full(target.trials, CONDITIONS[condition])
        target.set_parameters(replace(target.parameters, payload_mass=mass))
        return target

    def ideal(self, threads: int = 0) -> Target:
        """The ideal robot, once a trial."""
        return self.source.ideal(threads)
