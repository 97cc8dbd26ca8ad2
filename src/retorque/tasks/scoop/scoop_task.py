"""A ball scooped off a table whose height nobody told, and placed in a bowl (compliance paper, IV-D, in simulation)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retorque.control.comply.compliance_action import ComplianceAction, along, critical_damping
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.control.controller import Controller
from retorque.loop.loop import Loop
from retorque.loop.policy import Policy
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_axis_angle
from retorque.sense.wrench_estimator import own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.simulate.scene import Ball, Board, Box, Object, Scene
from retorque.tasks.comply.method_controller import method_controller
from retorque.tasks.embodiments import embodiment
from retorque.tasks.scoop.pose_source import InterpolatedPoses, PoseSource
from retorque.work.array import Array

LIP = (0.12, 0.0, -0.07)
"""The spoon's front edge in the hand's frame: its handle is bent, so that the wrist stays clear of the table [m]."""
TABLE = 0.16
"""Height of the table as it is thought to be [m]."""
STOP = 0.49
"""Where the stopper's face is, against which the ball is scooped [m]."""
BOWL = (0.42, 0.17)
"""Centre of the bowl [m]."""
BOWL_HALF, BOWL_HEIGHT, BOWL_BACK = 0.04, 0.025, 0.08
"""Half its inner width, its height, and that of its far side, against which the ball may roll [m]."""
RADIUS, MASS, FRICTION = 0.015, 0.02, 0.4
"""Of the ball: a small egg [m, kg]."""
PLACE = np.array([[0.43, 0.455], [-0.025, 0.025]])
"""Where it lies [m]."""
START = (0.36, 0.0, TABLE + 0.07)
"""Of the lip [m]."""
DOWN = 0.25
"""Pitch of the spoon, nose down, while it scrapes [rad]."""
STIFFNESS = (250.0, 600.0, 40.0)
"""Along the vertical, across it [N/m], and of rotations [N·m/rad]."""
DAMPING = 5.0
"""Times critical damping: a stiff arm on a hard table."""
PRIOR = WrenchPrior(force=(3.0, 3.0, 5.0), moment=0.04)
"""Of the wrench at the lip."""
SEEN = 0.001
"""Standard deviation of where the ball is seen [m]."""


@dataclass(frozen=True, kw_only=True)
class ScoopSettings:
    """One experiment of scooping."""

    trials: int = 20
    """Tables, balls and arms of their own hidden friction."""
    seed: int = 0
    """Of everything random."""
    wrong: float = 0.012
    """Largest error of the table's height [m]."""
    duration: float = 16.0
    """Of a trial [s]."""


