"""A payload's mass and centre come back with errors that hold, and known masses give the drive gains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retorque.identify.payload_estimate import estimate_payload
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction
from retorque.physics.inertia import to_vector
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.rotation import from_quaternion
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]

MASS, CENTRE, INERTIA = 1.3, np.array([0.02, -0.01, 0.06]), np.diag([0.004, 0.003, 0.002])  # in the mount's frame


def carry(robot: Robot, motion: Motion) -> Motion:
    """The same motion with the payload's torques."""
    mount = robot.payload_mount
    turn = from_quaternion(mount.quaternion)
    ten = to_vector(np.array(MASS), np.array(mount.position) + turn @ CENTRE, turn @ INERTIA @ turn.T)
    rows = RigidBody(robot).regressor(motion.q, motion.qd, motion.qdd)
    own = [link.name for link in robot.moving_links].index(mount.link)
    return replace(motion, torque=motion.torque + rows[..., 10 * own : 10 * own + 10] @ ten)


def pair(simulate: Simulate, gains: np.ndarray, noise: float, seed: int) -> tuple[Robot, Motion, Motion]:
    """An empty and a loaded log, recorded with drive gains that are wrong by `gains`."""
    rng = np.random.default_rng(seed)
    first, second = (simulate("z1", seconds=8.0, seed=2 * seed + k) for k in range(2))
    empty, loaded = first.motion, carry(first.robot, second.motion)

    def record(motion: Motion) -> Motion:
        return replace(motion, torque=motion.torque * gains + noise * rng.standard_normal(motion.torque.shape))

    return first.robot, record(empty), record(loaded)


def test_clean_logs_give_the_payload(simulate: Simulate) -> None:
    robot, empty, loaded = pair(simulate, np.ones(6), 1e-4, 0)
    found = estimate_payload(empty, loaded, robot, Friction(), gain_uncertainty=1e-4)
    assert abs(found.mass - MASS) < 2e-3 and abs(found.mass - MASS) < 4.0 * found.mass_std
    assert np.allclose(found.centre, CENTRE, atol=1e-3)
    assert np.allclose(np.diagonal(found.inertia), np.diagonal(INERTIA), atol=1e-3)
    assert found.margin > 0.0


def test_errors_hold_when_the_drive_gains_are_wrong(simulate: Simulate) -> None:
    rng = np.random.default_rng(1)
    off, masses = [], []
    for seed in range(12):
        gains = 1.0 + 0.05 * rng.standard_normal(6)
        robot, empty, loaded = pair(simulate, gains, 0.1, seed)
        found = estimate_payload(empty, loaded, robot, Friction(), gain_uncertainty=0.05)
        off.append((found.mass - MASS) / found.mass_std)
        masses.append(found.mass)
        assert np.all(np.abs(found.centre - CENTRE) < 4.0 * found.centre_std)
    assert np.max(np.abs(off)) < 3.0
    assert np.std(masses) < 0.05 * MASS  # better than the gains themselves
    assert 0.3 < np.sqrt(np.mean(np.square(off))) < 2.0


def test_a_known_mass_gives_the_drive_gains(simulate: Simulate) -> None:
    gains = np.array([0.8, 1.25, 0.9, 1.1, 1.3, 0.85])
    robot, empty, loaded = pair(simulate, gains, 0.02, 3)
    found = estimate_payload(empty, loaded, robot, Friction(), known_mass=MASS)
    assert np.isclose(found.mass, MASS, rtol=1e-3)
    error = found.gain_scale * gains - 1.0
    assert np.all(np.abs(error) < np.maximum(3.5 * found.gain_scale_std * gains, 0.02))
    assert np.all(np.abs(error[1:4]) < 0.05)  # the joints that carry the load


def test_nonsense_is_refused(simulate: Simulate) -> None:
    robot, empty, loaded = pair(simulate, np.ones(6), 0.1, 0)
    with pytest.raises(RetorqueError, match="known mass"):
        estimate_payload(empty, loaded, robot, known_mass=-1.0)
    with pytest.raises(RetorqueError, match="uncertainty"):
        estimate_payload(empty, loaded, robot, gain_uncertainty=0.0)
