"""StrokeDrawing on a board that is not where the planner thinks it is, with whatever robot has a pen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from retorque.control.comply.balance import Balance, BalanceSettings, pitch_and_yaw
from retorque.control.comply.compliance import Compliance
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.kinematics_choice import kinematics_class
from retorque.control.comply.torque_compliance import TorqueCompliance
from retorque.control.controller import Controller
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.robots.robot import Frame, Robot
from retorque.robots.rotation import from_quaternion
from retorque.robots.state import Base
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.simulate.scene import Ball, Floor, Object, Scene, Wall
from retorque.simulate.target import Target
from retorque.tasks.comply.drawing_sites import SITES, arm, check_drawing, table_site
from retorque.tasks.comply.method_controller import METHODS, method_controller
from retorque.tasks.comply.stay import Stay
from retorque.tasks.comply.stroke_plan import DrawingPlane, StrokePlan, StrokePolicy, plan_strokes
from retorque.tasks.comply.stroke_shapes import Strokes, shape
from retorque.tasks.comply.torque_arm import TorqueArm
from retorque.tasks.embodiments import Embodiment, embodiment
from retorque.tasks.force_policies.force_network import FORCE_POLICIES
from retorque.tasks.force_policies.learned_force import LearnedForce
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown

PEN_RADIUS = 0.004
"""[m]"""
PEN_FRICTION = 0.3
"""Of a felt pen on a whiteboard."""
ACROSS = 0.2
"""Force across the normal that is expected, as a share of the force along it."""
SETTLING = 1.0
"""Standing before the drawing begins [s]."""
DRAWING_METHODS = (*METHODS, *FORCE_POLICIES)
"""Those of every contact task, and UniFP and FACET, which were trained for ToddlerBot's pen."""
FALLEN = 0.7
"""A base below this share of its height has fallen."""


@dataclass(frozen=True, kw_only=True)
class DrawSettings:
    """One experiment of drawing."""

    robot: str = "toddlerbot_2xm"
    """Which of the embodiments."""
    shape: str = "heart"
    """heart, star, circle, text:WORDS or an SVG path."""
    trials: int = 20
    """Boards."""
    seed: int = 0
    """Of boards and friction."""
    wrong: float = 1.0
    """Times the board's usual misplacement and tilt."""
    kinematics: str = "compiled"
    """compiled or mink; arms by torque take the compiled one."""


@dataclass(frozen=True)
class StrokeDrawing:
    """What happened, a row a tick while the pen should be on the board, after the trials' axis."""

    time: Array
    """(ticks,) [s]"""
    tip: Array
    """(ticks, trials, 3) of the pen [m]."""
    desired: Array
    """(ticks, 3) [m]"""
    turned: Array
    """(ticks, trials) angle between the hand and its desired orientation [rad]."""
    pitch: Array
    """(ticks, trials) of the base [rad]."""
    force: Array
    """(ticks, trials) that the pen presses with, along the board's true normal [N]."""
    felt: Array
    """(ticks, trials) the same as estimated along the planned normal [N]."""
    drawing: Array
    """(ticks,) whether the pen should be on a stroke."""
    fallen: Array
    """(trials,)"""
    codes: Array
    """(ticks, trials) `ComplyCode`s."""


