"""The source-to-OSC experiment: learn under joint impedance, then follow poses in operational space (TAM, D.1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from retorque.control.operational_space import OperationalSpace
from retorque.control.pose_waypoints import PoseWaypoints
from retorque.loop.loop import Loop, run
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.tasks.public_tracking import PRESETS
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

CONDITIONS = {"nominal": 0.0, "+1 kg": 1.0}
"""Payload at the hand [kg], by condition; everything else is hidden in both."""
WAYPOINTS = 5
"""In 8 s; other durations keep the pace."""
DRAWS = 40
"""Times that motions which leave the joint limits are drawn again."""
SLIGHT = 0.1
"""Torque at every joint, of a sign drawn once a trial, that tells how shaky a motion is [N·m]."""
CHECK_PERIOD = 4e-3
"""Tick of the check that they do not [s]."""


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
        robot = from_public_home(robot)
        self.robot, self.settings = robot, settings
        source = TrackingSettings(
            trials=settings.trials, seed=settings.seed, duration=settings.source_duration, noise=settings.noise
        )
        self.source = TrackingTask(robot, source)
        seed, push = (int(s) for s in np.random.SeedSequence([settings.seed, 2]).generate_state(2))
        self.poses = possible_motions(robot, settings.trials, settings.osc_duration, seed)
        self._pushed = SLIGHT * np.sign(np.random.default_rng(push).standard_normal((settings.trials, robot.n)))

    def part(self, rows: slice) -> SourceToOscTask:
        """The same experiment with some of the trials."""
        other = object.__new__(SourceToOscTask)
        other.robot = self.robot
        other.source = self.source.part(rows)
        other.settings = replace(self.settings, trials=other.source.settings.trials)
        other.poses = PoseWaypoints(self.poses.position[rows], self.poses.rotation[rows], self.poses.duration)
        other._pushed = self._pushed[rows]
        return other

    def sensitivity(self) -> Array:
        """How far a slight torque at every joint moves the ideal robot's own hand, RMSE of each motion, (trials,) [m].

        The controller has no stiffness in directions that the Jacobian lacks: near a straight elbow what is left of any
        friction moves the hand by centimetres, whoever corrects it.
        """
        body, paths = RigidBody(self.robot), []
        for push in (0.0, 1.0):
            target = Target(
                self.robot, Parameters.ideal(self.robot, len(self._pushed)), timestep=CHECK_PERIOD, threads=1
            )
            loop = Loop(target, self.poses, self.controller())
            target.push(push * self._pushed)
            trace = run(loop, self.poses.duration)
            paths.append(body.frame_pose(self.robot.end_effector, trace.position)[0])
        return np.asarray(np.sqrt(np.mean(np.sum((paths[1] - paths[0]) ** 2, axis=-1), axis=0)))

    def controller(self) -> OperationalSpace:
        """Operational space with the gains of D.1."""
        return OperationalSpace(self.robot)

    def target(self, condition: str, threads: int = 0) -> Target:
        """The robots whose parameters are hidden, with the condition's payload."""
        target = self.source.target(threads)
        mass = np.full(target.trials, CONDITIONS[condition])
        target.set_parameters(target.parameters.with_payload(mass))
        return target

    def ideal(self, threads: int = 0) -> Target:
        """The ideal robot, once a trial."""
        return self.source.ideal(threads)


def from_public_home(robot: Robot) -> Robot:
    """The robot at the home of the paper's public code, where there is one: nine of ten D.1 waypoints are in reach."""
    public = PRESETS.get(robot.name)
    return robot if public is None else replace(robot, home=np.array(public.home))


def possible_motions(robot: Robot, trials: int, duration: float, seed: int) -> PoseWaypoints:
    """Pose motions that the ideal robot follows from home without leaving its joint and velocity limits.

    An operational-space controller knows no joint limits: near full reach it straightens the elbow and may push it
    through to the other side, which no real arm survives. Such motions are drawn again.
    """
    waypoints = max(1, round(WAYPOINTS * duration / 8.0))
    chosen: list[PoseWaypoints] = []
    for draw in range(DRAWS):
        count = trials - sum(len(motion.position) for motion in chosen)
        if count == 0:
            break
        motion = PoseWaypoints.sample(robot, count, duration, seed + draw, waypoints=waypoints)
        kept = _stays_inside(robot, motion)
        if np.any(kept):
            chosen.append(PoseWaypoints(motion.position[kept], motion.rotation[kept], duration))
    else:
        raise RetorqueError(f"robot '{robot.name}' leaves its joint limits on too many pose motions; move its home")
    position = np.concatenate([motion.position for motion in chosen])
    return PoseWaypoints(position, np.concatenate([motion.rotation for motion in chosen]), duration)


def _stays_inside(robot: Robot, motion: PoseWaypoints) -> Array:
    """Whether the ideal robot stays within its limits on each motion, (trials,)."""
    count = len(motion.position)
    target = Target(robot, Parameters.ideal(robot, count), timestep=CHECK_PERIOD, threads=1)
    loop = Loop(target, motion, OperationalSpace(robot))
    inside = np.ones(count, dtype=bool)
    for _ in range(round(motion.duration / CHECK_PERIOD)):
        loop.tick()
        q, qd = target.position, target.velocity
        inside &= ((q > robot.lower) & (q < robot.upper) & (np.abs(qd) < robot.velocity_limit)).all(axis=-1)
    return inside
