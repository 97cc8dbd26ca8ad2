"""The controller of each method that a contact task compares, on the same robot, sites and servos."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.admittance import Admittance, AdmittanceSettings
from retorque.control.comply.compliance import Compliance, PositionOnly, Posture
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.kinematics_choice import kinematics_class
from retorque.control.comply.servo_feed_forward import ServoFeedForward
from retorque.control.comply.site_kinematics import KinematicsSettings
from retorque.control.controller import Controller
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors
from retorque.robots.robot import Robot
from retorque.sense.external_torque import QuasiStatic, TorqueSettings
from retorque.sense.momentum import Momentum
from retorque.sense.public_estimator import PublicCodeEstimator
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.tasks.embodiments import Embodiment
from retorque.work.array import Array
from retorque.work.errors import unknown

METHODS = ("retorque", "public-code", "without f_ext", "position")
"""retorque: ours; public-code: its estimate in the same controller; position: inverse kinematics only."""
SPEED = 0.1
"""Largest speed of a reference in contact tasks [m/s]."""


def method_controller(
    method: str,
    robot: Robot,
    sites: tuple[str, ...],
    body: Embodiment,
    trials: int,
    prior: WrenchPrior,
    posture: Posture | None = None,
    kinematics: str = "compiled",
) -> Controller[ComplianceAction]:
    """The controller of a method.

    Args:
        method: one of `METHODS`.
        robot: with the sites among its frames.
        sites: frames that touch the world.
        body: servo gains, noise and weights.
        trials: robots served at once.
        prior: of the wrenches, for our own estimate.
        posture: of the joints that no site owns.
        kinematics: one of `KINEMATICS`.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    frames = tuple(robot.frame(name) for name in sites)
    tree = CompiledTree(robot, frames, trials)
    used = own_joints(tree)
    at_all: Array = np.asarray(used.any(axis=0))
    stiffness, _ = body.gains(robot)
    weights = KinematicsSettings(rotation=body.turn_weight)
    inverse = kinematics_class(kinematics)(robot, frames, used, trials, settings=weights)
    ahead = ServoFeedForward(JointMotors.of(robot), stiffness, used, trials)
    if method == "position":
        return PositionOnly(tree, inverse, posture, feed_forward=ahead)
    if method == "public-code":
        published = TorqueSettings(friction=False, smoothing=body.smoothing)
        torque = QuasiStatic(robot, trials, settings=published, used=at_all)
        source: WrenchEstimator = PublicCodeEstimator(robot, sites, torque, body.prior, trials=trials)
    else:
        own = TorqueSettings(noise=body.noise)
        torque = Momentum(robot, trials, settings=own, used=at_all, bandwidth=body.bandwidth)
        source = WrenchEstimator(robot, sites, torque, prior, body.estimator(), trials)
    admittance = Admittance(len(frames), trials, settings=AdmittanceSettings(speed=SPEED))
    blind = method == "without f_ext"
    return Compliance(source, admittance, inverse, posture, feed_forward=ahead, blind=blind)
