"""Pushes of known size at a robot's sites, on the motor-level plant: what wrench estimates are measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.control.action import JointAction
from retorque.control.comply.admittance import Admittance
from retorque.control.comply.compliance import Compliance
from retorque.control.comply.compliance_action import ComplianceAction, isotropic
from retorque.control.comply.servo_feed_forward import ServoFeedForward
from retorque.control.comply.site_kinematics import DampedLeastSquares
from retorque.control.controller import Controller
from retorque.control.joint_targets import JointTargets
from retorque.loop.loop import Loop
from retorque.loop.policy import Policy
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.state import State
from retorque.sense.external_torque import TorqueSettings
from retorque.sense.momentum import Momentum, welded
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.simulate.motor_target import MotorTarget, MotorTruth, ReportSettings
from retorque.tasks.comply.stay import Stay
from retorque.tasks.embodiments import Embodiment
from retorque.work.array import Array

RISE, HOLD, GAP = 0.3, 0.4, 0.2
"""Of each push [s]."""
REST = 1.0
"""Before the first push [s]."""


@dataclass(frozen=True, kw_only=True)
class PushSettings:
    """One experiment."""

    trials: int = 20
    seed: int = 0
    speed: float = 0.0
    """Peak joint speed of the motion under the pushes; 0: the robot holds its pose [rad/s]."""
    friction: float = 1.0
    """Times the cards' friction; 0: none."""
    spread: float = 0.3
    """Largest relative error of the cards' friction."""
    comply: bool = False
    """Whether the compliance controller yields to the pushes, as in the paper's measurement."""
    timestep: float = 0.02
    """Control period [s]."""


class PushTask:
    """A robot (a free base held fast) that is pushed along every axis in turn, at all its sites at once.

    Args:
        body: the robot and its sizes.
        settings: trials, speed, friction.
    """

    def __init__(self, body: Embodiment, settings: PushSettings):
        self.body, self.settings = body, settings
        self.robot = welded(body.load())
        s = settings
        rng = np.random.default_rng([s.seed, 16])
        self.start = body.position(self.robot)
        sites = len(body.sites)
        axes = np.concatenate([np.eye(3), -np.eye(3)])
        order = np.array([[rng.permutation(6) for _ in range(sites)] for _ in range(s.trials)])  # (trials, sites, 6)
        size = rng.uniform(0.5, 1.0, (s.trials, sites, 6)) * body.push
        self.pushes = size[..., None] * axes[order]
        """(trials, sites, 6, 3) [N]"""
        self.frequency = rng.uniform(0.3, 0.5, (s.trials, self.robot.n))
        self.phase = rng.uniform(-np.pi, np.pi, (s.trials, self.robot.n))
        self.duration = REST + 6 * (2 * RISE + HOLD + GAP)

    def truth(self, time: float) -> Array:
        """Forces (trials, sites, 3) at a time [N]."""
        length = 2 * RISE + HOLD + GAP
        which = int((time - REST) // length)
        if time < REST or which > 5:
            return np.zeros((*self.pushes.shape[:2], 3))
        t = time - REST - which * length
        share = min(t / RISE, 1.0, max(0.0, (2 * RISE + HOLD - t) / RISE))
        return share * self.pushes[:, :, which]

    def target(self) -> MotorTarget:
        """The plant at its start."""
        s = self.settings
        truth = MotorTruth.sample(self.robot, s.trials, s.seed, s.spread, s.friction)
        stiffness, damping = self.body.gains(self.robot)
        target = MotorTarget(
            self.robot,
            truth,
            stiffness,
            damping,
            reports=ReportSettings(),
            timestep=s.timestep,
            seed=s.seed,
        )
        target.reset(np.broadcast_to(self.start, (s.trials, self.robot.n)))
        return target

    def reference(self, time: float) -> JointAction:
        """Where the joints are told to be: at the start, or on sines through it."""
        w = 2.0 * np.pi * self.frequency
        if self.settings.speed == 0.0:
            still = np.zeros_like(w)
            return JointAction(self.start + still, still)
        ramp = min(1.0, time / 0.5)
        swing = self.settings.speed / w * ramp
        arc = w * time + self.phase
        return JointAction(self.start + swing * (np.sin(arc) - np.sin(self.phase)), swing * w * np.cos(arc))

    def record(self) -> tuple[list[State], Array]:
        """Reports, and the true forces (ticks, trials, sites, 3) of the steps that led to them."""
        target = self.target()
        loop = Loop(target, *self._driven())
        states: list[State] = []
        truth: list[Array] = []
        force = self.truth(0.0)
        for tick in range(round(self.duration / self.settings.timestep)):
            felt, force = force, self.truth(tick * self.settings.timestep)
            for s, site in enumerate(self.body.sites):
                target.push_frame(site, force[:, s])
            states.append(loop.tick().state)
            truth.append(felt)
        return states, np.array(truth)

    def _driven(self) -> tuple[Policy, Controller]:
        """What moves the robot under the pushes."""
        if not self.settings.comply:
            return _Sines(self), JointTargets()
        robot, body, trials = self.robot, self.body, self.settings.trials
        frames = tuple(robot.frame(name) for name in body.sites)
        tree = CompiledTree(robot, frames, trials)
        used = own_joints(tree)
        at_all: Array = np.asarray(used.any(axis=0))
        tree.update(np.tile(self.start, (trials, 1)))
        torque = Momentum(robot, trials, self.settings.timestep, TorqueSettings(noise=body.noise), at_all)
        source = WrenchEstimator(robot, body.sites, torque, body.prior, None, trials, self.settings.timestep)
        kinematics = DampedLeastSquares(robot, frames, used, trials, self.settings.timestep)
        ahead = ServoFeedForward(torque.joints, body.gains(robot)[0], used, trials, self.settings.timestep)
        admittance = Admittance(len(frames), trials, self.settings.timestep)
        stiffness = np.tile(isotropic(body.compliance, 0.1 * body.compliance), (trials, len(frames), 1, 1))
        action = ComplianceAction(tree.position.copy(), tree.rotation.copy(), stiffness)
        return Stay(action), Compliance(source, admittance, kinematics, feed_forward=ahead)


class _Sines:
    """The task's joint references, as a policy."""

    period = 0.0

    def __init__(self, task: PushTask):
        self._task = task

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> JointAction:
        return self._task.reference(state.time)
