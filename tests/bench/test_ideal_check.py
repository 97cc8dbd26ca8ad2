"""A bench whose ideal robot does not cope says so instead of printing figures, and default gains are stable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.bench.ideal_check import check_ideal
from retorque.bench.tracking import Settings, ideal_motion, run
from retorque.loop.trace import Trace
from retorque.physics.default_profile import SAMPLING, critical_damping, profile_of
from retorque.physics.rigid_body import RigidBody
from retorque.robots import names
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, gains
from retorque.work.errors import RetorqueError

FIXED = [name for name in names() if not Robot.load(name).floating]
TIME = np.linspace(0.01, 4.0, 400)


def radius(robot: Robot, stiffness: np.ndarray, damping: np.ndarray, seed: int = 7) -> float:
    """Spectral radius of the sampled closed loop of the linearised robot, at the worst of many poses of the motion."""
    rng, h, n = np.random.default_rng(seed), SAMPLING, robot.n
    poses = robot.home + profile_of(robot).tracking_amplitude * rng.uniform(-1.0, 1.0, (100, n))
    worst = 0.0
    for inverse in np.linalg.inv(RigidBody(robot).mass_matrix(poses)):
        faster = np.hstack([-h * inverse * stiffness, np.eye(n) - h * inverse * damping])
        step = np.vstack([np.hstack([np.eye(n), np.zeros((n, n))]) + h * faster, faster])
        worst = max(worst, float(np.max(np.abs(np.linalg.eigvals(step)))))
    return worst


@pytest.mark.parametrize("name", FIXED)
def test_gains_are_stable_all_over_the_motion(name: str) -> None:
    robot = Robot.load(name)
    assert radius(robot, *gains(robot, profile_of(robot))) < 1.0


def test_damping_for_the_home_pose_alone_would_shake_the_robot() -> None:
    robot = Robot.load("xmate3")
    stiffness = profile_of(robot).tracking_stiffness
    home = 2.0 * np.sqrt(stiffness * np.diagonal(RigidBody(robot).mass_matrix(robot.home)))
    assert radius(robot, stiffness, home) > 1.2
    damping = critical_damping(robot, stiffness)
    assert np.all(damping <= home) and radius(robot, stiffness, damping) < 1.0


def test_where_the_home_pose_is_stable_nothing_is_cut() -> None:
    robot = Robot.load("iiwa14")
    stiffness = profile_of(robot).tracking_stiffness
    home = 2.0 * np.sqrt(stiffness * np.diagonal(RigidBody(robot).mass_matrix(robot.home)))
    np.testing.assert_array_equal(critical_damping(robot, stiffness), home)
    rows = np.stack([stiffness, 4.0 * stiffness])
    np.testing.assert_allclose(critical_damping(robot, rows)[0], home)


def test_an_unknown_robot_with_light_links_gets_stable_gains(tmp_path: Path) -> None:
    """A heavy arm with a wrist of a few grams, and no rotor inertia in the file."""
    path = tmp_path / "light.xml"
    path.write_text(
        """<mujoco><worldbody><body name="upper"><joint name="shoulder" axis="0 1 0"/>
        <inertial pos="0 0 -0.4" mass="8" diaginertia="0.2 0.2 0.02"/>
        <body name="lower" pos="0 0 -0.8"><joint name="elbow" axis="0 1 0"/>
        <inertial pos="0 0 -0.3" mass="4" diaginertia="0.1 0.1 0.01"/>
        <body name="tip" pos="0 0 -0.6"><joint name="wrist" axis="0 0 1"/>
        <inertial pos="0 0 0" mass="0.02" diaginertia="1e-6 1e-6 1e-6"/></body></body></body></worldbody></mujoco>"""
    )
    robot = Robot.load(path)
    assert radius(robot, *gains(robot, profile_of(robot))) < 1.0
    row = run(Settings(robots=(str(path),), adapters=("direct",), trials=2, duration=1.0, workers=1)).rows[0]
    assert np.isfinite(row.mean)


def test_a_bench_whose_ideal_robot_saturates_or_shakes_is_refused() -> None:
    robot = Robot.load("xmate3")
    profile = profile_of(robot)
    home = 2.0 * np.sqrt(profile.tracking_stiffness * np.diagonal(RigidBody(robot).mass_matrix(robot.home)))
    for much, said in ((8.0, "% of a trial at the torque limit"), (2.8, "oscillates from tick to tick")):
        shaky = replace(robot, profile=replace(profile, tracking_damping=much * home))
        with pytest.raises(RetorqueError, match=rf"the ideal 'xmate3'.*{said}.*no figure would mean anything"):
            ideal_motion(TrackingTask(shaky, TrackingSettings(trials=2, duration=2.0)))


def test_what_is_said_of_each_way_to_fail() -> None:
    robot = Robot.load("z1")
    still = np.zeros((len(TIME), 2, robot.n))
    slow = 0.1 * np.sin(TIME)[:, None, None] + still
    calm = Trace(TIME, slow, still)
    fine = np.zeros(2, dtype=bool)
    check_ideal(robot, calm, fine, slow)
    with pytest.raises(RetorqueError, match="diverges"):
        check_ideal(robot, calm, np.array([False, True]), slow)
    torque = still.copy()
    torque[: len(TIME) // 2, 1, 3] = -robot.torque_limit[3]
    with pytest.raises(RetorqueError, match=f"50 % of a trial at the torque limit of {robot.joint_names[3]}"):
        check_ideal(robot, Trace(TIME, slow, torque), fine, slow)
    shaken = slow.copy()
    shaken[:, 0, 2] += 0.02 * np.sin(40.0 * TIME)
    with pytest.raises(RetorqueError, match=f"oscillates .* at {robot.joint_names[2]}"):
        check_ideal(robot, Trace(TIME, shaken, still), fine, slow)
    check_ideal(robot, Trace(TIME, shaken, still), fine)  # where it is pushed, no reference says how it should move
