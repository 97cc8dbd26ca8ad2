"""Tasks seen through cameras: what a policy is told about things comes from pictures and clouds, not from the truth."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from retorque.loop.policy import Policy
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.state import State
from retorque.simulate.cameras.depth_camera import beside_the_table, depth_cloud
from retorque.simulate.cameras.mounted_camera import Checkerboard, MountedCamera, Mounting
from retorque.simulate.cameras.ray_camera import RayCamera
from retorque.simulate.target import Target
from retorque.tasks.ball.ball_camera import BallCamera
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.ball.plate import BALL_RADIUS, PLATE
from retorque.tasks.ball.plate_calibration import FRAMES, TILES, calibrate
from retorque.tasks.flip.act_policy import ActPolicy
from retorque.tasks.flip.flip_task import HAND_VIEW
from retorque.tasks.policy_task import PolicyTask
from retorque.tasks.push.box_clouds import BoxClouds
from retorque.tasks.push.box_filter import BoxFilter
from retorque.tasks.push.box_task import BoxTask, box_pose
from retorque.tasks.push.student_push import StudentPush
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

HAND_CAMERA = Mounting(frame="plate", eye=(-0.16, 0.02, 0.30))
"""Behind the plate, where the hand is."""
AWAY = np.array([5.0, 5.0, 0.5, 1.0, 0.0, 0.0, 0.0])
"""Where the ball is while the camera is calibrated [m]."""


class Sight(Protocol):
    """What cameras make of a scene."""

    period: float
    """Between two looks [s]."""

    def look(self, state: State) -> Array:
        """Things as they are seen now (trials, 1, 13); not a number where one is not."""
        ...


class BallSight:
    """A camera on the hand of each robot, calibrated with the ball off the plate.

    Args:
        task: the ball on the plate.
        target: its robots, at their starts.
    """

    period = 0.02

    def __init__(self, task: BallTask, target: Target):
        self._body, self._frame, self._trials = RigidBody(task.robot), task.robot.frame("plate"), task.trials
        self._camera = MountedCamera(target, HAND_CAMERA, Checkerboard(frame="plate", tiles=TILES, side=2.0 * PLATE[0]))
        assert target.objects is not None
        ball = target.objects[:, 0].copy()
        target.place("ball", AWAY)
        self._eye = BallCamera(calibrate([self._camera.picture()] * FRAMES, HAND_CAMERA.intrinsics))
        target.place("ball", ball[:, :7], ball[:, 7:])

    def look(self, state: State) -> Array:
        seen = np.zeros((self._trials, 1, 13))
        position, rotation = self._body.frame_pose(self._frame, state.position)
        for trial in range(self._trials):
            place = self._eye.place(self._camera.picture(trial))
            seen[trial, 0, :3] = position[trial] + rotation[trial] @ np.array([*place, BALL_RADIUS])
        seen[..., 3] = 1.0
        return seen


class BoxSight:
    """Two depth cameras beside each table, at places of their own, and a filter that follows the box.

    Args:
        task: the box on the table.
        target: its robots.
        seed: of the cameras' places and noise.
    """

    period = 0.1

    def __init__(self, task: BoxTask, target: Target, seed: int):
        self._rng, self._target = np.random.default_rng(np.random.SeedSequence([seed, 23])), target
        self._views = [beside_the_table(self._rng, noise=0.002, dropped=0.05) for _ in range(task.trials)]
        self._filters = [BoxFilter(seed=seed + trial) for trial in range(task.trials)]

    def look(self, state: State) -> Array:
        seen = np.zeros((len(self._filters), 1, 13))
        for trial, (views, found) in enumerate(zip(self._views, self._filters, strict=True)):
            clouds = [depth_cloud(self._target, view, trial, self._rng) for view in views]
            seen[trial, 0, :7] = box_pose(found.see(state.time, np.concatenate(clouds)))
        return seen


class SeenTarget:
    """Robots whose things are reported as cameras see them.

    Args:
        target: the robots.
        sight: the cameras.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, target: Target, sight: Sight):
        self.timestep, self._target, self._sight = target.timestep, target, sight
        self._every, self._reads, self._seen = round(sight.period / target.timestep), 0, np.zeros(0)

    def read(self) -> State:
        """What encoders and cameras say."""
        state = self._target.read()
        if self._reads % self._every == 0:
            self._seen = self._sight.look(state)
        self._reads += 1
        state.objects = self._seen.copy()
        return state

    def write(self, command: Command) -> None:
        """One control period."""
        self._target.write(command)


def through_cameras(task: PolicyTask, target: Target, seed: int) -> SeenTarget:
    """The target as cameras see it; a task without cameras is refused."""
    if isinstance(task, BallTask):
        return SeenTarget(target, BallSight(task, target))
    if isinstance(task, BoxTask):
        return SeenTarget(target, BoxSight(task, target, seed))
    raise RetorqueError(f"the task '{task.name}' has no cameras; leave out --cameras")


def open_eyes(policy: Policy, target: Target, seed: int) -> None:
    """Give a policy that looks for itself its cameras; any other is left as it is.

    Args:
        policy: of the task.
        target: what it looks at.
        seed: of the cameras' places and noise.
    """
    if isinstance(policy, StudentPush):
        policy.eyes = BoxClouds(target, seed)
    elif isinstance(policy, ActPolicy) and policy.network.shape.sees:
        policy.eyes = RayCamera(target, HAND_VIEW)
