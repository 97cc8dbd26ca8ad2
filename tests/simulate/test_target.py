"""Simulated targets: energy, stability, limits, hidden parameters that act as they say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.robot import Frame, Robot
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")


def _energy(robot: Robot, body: RigidBody, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Kinetic plus potential energy of each trial [J]; potential by the height of each link's centre."""
    kinetic = 0.5 * np.einsum("ti,tij,tj->t", qd, body.mass_matrix(q), qd)
    height = sum(
        link.mass * body.frame_pose(Frame(link=link.name, position=link.centre), q)[0][:, 2]
        for link in robot.moving_links
    )
    return kinetic + 9.81 * height


@pytest.mark.parametrize("name", ("panda", "z1"))
def test_an_unforced_frictionless_arm_keeps_its_energy(name: str) -> None:
    source = Robot.load(name)
    free = tuple(replace(x, joint=x.joint and replace(x.joint, lower=-np.inf, upper=np.inf)) for x in source.links)
    robot = source.with_links(free)
    body = RigidBody(robot)
    drift = []
    for timestep in (2e-4, 1e-4):
        target = Target(robot, Parameters.ideal(robot, 2), timestep=timestep, threads=1)
        target.reset(robot.home, np.random.default_rng(0).normal(0.0, 0.5, (2, robot.n)))
        start = _energy(robot, body, target.position, target.velocity)
        most, kinetic = np.zeros(2), np.zeros(2)
        for tick in range(round(0.5 / timestep)):
            target.step(np.zeros((2, robot.n)))
            if tick % 50 == 0:
                now = _energy(robot, body, target.position, target.velocity)
                most = np.maximum(most, np.abs(now - start))
                moving = 0.5 * np.einsum(
                    "ti,tij,tj->t", target.velocity, body.mass_matrix(target.position), target.velocity
                )
                kinetic = np.maximum(kinetic, moving)
        drift.append(np.max(most / kinetic))
    assert drift[1] < 1e-2
    assert drift[1] < 0.6 * drift[0]  # what is left is the integrator's, which is of first order


@pytest.mark.parametrize("name", SEVEN)
def test_the_steepest_friction_stays_bounded_held_and_moved(name: str) -> None:
    robot = Robot.load(name)
    profile = profile_of(robot)
    steepest = Selection(robot, DRAWN, profile=profile)
    high = steepest.apply(steepest.upper)
    ideal = Parameters.ideal(robot)
    worst = replace(
        ideal,
        armature=profile.armature_min,  # the lightest rotor is the hardest to integrate
        friction_amplitude=high.friction_amplitude,
        friction_slope=high.friction_slope,
        viscous=high.viscous,
        dead_zone=high.dead_zone,
    )
    p = Parameters.unflatten(robot, np.repeat(worst.flatten()[None], 2, axis=0))
    target = Target(robot, p, threads=1)
    target.reset(robot.home)
    body, stiffness = RigidBody(robot), profile.tracking_stiffness
    damping = critical_damping(robot, stiffness)
    fastest = 0.0
    for tick in range(2000):
        goal = np.stack([robot.home, robot.home + 0.3 * np.sin(2.0 * np.pi * tick * 1e-3) * np.ones(robot.n)])
        q, qd = target.position.copy(), target.velocity.copy()
        target.step(stiffness * (goal - q) - damping * qd + body.gravity(q))
        fastest = max(fastest, float(np.abs(target.velocity).max()))
    assert np.all(np.isfinite(target.position))
    assert fastest < 10.0
    assert np.abs(target.velocity[0]).max() < 0.05  # the one that was held does not buzz
    assert np.abs(target.position - robot.home).max() < 1.0


def test_one_step_accelerates_as_the_hidden_inertias_say() -> None:
    robot = Robot.load("panda")
    p = Parameters.sample(robot, profile_of(robot), 6, 0)
    quiet = replace(Parameters.ideal(robot, 6), inertial=p.inertial)
    quiet = replace(quiet, armature=p.armature, payload=p.payload)
    target = Target(robot, quiet, timestep=1e-5, threads=1)
    rng = np.random.default_rng(1)
    q, qd, torque, external = (rng.normal(0.0, s, (6, robot.n)) for s in (0.1, 0.5, 5.0, 2.0))
    q, torque = q + robot.home, np.clip(torque, -robot.torque_limit, robot.torque_limit)
    target.reset(q, qd)
    target.step(torque, external)
    for trial, inertial in enumerate(quiet.total_inertial(robot)):
        body = RigidBody(robot, inertial, quiet.armature[trial])
        expected = body.forward_dynamics(q[trial], qd[trial], torque[trial] + external[trial])
        np.testing.assert_allclose((target.velocity[trial] - qd[trial]) / 1e-5, expected, rtol=1e-9, atol=1e-9)


def test_commands_are_clipped_at_the_torque_limits_and_reported_so() -> None:
    robot = Robot.load("panda")
    target = Target(robot, Parameters.ideal(robot, 1), threads=1)
    state = target.step(np.full((1, robot.n), 1e6))
    np.testing.assert_array_equal(state.torque[0], robot.torque_limit)


def test_a_payload_can_be_picked_up_while_running() -> None:
    robot = Robot.load("panda")
    target = Target(robot, Parameters.ideal(robot, 1), threads=1)
    hold = RigidBody(robot).gravity(robot.home)[None]
    for _ in range(100):
        target.step(hold)
    assert np.abs(target.position - robot.home).max() < 1e-6
    target.set_parameters(target.parameters.with_payload(2.0))
    for _ in range(100):
        target.step(hold)
    assert np.abs(target.position - robot.home).max() > 1e-3


def test_a_free_base_and_loose_parameters_are_refused() -> None:
    with pytest.raises(RetorqueError, match="free base"):
        Target(Robot.load("g1"), Parameters.ideal(Robot.load("g1"), 1))
    with pytest.raises(RetorqueError, match="leading axis"):
        Target(Robot.load("panda"), Parameters.ideal(Robot.load("panda")))
