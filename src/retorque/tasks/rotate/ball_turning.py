"""A kneeling humanoid that turns a ball on the floor with its left hand, its right hand or both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from retorque.control.comply.compliance import Compliance
from retorque.control.comply.site_kinematics import DampedLeastSquares, KinematicsSettings
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Frame
from retorque.robots.rotation import from_axis_angle
from retorque.robots.state import Base, State
from retorque.sense.wrench_estimator import own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.simulate.scene import Ball, Floor, Scene
from retorque.tasks.comply.method_controller import method_controller
from retorque.tasks.embodiments import embodiment
from retorque.tasks.rotate.ball_policy import BallPolicy, BallPolicySettings
from retorque.tasks.rotate.kneeling import Kneeling
from retorque.tasks.rotate.object_turns import ObjectTurns
from retorque.tasks.rotate.stroke_schedule import Stroke, StrokeSchedule
from retorque.work.array import Array
from retorque.work.errors import unknown

HANDS = {
    "left": ("left_hand_centre",),
    "right": ("right_hand_centre",),
    "both": ("left_hand_centre", "right_hand_centre"),
}
"""Sites by which hands turn the ball."""
RADIUS, MASS, FRICTION = 0.08, 0.2, 0.8
"""The public code's ball [m, kg]."""
PLACE = (0.12, 0.0, RADIUS)
"""Of the ball from below the torso's base [m]."""
HEIGHT, LEAN = 0.175, -0.06
"""Of the torso's free base on its knees [m], and its pitch [rad]."""
KNEELING = {
    "hip_pitch": -0.46,
    "hip_roll": 0.49,
    "hip_yaw_driven": 0.88,
    "knee": -2.06,
    "ankle_pitch": -0.12,
    "ankle_roll": -0.72,
}
"""Of the left leg, the right one mirrored [rad]: knees 13 cm apart with the ball before them, shanks outwards, feet on
the floor behind. The weight is 4.5 cm behind the foremost point that it stands on, and 8 cm before the last."""
KNEES = ("left_knee_link", "right_knee_link")
FALLEN = 0.6
"""A base below this share of its height has fallen."""
SIDE = {"one": np.deg2rad(40.0), "both": np.deg2rad(50.0)}
"""Angle of a palm's place from the top of the ball to its side [rad]."""
ROLL = Stroke(axis=(0.0, 0.0, 0.0, 0.0, 1.0, 0.0), reach=float(np.pi / 12.0), speed=0.2)
SPIN = Stroke(axis=(0.0, 0.0, 0.0, 0.0, 0.0, 1.0), reach=float(np.pi / 8.0), speed=0.2)
"""With one hand pi/6 about a horizontal axis, with both pi/4 about the vertical one; 0.2 rad/s."""
PRIOR = WrenchPrior(force=3.0, moment=0.02)
"""Of the wrench at a hand."""
LOST = 0.06
"""A ball this far from where it should be has rolled away [m]."""
PALM_TURN = 0.03
"""Weight of 1 rad of a palm beside 1 m in inverse kinematics."""
DEPTH = 0.01
"""How far position control sends its palms into the ball; no other depth was tried [m]."""


@dataclass(frozen=True, kw_only=True)
class BallTurningSettings:
    """One experiment."""

    hands: str = "left"
    """left, right or both."""
    trials: int = 20
    seed: int = 0
    cycles: int = 3
    """Strokes to and fro."""
    misplaced: float = 0.005
    """Largest error of the ball's place along each axis [m]."""
    spread: float = 0.15
    """Largest relative error of its mass and friction."""
    policy: BallPolicySettings = field(default_factory=BallPolicySettings)
    """Forces and gains."""


