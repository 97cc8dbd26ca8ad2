"""Simulated targets: energy, stability, limits, hidden parameters that act as they say."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.command import Command
from retorque.robots.robot import Frame, Robot
from retorque.robots.state import Base
from retorque.simulate.effects import effect
from retorque.simulate.sensors import SensorSettings
from retorque.simulate.servo import Servo
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
            target.write(Command(torque=np.zeros((2, robot.n))))
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
        target.write(Command(torque=stiffness * (goal - q) - damping * qd + body.gravity(q)))
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
    target.push(external)
    target.write(Command(torque=torque))
    for trial, inertial in enumerate(quiet.total_inertial(robot)):
        body = RigidBody(robot, inertial, quiet.armature[trial])
        expected = body.forward_dynamics(q[trial], qd[trial], torque[trial] + external[trial])
        np.testing.assert_allclose((target.velocity[trial] - qd[trial]) / 1e-5, expected, rtol=1e-9, atol=1e-9)


def test_commands_are_clipped_at_the_torque_limits_and_reported_so() -> None:
    robot = Robot.load("panda")
    target = Target(robot, Parameters.ideal(robot, 1), threads=1)
    target.write(Command(torque=np.full((1, robot.n), 1e6)))
    state = target.read()
    np.testing.assert_array_equal(state.torque[0], robot.torque_limit)


def test_a_payload_can_be_picked_up_while_running() -> None:
    robot = Robot.load("panda")
    target = Target(robot, Parameters.ideal(robot, 1), threads=1)
    hold = RigidBody(robot).gravity(robot.home)[None]
    for _ in range(100):
        target.write(Command(torque=hold))
    assert np.abs(target.position - robot.home).max() < 1e-6
    target.set_parameters(target.parameters.with_payload(2.0))
    for _ in range(100):
        target.write(Command(torque=hold))
    assert np.abs(target.position - robot.home).max() > 1e-3


def test_one_robot_without_a_trial_axis_is_the_row_of_a_batch() -> None:
    robot = Robot.load("panda")
    profile = profile_of(robot)
    hidden, sensors = Parameters.sample(robot, profile, 1, 1000), SensorSettings.sample(profile, 1, 1000)
    one = SensorSettings(**{f.name: getattr(sensors, f.name)[0] for f in fields(sensors)})
    batch = Target(robot, hidden, sensors=sensors, effects=[effect("lugre"), effect("delay")], seed=3, threads=1)
    alone = Target(robot, hidden[0], sensors=one, effects=[effect("lugre"), effect("delay")], seed=3, threads=1)
    rng = np.random.default_rng(1000)
    for _ in range(50):
        torque = rng.normal(0.0, 10.0, robot.n)
        batch.write(Command(torque=torque[None]))
        alone.write(Command(torque=torque))
        rows, row = batch.read(), alone.read()
        for key in ("position", "velocity", "torque"):
            assert getattr(row, key).shape == (robot.n,)
            np.testing.assert_array_equal(getattr(rows, key)[0], getattr(row, key))
    assert alone.diverged.shape == () and not alone.diverged


def test_a_free_base_falls_and_turns_in_world_axes() -> None:
    robot = Robot.load("g1")
    target = Target(robot, Parameters.ideal(robot, 2), threads=1)
    half = np.sqrt(0.5)
    spin = np.array([0.0, 0.0, 0.0, 0.3, 0.0, 0.0])  # about the world's x, with the body turned about z
    pose = np.array([0.0, 0.0, 5.0, half, 0.0, 0.0, half])
    state = target.reset(robot.home, base=Base(pose, spin))
    assert state.base is not None and state.base.pose.shape == (2, 7)
    np.testing.assert_allclose(state.base.twist, np.tile(spin, (2, 1)), atol=1e-12)
    target.write(Command(torque=np.zeros((2, robot.n))))
    state = target.read()
    assert state.base is not None
    moved = np.array([0.3e-3 / 2, 0.0])  # half the angle about the world's x is carried by x and y of the quaternion
    np.testing.assert_allclose(state.base.pose[0, 4:6], [half * moved[0], -half * moved[0]], atol=2e-6)
    for _ in range(100):
        target.write(Command(torque=np.zeros((2, robot.n))))
    state = target.read()
    assert state.base is not None
    mass = sum(link.mass for link in robot.moving_links)
    assert mass > 10.0 and state.base.pose[0, 2] < 5.0 - 0.03


def test_a_diverging_trial_stops_and_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    robot = Robot.load("panda")
    free = replace(Parameters.ideal(robot, 3))
    target, calm = Target(robot, free, threads=2), Target(robot, free, threads=2)
    rng = np.random.default_rng(1000)
    for tick in range(40):
        torque = rng.normal(0.0, 5.0, (3, robot.n))
        wild = torque.copy()
        if tick == 10:
            wild[1] = np.nan
        if tick == 20:
            target.push(np.array([0.0, 0.0, 1.0])[:, None] * 1e9)
        before = target.position.copy()
        target.write(Command(torque=wild))
        calm.write(Command(torque=torque))
        assert target.diverged.tolist() == [False, tick >= 10, tick >= 20]
        np.testing.assert_array_equal(target.position[0], calm.position[0])
        np.testing.assert_array_equal(target.position[target.diverged], before[target.diverged])
        np.testing.assert_array_equal(target.velocity[target.diverged], 0.0)
        state = target.read()
        assert np.all(np.isfinite(state.position)) and np.all(np.isfinite(state.velocity))
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr().err == ""
    target.reset(robot.home)
    target.write(Command(torque=np.zeros((3, robot.n))))
    assert not target.diverged.any()


def test_passive_joints_swing_as_a_pendulum_does(cart_pole: Robot) -> None:
    """A heavy cart held in place leaves a plain pendulum: the period follows from gravity and length alone."""
    robot = cart_pole
    target = Target(robot, Parameters.ideal(robot), timestep=1e-4, threads=1)
    target.reset(np.array([0.0, np.pi - 0.05]))
    angle, cart = [], []
    for _ in range(25000):
        x, v = target.position[0], target.velocity[0]
        target.write(Command(torque=np.array([-1e6 * x - 2e3 * v, 50.0])))
        angle.append(float(target.position[1]) - np.pi)
        cart.append(float(x))
    crossings = np.flatnonzero(np.diff(np.sign(angle)) != 0)
    period = 2.0 * np.mean(np.diff(crossings)) * 1e-4
    assert np.max(np.abs(cart)) < 1e-3
    assert period == pytest.approx(2.0 * np.pi * np.sqrt(1.0 / 9.81), rel=2e-3)


def test_a_cart_pole_falls_as_its_equations_say(cart_pole: Robot) -> None:
    """Point mass m on a rod of length l on a cart M: the textbook's accelerations, integrated beside."""
    robot = cart_pole
    target = Target(robot, Parameters.ideal(robot), timestep=1e-4, threads=1)
    target.reset(np.array([0.0, 0.1]))
    m, big, g = 0.5, 1.0, 9.81
    x, a, xd, ad = 0.0, 0.1, 0.0, 0.0
    for _ in range(5000):
        target.write(Command(torque=np.array([-2.0, 0.0])))
        s, c = np.sin(a), np.cos(a)
        xdd = (-2.0 + m * ad**2 * s - m * g * s * c) / (big + m * s**2)
        add = g * s - xdd * c
        xd, ad = xd + 1e-4 * xdd, ad + 1e-4 * add
        x, a = x + 1e-4 * xd, a + 1e-4 * ad
    np.testing.assert_allclose(target.position, [x, a], rtol=1e-4)
    assert abs(target.position[1]) > 0.2