class ScoopTask:
    """ARX with a spoon, a ball before a stopper, a bowl beside it.

    Args:
        settings: trials, seed, how wrong the table is.
    """

    def __init__(self, settings: ScoopSettings):
        self.settings = settings
        self.body = embodiment("arx_x5")
        robot = self.body.load()
        hand = robot.frame("end_effector")
        x, y, z = np.add(hand.position, LIP)
        lip = replace(hand, position=(float(x), float(y), float(z)))
        self.robot: Robot = replace(robot, frames={**robot.frames, "lip": lip})
        rng = np.random.default_rng([settings.seed, 41])
        self.height = TABLE + rng.uniform(-settings.wrong, settings.wrong, settings.trials)
        """(trials,) of the table, hidden [m]."""
        self.place = rng.uniform(PLACE[:, 0], PLACE[:, 1], (settings.trials, 2))
        """(trials, 2) of the ball [m]."""
        self.start = self._reach()

    def tree(self, trials: int) -> CompiledTree:
        """Kinematics of the lip."""
        return CompiledTree(self.robot, (self.robot.frame("lip"),), trials)

    def _reach(self) -> Array:
        """Joint positions (n,) with the lip at its start."""
        tree = self.tree(1)
        settings = KinematicsSettings(rotation=self.body.turn_weight)
        solver = DampedLeastSquares(self.robot, tree.frames, own_joints(tree), settings=settings)
        solver.reset(self.body.position(self.robot)[None])
        turn = from_axis_angle((0.0, 1.0, 0.0), DOWN)
        for _ in range(400):
            solver.step(np.array(START)[None, None], turn[None, None])
        return solver.q[0].copy()

    def scene(self) -> Scene:
        """Spoon, table, stopper, bowl, ball."""
        return Scene(objects=[*_spoon(), *_furniture()], impratio=20.0)

    def target(self) -> MotorTarget:
        """The plant, the spoon above the table."""
        s = self.settings
        stiffness, damping = self.body.gains(self.robot)
        truth = MotorTruth.sample(self.robot, s.trials, s.seed)
        target = MotorTarget(self.robot, truth, stiffness, damping, scene=self.scene(), seed=s.seed)
        target.reset(np.tile(self.start, (s.trials, 1)))
        shift = self.height[:, None] * [0.0, 0.0, 1.0]
        level = np.tile([1.0, 0.0, 0.0, 0.0], (s.trials, 1))
        for thing in _furniture():
            here = np.array(thing.position) + shift
            if thing.name == "ball":
                here[:, :2] = self.place
            target.place(thing.name, np.concatenate([here, level], axis=1))
        return target

    def controller(self, method: str) -> Controller[ComplianceAction]:
        """retorque: compliance; position: inverse kinematics only."""
        return method_controller(method, self.robot, ("lip",), self.body, self.settings.trials, PRIOR)

    def begin(self) -> tuple[Array, Array]:
        """Position (trials, 3) and rotation (trials, 3, 3) that the lip begins at."""
        tree = self.tree(self.settings.trials)
        tree.update(np.tile(self.start, (self.settings.trials, 1)))
        return tree.position[:, 0].copy(), tree.rotation[:, 0].copy()

    def policy(self, source: PoseSource) -> InterpolatedPoses:
        """Poses at 10 Hz as the policy of a loop."""
        return InterpolatedPoses(source, *self.begin(), *self.gains())

    def gains(self) -> tuple[Array, Array]:
        """Stiffness and damping (1, 6, 6) of the lip."""
        vertical, across, turn = STIFFNESS
        stiffness = along(np.array([[0.0, 0.0, 1.0]]), vertical, across, turn)
        return stiffness, DAMPING * critical_damping(stiffness)

    def run(
        self,
        policy: Policy,
        controller: Controller[ComplianceAction],
        *,
        look: Callable[[MotorTarget], bool] | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> ScoopScore:
        """Scoop once.

        Args:
            policy: what leads.
            controller: what follows it.
            look: called before every tick; the run ends where it says so.
            progress: called with the number of ticks done.
        """
        target = self.target()
        loop = Loop(target, policy, controller)
        peak = np.zeros(self.settings.trials)
        for tick in range(round(self.settings.duration / target.timestep)):
            if look is not None and look(target):
                break
            loop.tick()
            pressed = np.linalg.norm(target.contact_force("table", by="plate"), axis=-1)
            peak = np.maximum(peak, pressed)
            if progress is not None and tick % 50 == 49:
                progress(50)
        assert target.objects is not None
        return ScoopScore(in_bowl(target.objects[:, 0, :3], self.height) & ~target.diverged, peak)


@dataclass(frozen=True)
class ScoopScore:
    """What came of it."""

    success: Array
    """(trials,) whether the ball lies in the bowl in the end."""
    peak: Array
    """(trials,) largest force of the spoon on the table [N]."""


def in_bowl(ball: Array, height: Array) -> Array:
    """(trials,) whether balls (trials, 3) lie in the bowl on a table of that height (trials,)."""
    inside = np.abs(ball[:, :2] - np.array(BOWL)).max(axis=1) < BOWL_HALF
    low = np.abs(ball[:, 2] - height - RADIUS) < RADIUS
    return np.asarray(inside & low)


def _spoon() -> list[Object]:
    """Flat, with a rim on three sides; its front edge is the lip."""
    half, width, thick, rim = 0.035, 0.028, 0.001, 0.008
    centre = (LIP[0] - half, 0.0, LIP[2] + thick)

    def part(name: str, x: float, y: float, z: float, size: tuple[float, float, float]) -> Object:
        return Box(
            name=name, mount="end_effector", position=(centre[0] + x, y, centre[2] + z), size=size, friction=FRICTION
        )

    return [
        part("plate", 0.0, 0.0, 0.0, (half, width, thick)),
        part("left rim", 0.0, width, rim, (half, 0.001, rim)),
        part("right rim", 0.0, -width, rim, (half, 0.001, rim)),
        part("back rim", -half, 0.0, 1.5 * rim, (0.001, width, 1.5 * rim)),
    ]


def _furniture() -> list[Object]:
    """What stands on the table, heights from its top; the table itself."""
    things: list[Object] = [
        Board(name="table", size=(0.2, 0.3, 0.02), position=(0.45, 0.05, -0.02), friction=FRICTION),
        Box(name="stopper", size=(0.01, 0.07, 0.012), position=(STOP + 0.01, 0.0, 0.012), friction=0.2),
        Ball(
            name="ball",
            radius=RADIUS,
            mass=MASS,
            position=(0.44, 0.0, RADIUS),
            friction=FRICTION,
            rolling_friction=0.0005,
            torsional_friction=0.001,
        ),
    ]
    out = BOWL_HALF + 0.002
    for name, x, y in (("far", 1.0, 0.0), ("near", -1.0, 0.0), ("left", 0.0, 1.0), ("right", 0.0, -1.0)):
        half = 0.5 * (BOWL_BACK if name == "far" else BOWL_HEIGHT)
        size = (0.002, BOWL_HALF, half) if x else (BOWL_HALF, 0.002, half)
        things.append(
            Box(
                name=f"{name} side", size=size, position=(BOWL[0] + x * out, BOWL[1] + y * out, half), friction=FRICTION
            )
        )
    return things
