"""Robots stepped by the core move as MuJoCo's do, also when their parameters change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.runtime.compiled.plant import CompiledBody, step_in_c
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask


def test_steps_are_mujocos(core: Path, monkeypatch) -> None:
    monkeypatch.setenv("RETORQUE_CACHE", str(core.parent))
    robot = Robot.load("panda")
    task = TrackingTask(robot, TrackingSettings(trials=3, duration=1.0))
    plain, fast = task.target(1), task.target(1)
    assert step_in_c(fast)
    rng = np.random.default_rng(0)
    for tick in range(60):
        told = Command(torque=0.1 * robot.torque_limit * rng.normal(size=(3, robot.n)))
        for target in (plain, fast):
            if tick == 30:
                target.set_parameters(target.parameters.with_payload(target.parameters.payload_mass + 0.5))
            target.write(told)
    assert np.allclose(fast.position, plain.position, atol=1e-10)
    assert np.allclose(fast.velocity, plain.velocity, atol=1e-9)


def test_bias_is_pinocchios(core: Path) -> None:
    robot = Robot.load("panda")
    q, qd = np.random.default_rng(0).normal(size=(2, 4, robot.n))
    assert CompiledBody(robot, core).bias(q, qd) == pytest.approx(RigidBody(robot).bias(q, qd), abs=1e-10)
