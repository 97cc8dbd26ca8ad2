"""The public evaluator's world: its numbers, whole periods, shrunk trials, gravity only, no torque limit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from retorque.bench.tracking import Settings, run
from retorque.control.action import JointAction
from retorque.physics.inertia import robot_inertia
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.public_tracking import PRESETS, PublicTrackingTask, public_robot
from retorque.tasks.tracking_task import TrackingSettings
from retorque.work.errors import RetorqueError

SHARED = Path(__file__).parents[3] / "shared" / "robots" / "public_tracking.json"


@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/robots/public_tracking.json")
def test_presets_are_those_of_the_public_code() -> None:
    told = json.loads(SHARED.read_text())["robots"]
    assert set(told) == set(PRESETS)
    for name, preset in PRESETS.items():
        np.testing.assert_allclose(preset.home, told[name]["home"])
        np.testing.assert_allclose(preset.stiffness, told[name]["kp"])
        np.testing.assert_allclose(preset.damping, told[name]["kd"])
        np.testing.assert_allclose(preset.amplitude, told[name]["amplitude_deg"])
        np.testing.assert_allclose(np.full(len(preset.home), preset.armature), told[name]["ideal_armature"])


@pytest.mark.parametrize("name", PRESETS)
def test_every_robot_has_its_home_rotors_and_whole_periods(name: str) -> None:
    task = PublicTrackingTask(Robot.load(name), TrackingSettings(trials=40, seed=1))
    np.testing.assert_allclose(task.robot.home, PRESETS[name].home)
    np.testing.assert_allclose(task.robot.armature, PRESETS[name].armature)
    assert np.all(task.reference.cycles == np.round(task.reference.cycles))
    assert task.reference.cycles.min() >= 3 and task.reference.cycles.max() <= 7
    ideal = robot_inertia(task.robot)
    changed = np.abs(task.parameters.inertial - ideal)[:, :, 0].max(axis=1) / ideal[:, 0].max()
    shrunk = changed < 0.003
    assert 0.15 < shrunk.mean() < 0.65
    assert np.all(task.parameters.payload_mass[shrunk] < 0.02 * 1.5 + 1e-9)
    part = task.part(slice(3, 5))
    assert type(part) is PublicTrackingTask and part.parameters.trials == (2,)


def test_the_controller_adds_gravity_only_and_guards_limits_and_speeds() -> None:
    robot = public_robot(Robot.load("panda"))
    task = PublicTrackingTask(Robot.load("panda"), TrackingSettings(trials=1))
    q, v = robot.home[None], np.full((1, 7), 2.0)
    still = JointAction(q, v)
    torque = task.controller().command(State(0.0, q, v, v), still).torque
    np.testing.assert_allclose(torque, RigidBody(robot).gravity(q))
    fast = np.full((1, 7), 5.0)
    guarded = task.controller().command(State(0.0, q, fast, v), JointAction(q, fast)).torque
    np.testing.assert_allclose(guarded - torque, -10.0 * np.array([PRESETS["panda"].damping]))


def test_no_torque_is_limited_on_the_way() -> None:
    task = PublicTrackingTask(Robot.load("z1"), TrackingSettings(trials=1))
    target = task.target(threads=1)
    much = 2.0 * task.robot.torque_limit[None]
    target.write(Command(torque=much))
    np.testing.assert_allclose(target.command, much)


def test_the_bench_runs_it_and_refuses_other_robots() -> None:
    report = run(Settings(robots=("z1",), adapters=("direct",), trials=2, duration=2.0, protocol="public", workers=1))
    assert report.rows[0].mean > 0.5 and "public" in report.notes
    with pytest.raises(RetorqueError, match="public"):
        run(Settings(robots=("ur10e",), adapters=("direct",), trials=1, protocol="public"))
