"""The actuator map and its inverse, and the inverse torque-command map."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.actuator import PreparedLosses, command_for, effective_torque, friction, friction_slope, losses
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import NO_FRICTION, PRESETS, Friction
from retorque.physics.parameters import Parameters
from retorque.physics.presliding import DISTANCES
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.physics.selection import DRAWN, Selection
from retorque.robots.robot import Robot

PANDA = Robot.load("panda")
IDEAL = Parameters.ideal(PANDA, 1)


def pair(low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    """Per-direction values for every joint, extremes included."""
    one = st.one_of(st.just(low), st.just(high), st.floats(low, high))
    size = 2 * PANDA.n
    return st.lists(one, min_size=size, max_size=size).map(lambda x: np.reshape(x, (1, PANDA.n, 2)))


def row(low: float, high: float) -> st.SearchStrategy[np.ndarray]:
    one = st.one_of(st.just(0.0), st.just(low), st.just(high), st.floats(low, high))
    return st.lists(one, min_size=PANDA.n, max_size=PANDA.n).map(lambda x: np.reshape(x, (1, PANDA.n)))


@settings(max_examples=150, deadline=None)
@given(
    command=row(-400.0, 400.0),
    velocity=row(-10.0, 10.0),
    scale=pair(0.2, 3.0),
    zone=pair(0.0, 5.0),
    bias=pair(-10.0, 10.0),
    viscous=pair(0.0, 20.0),
    amplitude=pair(0.0, 30.0),
    slope=pair(0.1, 2000.0),
    shift=pair(-0.2, 0.2),
)
def test_command_to_effective_to_command_is_exact(
    command, velocity, scale, zone, bias, viscous, amplitude, slope, shift
):
    p = replace(
        IDEAL,
        torque_scale=scale,
        dead_zone=zone,
        torque_bias=bias,
        viscous=viscous,
        friction_amplitude=amplitude,
        friction_slope=slope,
        friction_shift=shift,
    )
    found = command_for(effective_torque(command, velocity, p), velocity, p)
    np.testing.assert_allclose(found, command, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ("panda", "piper", "z1", "leap_hand"))
def test_inverse_is_exact_over_the_profile(name: str) -> None:
    robot = Robot.load(name)
    rng = np.random.default_rng(0)
    p = Parameters.sample(robot, profile_of(robot), 2000, 0)
    command, velocity = rng.normal(0.0, 20.0, (2000, robot.n)), rng.normal(0.0, 2.0, (2000, robot.n))
    command[::7], velocity[::5] = 0.0, 0.0
    found = command_for(effective_torque(command, velocity, p), velocity, p)
    np.testing.assert_allclose(found, command, rtol=0.0, atol=1e-9)


def test_friction_opposes_motion_and_its_slope_is_its_derivative() -> None:
    p = Parameters.sample(PANDA, profile_of(PANDA), 500, 1)
    p = replace(p, torque_bias=np.zeros_like(p.torque_bias))
    velocity = np.random.default_rng(2).uniform(0.001, 1.0, (500, PANDA.n)) * np.array([1, -1, 1, -1, 1, -1, 1])
    assert np.all(friction(velocity, p) * velocity >= 0.0)
    step = 1e-7
    found = (losses(velocity + step, p) - losses(velocity - step, p)) / (2 * step)
    np.testing.assert_allclose(friction_slope(velocity, p), found, rtol=1e-4, atol=1e-4)


def test_the_ideal_drive_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    command, velocity = rng.normal(0.0, 30.0, (4, PANDA.n)), rng.normal(0.0, 1.0, (4, PANDA.n))
    p = Parameters.ideal(PANDA, 4)
    np.testing.assert_array_equal(effective_torque(command, velocity, p), command)


@pytest.mark.parametrize("which", ("sampled", "low", "high"))
def test_inverse_torque_command_gives_the_desired_acceleration(which: str) -> None:
    rng = np.random.default_rng(4)
    profile = profile_of(PANDA)
    if which == "sampled":
        p = Parameters.sample(PANDA, profile, 20, 5)
    else:
        chosen = Selection(PANDA, DRAWN, profile=profile)
        p = chosen.apply(np.tile(chosen.upper if which == "high" else chosen.lower, (20, 1)))
    q = rng.uniform(PANDA.lower, PANDA.upper, (20, PANDA.n))
    qd, qdd, external = (rng.normal(0.0, s, (20, PANDA.n)) for s in (1.0, 5.0, 3.0))
    command = inverse_torque_command(RigidBody(PANDA), p, q, qd, qdd, external)
    acting = effective_torque(command, qd, p) + external
    for trial, inertial in enumerate(p.total_inertial(PANDA)):
        truth = RigidBody(PANDA, inertial, p.armature[trial])
        found = truth.forward_dynamics(q[trial], qd[trial], acting[trial])
        np.testing.assert_allclose(found, qdd[trial], atol=1e-8)


@pytest.mark.parametrize("friction_terms", (NO_FRICTION, Friction(stribeck=(0.05,), presliding=(1e-3,))))
def test_prepared_losses_are_losses_and_slope_to_the_bit(friction_terms: Friction) -> None:
    rng = np.random.default_rng(1000)
    drawn = Parameters.sample(PANDA, profile_of(PANDA), 4, 1000)
    count = friction_terms.count
    p = replace(
        drawn,
        friction=friction_terms,
        friction_coefficients=rng.uniform(0.0, 2.0, (4, PANDA.n, count)),
        stiffness=rng.uniform(0.0, 5.0, (4, PANDA.n)),
    )
    velocity, position = rng.normal(size=(2, 4, PANDA.n))
    slip = rng.uniform(-1.0, 1.0, (4, PANDA.n, len(DISTANCES)))
    lost, slope = PreparedLosses(p)(velocity, position, slip, np.abs(slip))
    np.testing.assert_array_equal(lost, losses(velocity, p, position, slip))
    np.testing.assert_array_equal(slope, friction_slope(velocity, p, np.abs(slip)))


@pytest.mark.parametrize("terms", sorted(PRESETS))
def test_friction_terms_and_springs_count_as_losses(terms: str) -> None:
    rng = np.random.default_rng(6)
    friction = PRESETS[terms]
    p = Parameters.sample(PANDA, profile_of(PANDA), 4, 7)
    coefficients = rng.uniform(0.1, 1.0, (4, PANDA.n, friction.count))
    stiffness, rest = rng.uniform(0.0, 5.0, (2, 4, PANDA.n))
    full = replace(p, friction=friction, friction_coefficients=coefficients, stiffness=stiffness, rest_position=rest)
    q, qd = rng.normal(0.0, 1.0, (2, 4, PANDA.n))
    extra = friction.torque(qd, coefficients) + stiffness * (q - rest)
    np.testing.assert_allclose(losses(qd, full, q), losses(qd, p) + extra, atol=1e-12)
    np.testing.assert_allclose(losses(qd, full), losses(qd, p) + friction.torque(qd, coefficients), atol=1e-12)
    wanted = rng.normal(0.0, 10.0, (4, PANDA.n))
    np.testing.assert_allclose(effective_torque(command_for(wanted, qd, full, q), qd, full, q), wanted, atol=1e-9)
    step = 1e-7
    slope = (losses(qd + step, full, q) - losses(qd - step, full, q)) / (2.0 * step)
    np.testing.assert_allclose(friction_slope(qd, full), np.maximum(slope, 0.0), atol=1e-4)
