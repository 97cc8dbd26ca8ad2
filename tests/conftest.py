"""Slow tests run only when asked for (`RETORQUE_SLOW=1`); recorded data beside the checkout; motion of robots whose
true parameters are known."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck
from hypothesis import settings as property_settings

from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.inertia import from_pseudo_inertia, pseudo_inertia, robot_inertia
from retorque.physics.presliding import slip
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

SLOW = os.environ.get("RETORQUE_SLOW") == "1"

property_settings.register_profile(
    "retorque", deadline=None, derandomize=not SLOW, suppress_health_check=[HealthCheck.too_slow]
)
property_settings.load_profile("retorque")
"""The same examples in every run, however busy the machine is; the long versions of the tests look for new ones."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if SLOW:
        return
    skip = pytest.mark.skip(reason="slow; RETORQUE_SLOW=1 runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@dataclass(frozen=True)
class Truth:
    """A robot that differs from its card, and a motion of it."""

    robot: Robot
    friction: Friction
    vector: np.ndarray
    motion: Motion


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of source models and recorded logs beside the checkout."""
    folder = Path(__file__).resolve().parents[1].parent / "shared"
    if not (folder / "data").is_dir():
        pytest.skip("shared data is not beside the checkout: ../shared is needed for recorded logs and source models")
    return folder


def path(robot: Robot, seconds: float, rate: float, seed: int) -> tuple[np.ndarray, ...]:
    """Times and a sum of sines with its exact derivatives."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    q = np.zeros((len(time), robot.n)) + robot.home
    qd, qdd = np.zeros_like(q), np.zeros_like(q)
    for _ in range(5):
        frequency = rng.uniform(1.0, 6.0, robot.n)
        amplitude = rng.uniform(0.2, 0.8, robot.n) / frequency
        phase = rng.uniform(0.0, 2.0 * np.pi, robot.n)
        angle = frequency * time[:, None] + phase
        q += amplitude * np.sin(angle)
        qd += amplitude * frequency * np.cos(angle)
        qdd -= amplitude * frequency**2 * np.sin(angle)
    return time, q, qd, qdd


def hidden(robot: Robot, friction: Friction, seed: int, change: float = 0.15) -> np.ndarray:
    """A physically consistent parameter vector near the card's, with rotors and friction."""
    rng = np.random.default_rng(seed)
    layout = Layout(robot, friction)
    matrix = pseudo_inertia(robot_inertia(robot))
    mass = matrix[:, 3, 3]
    matrix[:, :3, :3] += 1e-3 * mass[:, None, None] * np.eye(3)
    lower = np.linalg.cholesky(matrix)
    noise = rng.uniform(-change, change, (layout.links, 4, 4))
    turned = np.eye(4) + 0.5 * (noise + np.swapaxes(noise, 1, 2))
    inertial = from_pseudo_inertia(lower @ turned @ np.swapaxes(lower, 1, 2))
    coefficients = rng.uniform(0.1, 1.0, (robot.n, friction.count))
    hidden = replace(
        layout.selection.base,
        inertial=inertial,
        armature=rng.uniform(0.02, 0.2, robot.n),
        friction_coefficients=coefficients,
    )
    return layout.selection.to_vector(hidden)


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Truth]:
    """Make a robot with hidden parameters move."""

    def make(
        name: str,
        friction: Friction | None = None,
        seconds: float = 8.0,
        rate: float = 100.0,
        seed: int = 0,
        truth_seed: int = 1,
    ) -> Truth:
        robot = Robot.load(name)
        model = friction or Friction()
        layout = Layout(robot, model)
        vector = hidden(robot, model, truth_seed)
        time, q, qd, qdd = path(robot, seconds, rate, seed)
        wound = slip(q)
        torque = layout.torque(RigidBody(robot), vector, q, qd, qdd, wound)
        return Truth(robot, model, vector, Motion(q=q, qd=qd, qdd=qdd, torque=torque, time=time, slip=wound))

    return make