def test_joint_limits_act_only_where_asked() -> None:
    robot = Robot.load("panda")
    body = RigidBody(robot)
    for limits in (False, True):
        target = Target(robot, Parameters.ideal(robot, 1), joint_limits=limits, threads=1)
        for _ in range(1500):
            push = np.zeros(7)
            push[1] = 15.0
            target.write(Command(torque=body.gravity(target.position) + push - 1.0 * target.velocity))
        beyond = float(target.position[0, 1] - robot.upper[1])
        assert beyond < 0.02 if limits else beyond > 0.1


def test_servos_hold_a_position_within_their_torque() -> None:
    robot = Robot.load("arx_x5")
    servo = Servo(stiffness=np.full(robot.n, 60.0), damping=np.full(robot.n, 3.0))
    target = Target(robot, Parameters.ideal(robot, 2), servo=servo, threads=1)
    assert target.takes == "position"
    goal = robot.home + 0.1
    for _ in range(3000):
        target.write(Command(position=goal))
    state = target.read()
    sag = RigidBody(robot).gravity(target.position) / 60.0
    np.testing.assert_allclose(goal - target.position, sag, atol=1e-3)
    np.testing.assert_allclose(state.torque, 60.0 * sag, atol=0.05)
    for _ in range(3):
        target.write(Command(position=goal + 50.0))
    assert np.all(np.abs(target.read().torque) <= robot.torque_limit)
    with pytest.raises(RetorqueError, match="takes positions"):
        target.write(Command(torque=np.zeros(robot.n)))


def test_stiff_servos_on_light_joints_are_stable() -> None:
    robot = Robot.load("leap_hand")
    servo = Servo(stiffness=np.full(robot.n, 6.0), damping=np.full(robot.n, 1.0))  # explicit damping would explode
    target = Target(robot, Parameters.ideal(robot, 1), servo=servo, threads=1)
    for _ in range(2000):
        target.write(Command(position=robot.home + 0.2))
    assert not target.diverged.any() and np.abs(target.velocity).max() < 1e-3


def test_a_force_on_a_frame_is_its_jacobian_s_torque() -> None:
    robot = Robot.load("panda")
    body, force, moment = RigidBody(robot), np.array([3.0, -4.0, 5.0]), np.array([0.2, 0.1, -0.3])
    target = Target(robot, Parameters.ideal(robot, 2), timestep=1e-5, threads=1)
    target.reset(robot.home)
    target.push_frame("end_effector", force, moment)
    target.write(Command(torque=np.tile(body.gravity(robot.home), (2, 1))))
    torque = body.jacobian(robot.end_effector, robot.home).T @ np.concatenate([force, moment])
    expected = np.linalg.solve(body.mass_matrix(robot.home), torque)
    np.testing.assert_allclose(target.velocity / 1e-5, np.tile(expected, (2, 1)), rtol=1e-6)


def test_parameters_with_two_leading_axes_are_refused() -> None:
    robot = Robot.load("panda")
    with pytest.raises(RetorqueError, match="leading axis"):
        Target(robot, Parameters.ideal(robot, (2, 3)))