class BallTurning:
    """ToddlerBot on its knees, which it keeps apart, its base free; the ball on the floor before it.

    Args:
        settings: hands, trials, seed.
    """

    def __init__(self, settings: BallTurningSettings):
        if settings.hands not in HANDS:
            raise unknown("choice of hands", settings.hands, HANDS)
        self.settings, self.sites = settings, HANDS[settings.hands]
        self.body = replace(embodiment("toddlerbot_2xm"), turn_weight=PALM_TURN)
        robot = self.body.load()
        knees = {name: Frame(link=name, position=(0.0, 0.0, 0.0), quaternion=(1.0, 0.0, 0.0, 0.0)) for name in KNEES}
        self.robot = replace(robot, frames={**robot.frames, **knees})
        self.base = np.array([0.0, 0.0, HEIGHT, np.cos(0.5 * LEAN), 0.0, np.sin(0.5 * LEAN), 0.0])
        both = settings.hands == "both"
        angle = SIDE["both"] if both else SIDE["one"]
        sides = [1.0 if site.startswith("left") else -1.0 for site in self.sites]
        self.touch = np.array([[0.0, side * np.sin(angle), np.cos(angle)] for side in sides])
        self.schedule = StrokeSchedule((SPIN if both else ROLL,), settings.cycles)
        rng = np.random.default_rng([settings.seed, 32])
        self._shift = rng.uniform(-1.0, 1.0, (settings.trials, 3)) * settings.misplaced * [1.0, 1.0, 0.0]
        self._mass = MASS * (1.0 + settings.spread * rng.uniform(-1.0, 1.0, settings.trials))
        self._friction = FRICTION * (1.0 + settings.spread * rng.uniform(-1.0, 1.0, settings.trials))
        self.start, self.palm = self._reach()

    def _frames(self, trials: int) -> CompiledTree:
        return CompiledTree(self.robot, tuple(self.robot.frame(name) for name in self.sites), trials)

    def policy(
        self,
        trials: int,
        settings: BallPolicySettings,
        palm: Array,
        locate: Callable[[State], Base | None] | None = None,
    ) -> BallPolicy:
        """The policy of this scene; `locate` says where the base is."""
        return BallPolicy(
            self._frames(trials), np.array(PLACE), RADIUS, MASS, self.touch, palm, self.schedule, settings, locate
        )

    def _reach(self) -> tuple[Array, Array]:
        """Joint positions (n,) with the palms above the ball, and the palms' orientations (hands, 3, 3)."""
        robot, tree = self.robot, self._frames(1)
        q = self.body.position(robot)
        for name, value in KNEELING.items():
            q[robot.joint_names.index(f"left_{name}")] = value
            q[robot.joint_names.index(f"right_{name}")] = -value
        tree.update(q[None], self.base[None])
        palm = np.stack([_facing(tree.rotation[0, k], -self.touch[k]) for k in range(len(self.sites))])
        settings = KinematicsSettings(rotation=PALM_TURN, posture=1e-7)
        solver = DampedLeastSquares(robot, tree.frames, own_joints(tree), settings=settings)
        solver.reset(q[None])
        hover = self.policy(1, self.settings.policy, palm).hover
        for _ in range(400):
            solver.step(hover[None], palm[None], self.base[None])
        return solver.q[0].copy(), palm

    def target(self) -> MotorTarget:
        """The plant, palms above the ball."""
        s, trials = self.settings, self.settings.trials
        stiffness, damping = self.body.gains(self.robot)
        ball = Ball(
            name="ball",
            radius=RADIUS,
            mass=MASS,
            friction=FRICTION,
            torsional_friction=0.005,
            rolling_friction=0.0005,
        )
        scene = Scene(objects=[ball, Floor(friction=FRICTION)], impratio=20.0)
        truth = MotorTruth.sample(self.robot, trials, s.seed)
        target = MotorTarget(self.robot, truth, stiffness, damping, scene=scene, seed=s.seed)
        target.vary("ball", mass=self._mass, friction=self._friction)
        target.reset(
            np.tile(self.start, (trials, 1)), base=Base(np.tile(self.base, (trials, 1)), np.zeros((trials, 6)))
        )
        level = np.tile([1.0, 0.0, 0.0, 0.0], (trials, 1))
        target.place("ball", np.concatenate([np.array(PLACE) + self._shift, level], axis=1))
        return target

    def run(self, method: str, progress: Callable[[int], None] | None = None) -> ObjectTurns:
        """Turn the ball with a method of `METHODS`."""
        s, trials = self.settings, self.settings.trials
        target = self.target()
        chosen = replace(s.policy, depth=s.policy.depth or DEPTH) if method == "position" else s.policy
        posture = Kneeling(self.robot, KNEES, ("left_hip_pitch", "right_hip_pitch"), trials)
        policy = self.policy(trials, chosen, self.palm, posture.locate)
        controller = method_controller(method, self.robot, self.sites, self.body, trials, PRIOR, posture)
        loop = Loop(target, policy, controller)
        turns = ObjectTurns(self.schedule, chosen.begin, trials, LOST)
        for tick in range(round((chosen.begin + self.schedule.duration) / target.timestep)):
            loop.tick()
            objects = target.objects
            assert objects is not None
            pressed = [target.contact_force("ball", by=self.robot.frame(site).link) for site in self.sites]
            fallen = target.diverged | (target.base_pose()[:, 2] < FALLEN * HEIGHT)
            turns.add(target.time, objects[:, 0, :7], np.linalg.norm(np.stack(pressed, 1), axis=-1), fallen)
            if isinstance(controller, Compliance) and controller.felt is not None:
                turns.felt.append(np.linalg.norm(controller.felt.wrench[..., :3], axis=-1).copy())
            if progress is not None and tick % 50 == 49:
                progress(50)
        return turns


def _facing(rotation: Array, direction: Array) -> Array:
    """The orientation (3, 3) nearest to one, its -z axis along a unit direction (3,)."""
    now = -rotation[:, 2]
    across = np.cross(now, direction)
    size = float(np.linalg.norm(across))
    if size < 1e-9:
        return rotation
    return np.asarray(from_axis_angle(across / size, float(np.arctan2(size, now @ direction))) @ rotation)
