"""Flipping a cube onto its next face with a gripper that has to be closed for it (TAM, Table 1 and E.2)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from retorque.control.joint_impedance import JointImpedance
from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.simulate.cameras.mounted_camera import Mounting
from retorque.simulate.scene import Box, Floor, Scene
from retorque.simulate.target import Target
from retorque.tasks.flip.gripper import with_gripper
from retorque.tasks.policy_task import PolicyTask, Referee
from retorque.tasks.tracking_task import gains
from retorque.work.array import Array

EDGE, MASS, FRICTION = 0.06, 0.3, 1.0
"""Of the cube; not published [m, kg]."""
PLACE = np.array([[0.42, 0.50], [-0.06, 0.06]])
"""Where it stands: forward and left of the robot's base [m]."""
YAW = np.deg2rad(10.0)
"""Largest turn about the vertical [rad]."""
DOWN = 0.9
"""Least share of the desired face's normal that points down."""
HAND_VIEW = Mounting(
    frame="end_effector", eye=(0.0, 0.13, -0.08), at=(0.0, 0.024, 0.12), up=(0.0, 1.0, 0.0), width=64, height=48
)
"""The camera of a policy that sees: before the hand, it looks down and back at the fingertips."""


class FlipTask(PolicyTask):
    """Cubes on the ground, each with the face to the robot's far side that is to come to the bottom.

    Args:
        robot: an arm whose gripper points down at home; it begins open.
        trials: how many.
        seed: of the cubes' places.
    """

    name, metric, unit, duration = "flip", "success", "share", 6.0

    def __init__(self, robot: Robot, trials: int, seed: int):
        self.robot, self._fingers = with_gripper(robot)
        self.trials = trials
        rng = np.random.default_rng(np.random.SeedSequence([seed, 16]))
        self.place = rng.uniform(PLACE[:, 0], PLACE[:, 1], (trials, 2))
        """(trials, 2) [m]"""
        self.yaw = rng.uniform(-YAW, YAW, trials)
        """(trials,) [rad]"""

    def part(self, rows: slice) -> FlipTask:
        other = object.__new__(FlipTask)
        other.robot, other._fingers = self.robot, self._fingers
        other.place, other.yaw = self.place[rows], self.yaw[rows]
        other.trials = len(other.yaw)
        return other

    def scene(self) -> Scene:
        half = EDGE / 2.0
        cube = Box(name="cube", size=(half, half, half), mass=MASS, friction=FRICTION)
        return Scene(objects=(Floor(friction=FRICTION), cube, *self._fingers))

    def controller(self) -> JointImpedance:
        """The soft gains of D.1."""
        return JointImpedance(self.robot, *gains(self.robot, profile_of(self.robot)))

    def settle(self, target: Target) -> None:
        target.reset(np.broadcast_to(self.robot.home, (self.trials, self.robot.n)))
        turn = Rotation.from_euler("z", self.yaw[:, None]).as_quat(scalar_first=True)
        height = np.full((self.trials, 1), EDGE / 2.0)
        target.place("cube", np.concatenate([self.place, height, turn], axis=-1))

    def referee(self) -> FlipReferee:
        return FlipReferee(self.trials)


class FlipReferee(Referee):
    """Whether the face that was on the far side is at the bottom in the end."""

    def __init__(self, trials: int):
        self._down = np.zeros(trials, dtype=bool)

    def look(self, target: Target, tick: int) -> None:
        if tick % 20:
            return
        assert target.objects is not None
        self._down = far_face_down(target.objects[:, 0])

    def scores(self) -> Array:
        return self._down.astype(float)


def far_face_down(cube: Array) -> Array:
    """(...) whether the cube's +x face points down, from its pose and twist (..., 13)."""
    w, x, y, z = np.moveaxis(cube[..., 3:7], -1, 0)
    return -(2.0 * (x * z - w * y)) > DOWN  # the vertical component of the turned x axis is 2 (x z - w y)