class DrawTask:
    """A robot, its pen, and boards that are a little off.

    Args:
        settings: robot, shape, trials.
    """

    def __init__(self, settings: DrawSettings):
        check_drawing(settings.robot)
        kinematics_class(settings.kinematics)
        self.settings = settings
        self.strokes: Strokes = shape(settings.shape)
        by_torque = settings.robot not in SITES
        self.body: Embodiment = arm(settings.robot) if by_torque else embodiment(settings.robot)
        robot = self.body.load()
        self.site = table_site(robot) if by_torque else SITES[settings.robot]
        if self.site.base_height is not None:
            self.body = replace(self.body, base_height=self.site.base_height)
        hand = robot.frame(self.site.site)
        self.robot: Robot = replace(robot, frames={**robot.frames, "pen": _beyond(hand, self.site.pen)})
        self.arm = TorqueArm(self.robot, "pen", settings.trials, settings.seed) if by_torque else None
        others = tuple(name for name in self.body.sites if name != self.site.site)
        self.sites = (*others, "pen")
        self.start = replace(self.body, pose={**self.body.pose, **self.site.pose}).position(self.robot)
        tree = CompiledTree(self.robot, tuple(self.robot.frame(name) for name in self.sites))
        base = None
        if self.robot.floating:
            base = np.array([[0.0, 0.0, self.body.base_height, 1.0, 0.0, 0.0, 0.0]])
        tree.update(self.start[None], base)
        self.poses = tree.position[0].copy(), tree.rotation[0].copy()
        centre = self.poses[0][-1] + np.array(self.site.offset)
        self.plane = DrawingPlane(centre=centre, normal=np.array(self.site.normal), up=np.array(self.site.up))
        self.normals, self.boards = self._boards(settings)

    def _boards(self, settings: DrawSettings) -> tuple[Array, Array]:
        """True normals (trials, 3) and wall poses (trials, 7)."""
        rng = np.random.default_rng([settings.seed, 17])
        right, up, normal = self.plane.axes
        points, normals = [], []
        for _ in range(settings.trials):
            shift = settings.wrong * self.site.misplaced * rng.choice([-1.0, 1.0])
            angle, tilt = rng.uniform(-np.pi, np.pi), settings.wrong * self.site.tilted
            aside = np.cos(angle) * right + np.sin(angle) * up
            normals.append(np.cos(tilt) * normal + np.sin(tilt) * aside)
            points.append(self.plane.centre - (PEN_RADIUS + shift) * normal)
        return np.array(normals), Wall.facing(np.array(points), np.array(normals))

    def target(self) -> Target:
        """The plant, standing at its start, the boards in place."""
        objects: list[Object] = [
            Wall(
                name="whiteboard",
                size=(min(0.05, self.site.board), self.site.board, self.site.board),
                friction=PEN_FRICTION,
            ),
            Ball(name="tip", radius=PEN_RADIUS, mount="pen", friction=PEN_FRICTION),
        ]
        if self.robot.floating:
            objects.append(Floor(friction=1.0))
        if self.arm is not None:
            target = self.arm.target(Scene(objects=objects), self.start)
            target.place("whiteboard", self.boards)
            return target
        stiffness, damping = self.body.gains(self.robot)
        truth = MotorTruth.sample(self.robot, self.settings.trials, self.settings.seed)
        target = MotorTarget(
            self.robot, truth, stiffness, damping, scene=Scene(objects=objects), seed=self.settings.seed
        )
        target.place("whiteboard", self.boards)
        base = None
        trials = self.settings.trials
        if self.robot.floating:
            pose = np.array([0.0, 0.0, self.body.base_height, 1.0, 0.0, 0.0, 0.0])
            base = Base(np.tile(pose, (trials, 1)), np.zeros((trials, 6)))
        target.reset(np.tile(self.start, (trials, 1)), base=base)
        target.place("whiteboard", self.boards)
        return target

    def controller(self, method: str) -> Controller[ComplianceAction]:
        """The controller of a method."""
        robot, body, trials = self.robot, self.body, self.settings.trials
        if self.arm is not None:
            return self.arm.controller(method, WrenchPrior(force=self._expected(), moment=0.0))
        posture = None
        if len(body.feet) == 2:
            feet = (body.feet[0], body.feet[1])
            stiffness, _ = body.gains(robot)
            posture = Balance(robot, feet, self.sites, stiffness, body.sole, trials, settings=BalanceSettings())
        if method in FORCE_POLICIES:
            return LearnedForce(method, robot, self.start, trials, posture)
        prior = replace(body.prior, force=self._expected(), moment=body.prior.moment)
        inverse = self.settings.kinematics
        return method_controller(method, robot, self.sites, body, trials, prior, posture, inverse)

    def check(self, method: str) -> None:
        """Refuse a method that this robot does not have."""
        if method not in DRAWING_METHODS:
            raise unknown("method", method, DRAWING_METHODS)
        if method in FORCE_POLICIES and self.robot.name != "toddlerbot_2xm":
            raise RetorqueError(f"{method} was trained for toddlerbot_2xm, not for '{self.robot.name}'; leave it out")
        if self.arm is not None:
            self.arm.check(method)

    def _expected(self) -> tuple[float, float, float]:
        """Standard deviation of the force an axis: what is pressed along the normal, friction across it [N]."""
        force, normal = self.site.strokes.force, np.abs(np.array(self.site.normal))
        x, y, z = force * (normal + ACROSS * (1.0 - normal))
        return float(x), float(y), float(z)

    def plan(self) -> StrokePlan:
        """The trajectory that every method follows."""
        return plan_strokes(self.strokes, self.plane, self.poses[0][-1], self.site.strokes)

    def run(self, method: str, progress: Callable[[int], None] | None = None) -> StrokeDrawing:
        """Draw with a method."""
        self.check(method)
        target, plan, trials = self.target(), self.plan(), self.settings.trials
        controller = self.controller(method)
        position, rotation = (np.tile(x, (trials, *(1,) * x.ndim)) for x in self.poses)
        stay = ComplianceAction(
            position, rotation, StrokePolicy(plan, len(self.sites) - 1, position, rotation).stiffness
        )
        if self.arm is None:
            loop = Loop(target, Stay(stay), controller)
        else:
            loop = self.arm.loop(target, self.start)
            loop.switch(Stay(stay), controller)
        for _ in range(round(SETTLING / target.timestep)):
            loop.tick()
        policy = StrokePolicy(plan, len(self.sites) - 1, position, rotation)
        loop.switch(policy, controller)
        return self._follow(loop, target, policy, controller, progress)

    def _follow(
        self,
        loop: Loop,
        target: Target,
        policy: StrokePolicy,
        controller: Controller[ComplianceAction],
        progress: Callable[[int], None] | None,
    ) -> StrokeDrawing:
        plan, trials = policy.plan, self.settings.trials
        truth = CompiledTree(self.robot, tuple(self.robot.frame(name) for name in self.sites), trials)
        rows: dict[str, list[Array]] = {key: [] for key in ("tip", "turned", "pitch", "force", "felt", "codes")}
        desired = self.poses[1][-1]
        fallen = np.zeros(trials, dtype=bool)
        each = round(plan.settings.period / target.timestep)
        feeling = controller.compliance if isinstance(controller, TorqueCompliance) else controller
        for tick in range(len(plan.position)):
            for _ in range(each):
                loop.tick()
            base = target.base_pose() if isinstance(target, MotorTarget) and self.robot.floating else None
            truth.update(target.position, base)
            rows["tip"].append(truth.position[:, -1].copy())
            cosine = 0.5 * (np.einsum("tij,ij->t", truth.rotation[:, -1], desired) - 1.0)
            rows["turned"].append(np.arccos(np.clip(cosine, -1.0, 1.0)))
            pushed = target.contact_force("tip", by="whiteboard")
            rows["force"].append(np.einsum("ti,ti->t", pushed, self.normals))
            felt = feeling.felt if isinstance(feeling, Compliance) else None
            rows["felt"].append(np.zeros(trials) if felt is None else felt.wrench[:, -1, :3] @ plan.normal)
            rows["codes"].append(np.array(getattr(controller, "codes", np.zeros(trials, dtype=np.int64))))
            if base is None:
                rows["pitch"].append(np.zeros(trials))
            else:
                rows["pitch"].append(pitch_and_yaw(base[:, 3:])[0])
                fallen |= base[:, 2] < FALLEN * self.body.base_height
            if progress is not None and tick % 10 == 9:
                progress(10)
        time = plan.settings.period * np.arange(1, len(plan.position) + 1)
        every = {key: np.array(value) for key, value in rows.items()}
        return StrokeDrawing(
            time=time, desired=plan.position, drawing=plan.drawing, fallen=fallen | target.diverged, **every
        )


def _beyond(frame: Frame, offset: tuple[float, float, float]) -> Frame:
    """A frame further along in the same axes."""
    moved = np.array(frame.position) + from_quaternion(frame.quaternion) @ np.array(offset)
    return replace(frame, position=(float(moved[0]), float(moved[1]), float(moved[2])))
