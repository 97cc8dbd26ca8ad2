"""An object held by three fingertips of a hand, moved to and fro and turned, cycle after cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from retorque.control.comply.compliance import Compliance
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.sense.wrench_estimator import own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.simulate.scene import Board, Scene
from retorque.tasks.comply.method_controller import method_controller
from retorque.tasks.embodiments import embodiment
from retorque.tasks.rotate.hand_objects import TIPS, hand_object
from retorque.tasks.rotate.hand_policy import HandPolicy, HandPolicySettings
from retorque.tasks.rotate.object_turns import ObjectTurns
from retorque.tasks.rotate.stroke_schedule import Stroke, StrokeSchedule
from retorque.work.array import Array

CENTRE = (-0.01, 0.005, 0.2)
"""Where the object is held [m]."""
LIFT = Stroke(axis=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0), reach=0.021, speed=0.02)
TURN = Stroke(axis=(0.0, 0.0, 0.0, 0.0, 1.0, 0.0), reach=0.3, speed=0.25)
"""Along the palm's normal, and about the hand's width."""
STAND = 0.01
"""Half size of what the object stands on until it is held [m]."""
LOWERED = 3.2
"""When that is taken away [s]."""
DROPPED = 0.02
"""An object this far from where it should be has been dropped; the palm catches it 3 cm below [m]."""
PRIOR = WrenchPrior(force=2.0, moment=0.0045)
"""Of the wrench at a fingertip."""
DEPTH = 0.004
"""How far position control sends its tips into the object; no other depth was tried [m]."""


@dataclass(frozen=True, kw_only=True)
class HandTurningSettings:
    """One experiment."""

    thing: str = "sphere"
    """sphere, cube or cylinder."""
    trials: int = 20
    seed: int = 0
    cycles: int = 3
    """Of lifting and turning."""
    misplaced: float = 0.003
    """Largest error of the object's place along each axis on its stand [m]."""
    spread: float = 0.15
    """Largest relative error of its mass and friction."""
    policy: HandPolicySettings = field(default_factory=HandPolicySettings)
    """Forces and gains."""


class HandTurning:
    """A LEAP hand, palm up, and an object that is handed to it.

    Args:
        settings: object, trials, seed.
    """

    def __init__(self, settings: HandTurningSettings):
        self.settings, self.thing = settings, hand_object(settings.thing)
        self.body = embodiment("leap_hand")
        robot = self.body.load()
        self.robot = replace(robot, frames={**robot.frames, **TIPS})
        self.sites = tuple(TIPS)
        self.schedule = StrokeSchedule((LIFT, TURN), settings.cycles)
        rng = np.random.default_rng([settings.seed, 31])
        self._shift = rng.uniform(-1.0, 1.0, (settings.trials, 3)) * settings.misplaced * [1.0, 1.0, 0.0]
        self._mass = self.thing.thing.mass * (1.0 + settings.spread * rng.uniform(-1.0, 1.0, settings.trials))
        self._friction = self.thing.thing.friction * (1.0 + settings.spread * rng.uniform(-1.0, 1.0, settings.trials))
        self.start = self._open_hand()

    def _open_hand(self) -> Array:
        """Joint positions (n,) with the tips around the object."""
        frames = tuple(self.robot.frame(name) for name in self.sites)
        tree = CompiledTree(self.robot, frames)
        solver = DampedLeastSquares(
            self.robot, frames, own_joints(tree), settings=KinematicsSettings(rotation=1e-3, posture=1e-7)
        )
        q = self.body.position(self.robot)[None]
        tree.update(q)
        solver.reset(q)
        policy = HandPolicy(tree, self.thing, np.array(CENTRE), self.schedule, self.settings.policy)
        for _ in range(400):
            solver.step(policy.pregrasp[None], tree.rotation)
        return solver.q[0].copy()

    def target(self) -> MotorTarget:
        """The plant, hand open, the object on its stand."""
        s, trials = self.settings, self.settings.trials
        truth = MotorTruth.sample(self.robot, trials, s.seed)
        stand = Board(name="stand", size=(STAND, STAND, STAND), friction=1.0)
        stiffness, damping = self.body.gains(self.robot)
        scene = Scene(objects=[self.thing.thing, stand], impratio=20.0)
        target = MotorTarget(self.robot, truth, stiffness, damping, scene=scene, seed=s.seed)
        target.vary("object", mass=self._mass, friction=self._friction)
        target.reset(np.tile(self.start, (trials, 1)))
        centre = np.array(CENTRE) + self._shift
        level = np.tile([1.0, 0.0, 0.0, 0.0], (trials, 1))
        target.place("object", np.concatenate([centre, np.tile(self.thing.quaternion, (trials, 1))], axis=1))
        below = centre - [0.0, 0.0, self.thing.half_height + STAND]
        target.place("stand", np.concatenate([below, level], axis=1))
        return target

    def run(self, method: str, progress: Callable[[int], None] | None = None) -> ObjectTurns:
        """Move the object with a method of `METHODS`."""
        s, trials = self.settings, self.settings.trials
        target = self.target()
        tree = CompiledTree(self.robot, tuple(self.robot.frame(name) for name in self.sites), trials)
        chosen = replace(s.policy, depth=s.policy.depth or DEPTH) if method == "position" else s.policy
        policy = HandPolicy(tree, self.thing, np.array(CENTRE), self.schedule, chosen)
        controller = method_controller(method, self.robot, self.sites, self.body, trials, PRIOR)
        loop = Loop(target, policy, controller)
        turns = ObjectTurns(self.schedule, chosen.begin, trials, DROPPED)
        taken = False
        for tick in range(round((chosen.begin + self.schedule.duration) / target.timestep)):
            if not taken and target.time >= LOWERED:
                target.place("stand", np.array([0.0, 0.0, -1.0, 1.0, 0.0, 0.0, 0.0]))
                taken = True
            loop.tick()
            objects = target.objects
            assert objects is not None
            felt = controller.felt if isinstance(controller, Compliance) else None
            pressed = np.stack([target.contact_force("object", by=TIPS[site].link) for site in self.sites], axis=1)
            turns.add(target.time, objects[:, 0, :7], np.linalg.norm(pressed, axis=-1), target.diverged)
            if felt is not None:
                turns.felt.append(np.linalg.norm(felt.wrench[..., :3], axis=-1).copy())
            if progress is not None and tick % 50 == 49:
                progress(50)
        return turns
