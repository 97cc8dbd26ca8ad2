"""The stand-in's physics: stick-slip, springs, the same hidden arm for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.identify.hybrid.recordings import FAST_PERIOD, Split, fourier_paths, record
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.stand_in import StandIn, StandInSettings
from retorque.work.errors import RetorqueError

QUIET = StandInSettings(position_noise=0.0, velocity_noise=0.0)


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


@pytest.fixture(scope="module")
def split(panda: Robot) -> Split:
    return record(panda, scale=0.002, seed=1000)


def test_rests_where_friction_carries_it(panda: Robot) -> None:
    """Under gravity compensation a push below the static friction moves nothing, one well above it does."""
    arm = StandIn(panda, 2, seed=3, settings=QUIET)
    body = RigidBody(arm.truth)
    state = arm.reset(panda.home)
    push = np.zeros((2, 7))
    push[0, 0], push[1, 0] = 0.5 * arm.joints.coulomb[0], 2.0 * arm.joints.static[0]
    for _ in range(500):
        arm.write(Command(torque=body.gravity(state.position) + push))
        state = arm.read()
    moved = np.abs(state.position[:, 0] - panda.home[0])
    assert moved[0] < 2e-3
    assert moved[1] > 0.05


def test_steady_slip_needs_coulomb_and_viscous_friction(panda: Robot) -> None:
    """At constant speed the torque beyond gravity is LuGre's steady state."""
    arm = StandIn(panda, 1, seed=3, settings=StandInSettings(position_noise=0.0, velocity_noise=0.0, ripple=0.0))
    body, joints = RigidBody(arm.truth), arm.joints
    speed = np.zeros(7)
    speed[0] = 0.5
    state = arm.reset(panda.home, speed)
    kept = []
    for tick in range(1500):
        error, error_d = state.position[0] - panda.home - speed * tick * 1e-3, state.velocity[0] - speed
        command = body.inverse_dynamics(state.position[0], state.velocity[0], -100.0 * error - 20.0 * error_d)
        arm.write(Command(torque=command[None]))
        state = arm.read()
        kept.append(command[0] - body.bias(state.position[0], state.velocity[0])[0])
    v = float(state.velocity[0, 0])
    rest = np.exp(-np.square(v / arm.settings.stribeck_velocity))
    level = joints.coulomb[0] + (joints.static[0] - joints.coulomb[0]) * rest
    assert np.mean(kept[-200:]) == pytest.approx(level + joints.viscous[0] * v, rel=0.05)


def test_finer_steps_change_little(panda: Robot) -> None:
    coarse, fine = (StandIn(panda, 1, seed=3, settings=StandInSettings(substeps=k, position_noise=0.0)) for k in (2, 8))
    body = RigidBody(panda)
    command = body.gravity(panda.home) + np.array([4.0, 3.0, -3.0, 3.0, 1.5, 1.0, 0.6])
    for arm in (coarse, fine):
        arm.reset(panda.home)
        for _ in range(300):
            arm.write(Command(torque=command[None]))
    moved = fine.read().position - panda.home
    assert np.max(np.abs(moved)) > 0.05
    assert np.allclose(coarse.read().position, fine.read().position, atol=0.03 * np.max(np.abs(moved)))


def test_same_seed_same_arm(panda: Robot) -> None:
    one, two, other = StandIn(panda, 1, seed=5), StandIn(panda, 4, seed=5), StandIn(panda, 1, seed=6)
    assert np.array_equal(one.joints.coulomb, two.joints.coulomb)
    assert one.truth.links == two.truth.links
    assert not np.allclose(one.joints.coulomb, other.joints.coulomb)


def test_paths_keep_limits_and_derivatives(panda: Robot) -> None:
    paths = fourier_paths(panda, 3, seed=1000, candidates=4)
    rate = np.full(3, 1.0 / FAST_PERIOD)
    phase = np.linspace(0.0, 1.0, 500)[:, None] * np.ones(3)
    q, qd, _ = paths.at(phase, rate)
    assert np.all(q >= panda.lower) and np.all(q <= panda.upper)
    assert np.max(np.abs(qd) / panda.velocity_limit) <= 0.4 * 1.02
    step = 1e-5
    before, now, after = (paths.at(0.3 * np.ones(3) + k * step, rate) for k in (-1, 0, 1))
    seconds = step * FAST_PERIOD
    assert np.allclose((after[0] - before[0]) / (2 * seconds), now[1], atol=1e-6)
    assert np.allclose((after[1] - before[1]) / (2 * seconds), now[2], atol=1e-6)


def test_split_is_the_papers(split: Split) -> None:
    assert (len(split.train), len(split.validation), len(split.test)) == (42, 6, 4)
    assert {len(m) for m in split.train} == {1080, 270}
    low, high = split.torque_range()
    assert np.all(high > low)


def test_recordings_repeat(panda: Robot, split: Split) -> None:
    again = record(panda, scale=0.002, seed=1000)
    assert all(np.array_equal(a.torque, b.torque) for a, b in zip(split.test, again.test, strict=True))


@pytest.mark.parametrize("scale", [0.0, -1.0, 100.0, float("nan")])
def test_odd_scale_is_refused(panda: Robot, scale: float) -> None:
    with pytest.raises(RetorqueError, match="scale"):
        record(panda, scale=scale, seed=0)
