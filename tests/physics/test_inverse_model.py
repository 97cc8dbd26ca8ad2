"""The torque for a motion, by every route: parameters, retargeting, the discrete step, a simulated robot."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from dynamics_cases import hidden

from retorque.physics.actuator import drive
from retorque.physics.default_profile import profile_of
from retorque.physics.dynamics import make_dynamics
from retorque.physics.friction import PRESETS
from retorque.physics.inverse_model import ParametricModel
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import apply_inertial, inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.target import Target

ARM = Robot.load("z1")
H = 1e-3


def states(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = ARM.home + rng.uniform(-0.3, 0.3, (count, ARM.n))
    return q, rng.normal(0.0, 0.5, (count, ARM.n)), rng.normal(0.0, 3.0, (count, ARM.n))


@pytest.mark.parametrize("friction", ["none", "full", "asymmetric"])
def test_with_the_ticks_length_a_step_accelerates_exactly_as_asked(friction: str) -> None:
    p = replace(
        hidden(ARM, PRESETS[friction]), torque_scale=np.full((ARM.n, 2), 0.9), dead_zone=np.full((ARM.n, 2), 0.1)
    )
    q, v, a = states(20)
    command = inverse_torque_command(RigidBody(ARM), p[None], q, v, a, timestep=H)
    dynamics = make_dynamics(ARM, H, backend="pinocchio", parameters=p)
    after = dynamics.step(np.concatenate([q, v], axis=1), drive(command, p))
    np.testing.assert_allclose((after[:, ARM.n :] - v) / H, a, atol=1e-7)


def test_a_simulated_robot_moves_as_its_own_model_says() -> None:
    p = Parameters.sample(ARM, profile_of(ARM), (), 1000)
    target = Target(ARM, p, timestep=H, threads=1)
    target.limit_torque(None)
    q, v, a = states(5)
    for k in range(5):
        target.reset(q[k], v[k])
        command = inverse_torque_command(RigidBody(ARM), p, q[k], v[k], a[k], timestep=H)
        target.write(Command(torque=command))
        np.testing.assert_allclose((target.velocity - v[k]) / H, a[k], rtol=1e-4, atol=1e-3)


def test_a_parametric_model_is_the_command_for_a_motion() -> None:
    p = Parameters.sample(ARM, profile_of(ARM), (), 3)
    q, v, a = states(6)
    model = ParametricModel(ARM, p)
    whole = model.torque(q, v, a)
    np.testing.assert_allclose(whole, inverse_torque_command(RigidBody(ARM), p, q, v, a), atol=1e-12)
    for k in range(6):
        np.testing.assert_allclose(model.torque(q[k], v[k], a[k]), whole[k], atol=1e-12)


def test_help_from_outside_is_torque_that_need_not_be_sent() -> None:
    p = Parameters.ideal(ARM)
    q, v, a = states(4)
    push = np.random.default_rng(1).normal(0.0, 3.0, (4, ARM.n))
    alone, helped = (inverse_torque_command(RigidBody(ARM), p, q, v, a, external) for external in (0.0, push))
    np.testing.assert_allclose(alone - helped, push, atol=1e-12)


def test_inertias_of_a_batch_are_each_robots_own() -> None:
    p = Parameters.sample(ARM, profile_of(ARM), 4, 5)
    q, v, a = states(4)
    inertial = p.total_inertial(ARM)
    found = apply_inertial(RigidBody(ARM), inertial, q, v, a)
    for k in range(4):
        own = RigidBody(ARM, inertial[k], np.zeros(ARM.n))
        np.testing.assert_allclose(found[k], own.inverse_dynamics(q[k], v[k], a[k]), atol=1e-10)


def test_an_identified_card_is_its_own_model() -> None:
    p = Parameters.sample(ARM, profile_of(ARM), (), 7)
    card = p.on_card(ARM)
    q, v, a = states(3)
    np.testing.assert_allclose(
        ParametricModel(card).torque(q, v, a), ParametricModel(ARM, p).torque(q, v, a), atol=1e-9
    )
