"""A Panda that holds a plate with a ball on it: geometry, scene and the ball's motion in the plate's frame."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Frame, Robot
from retorque.robots.rotation import to_quaternion
from retorque.simulate.scene import Ball, Board, Scene
from retorque.tasks.policy_task import with_tool
from retorque.work.array import Array

PLATE = (0.09, 0.09, 0.002)
"""Half sizes: 0.18 m square (E.3) [m]."""
PLATE_MASS = 0.15
"""Not published [kg]."""
BALL_RADIUS, BALL_MASS = 0.0225, 0.05
"""0.045 m across (E.3); the mass is not published [m, kg]."""
ROLLING_FRICTION = 5e-5
"""[m]"""
HOME = (0.0, -0.3, 0.0, -2.0, 0.0, 1.7 + np.pi / 2.0, np.pi / 4.0)
"""The hand points forward and holds the plate by its edge, level [rad]."""
GRAVITY = 9.81
ROLLS = 5.0 / 7.0
"""Share of an acceleration along the plate that a rolling solid ball takes up."""


def plate_frame(robot: Robot) -> Frame:
    """The middle of the plate's upper face in the hand's link: x away from the hand, z up."""
    hand = robot.end_effector
    body = RigidBody(robot)
    position, rotation = body.frame_pose(hand, np.zeros(robot.n))
    link_position, link_rotation = body.frame_pose(Frame(link=hand.link), np.zeros(robot.n))
    turn = link_rotation.T @ rotation @ np.array([[0.0, 0.0, 1.0], [0.0, -1.0, 0.0], [1.0, 0.0, 0.0]])
    centre = link_rotation.T @ (position - link_position + rotation @ np.array([PLATE[2], 0.0, PLATE[0] - 0.005]))
    x, y, z = (float(v) for v in centre)
    qw, qx, qy, qz = (float(v) for v in to_quaternion(turn))
    return Frame(link=hand.link, position=(x, y, z), quaternion=(qw, qx, qy, qz))


def plate_robot(robot: Robot) -> Robot:
    """The robot with the plate in its hand, the plate's frame under the name `plate`."""
    frame = plate_frame(robot)
    held = with_tool(robot, frame, PLATE_MASS, np.array(PLATE))
    return replace(held, home=np.array(HOME), frames={**robot.frames, "plate": frame})


def ball_scene() -> Scene:
    """A plate without a mass of its own (it is the robot's), and the ball."""
    plate = Board(name="plate", mount="plate", position=(0.0, 0.0, -PLATE[2]), size=PLATE)
    ball = Ball(radius=BALL_RADIUS, mass=BALL_MASS, rolling_friction=ROLLING_FRICTION, torsional_friction=1e-3)
    return Scene(objects=(plate, ball))


def on_plate(body: RigidBody, frame: Frame, q: Array, ball: Array) -> Array:
    """The ball's centre (..., 3) in the plate's frame [m], from joint positions (..., n) and its place in the world."""
    position, rotation = body.frame_pose(frame, q)
    return np.matmul(np.swapaxes(rotation, -1, -2), (ball - position)[..., None])[..., 0]


def linear_model(robot: Robot) -> tuple[Array, Array]:
    """ẋ = A x + B u at home: x is joint error and velocity, the ball's place and velocity; u joint accelerations.

    The plate's frame accelerates by a and tilts by θ. The ball rolls with -5/7 (a + g ẑ x θ) + r ẑ x θ̈ along it: while
    the plate turns under it, its own inertia keeps it where it is.
    """
    n = robot.n
    body, frame = RigidBody(robot), robot.frame("plate")
    rotation = body.frame_pose(frame, robot.home)[1]
    jacobian = body.jacobian(frame, robot.home)
    up = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])  # ẑ x
    a = np.zeros((2 * n + 4, 2 * n + 4))
    b = np.zeros((2 * n + 4, n))
    a[:n, n : 2 * n] = np.eye(n)
    b[n : 2 * n] = np.eye(n)
    a[2 * n : 2 * n + 2, 2 * n + 2 :] = np.eye(2)
    a[2 * n + 2 :, :n] = -ROLLS * GRAVITY * (rotation.T @ up @ jacobian[3:])[:2]
    b[2 * n + 2 :] = (rotation.T @ (-ROLLS * jacobian[:3] + BALL_RADIUS * up @ jacobian[3:]))[:2]
    return a, b
