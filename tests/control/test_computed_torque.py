"""Computed torque over any inverse-dynamics model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.control import ComputedTorque, JointAction
from retorque.loop.loop import Loop
from retorque.physics.default_profile import profile_of
from retorque.physics.friction import preset
from retorque.physics.inverse_model import InverseModel, ParametricModel
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def _hidden() -> Parameters:
    """Something with friction, a payload and a drive of its own; no dead zone, which no model can see through."""
    p = Parameters.sample(PANDA, profile_of(PANDA), 1, 3)[0]
    return replace(p, dead_zone=np.zeros_like(p.dead_zone))


def test_a_parametric_model_of_the_plain_card_is_the_rigid_body() -> None:
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(0.0, 0.5, (3, 5, 7))
    found = ParametricModel(PANDA).torque(q, qd, qdd)
    np.testing.assert_allclose(found, RigidBody(PANDA).torque(q, qd, qdd), atol=1e-9)


def test_at_the_target_it_is_the_models_torque_and_errors_are_accelerations() -> None:
    rng = np.random.default_rng(1)
    q, qd, qdd = rng.normal(0.0, 0.5, (3, 5, 7))
    model = ParametricModel(PANDA, _hidden())
    controller = ComputedTorque(PANDA, model, np.full(7, 100.0))
    state = State(0.0, q, qd, np.zeros_like(q))
    np.testing.assert_allclose(controller.command(state, JointAction(q, qd, qdd)).torque, model.torque(q, qd, qdd))
    behind = controller.command(state, JointAction(q + 0.1, qd + 0.2)).torque
    np.testing.assert_allclose(behind, model.torque(q, qd, np.full_like(q, 100.0 * 0.1 + 20.0 * 0.2)), atol=1e-9)
    one = controller.command(State(0.0, q[0], qd[0], q[0]), JointAction(q[0] + 0.1, qd[0] + 0.2)).torque
    np.testing.assert_allclose(one, behind[0], atol=1e-9)


class _Sines:
    """A policy that swings every joint, and knows its accelerations."""

    period = 0.0

    def reset(self, state: State) -> None:
        pass

    def act(self, state: State) -> JointAction:
        t, a, w = state.time, 0.3, 3.0
        shape = np.ones((1, 7))
        wave = a * (1.0 - np.cos(w * t))
        return JointAction(PANDA.home + wave * shape, a * w * np.sin(w * t) * shape, a * w * w * np.cos(w * t) * shape)


def _error(model: InverseModel) -> float:
    target = Target(PANDA, Parameters.unflatten(PANDA, _hidden().flatten()[None]), threads=1)
    policy = _Sines()
    loop = Loop(target, policy, ComputedTorque(PANDA, model, np.full(7, 100.0)))
    worst = 0.0
    for _ in range(1500):
        tick = loop.tick()
        worst = max(worst, float(np.abs(tick.state.position - policy.act(tick.state).position).max()))
    return worst


def test_a_model_that_knows_the_robot_tracks_much_better() -> None:
    assert _error(ParametricModel(PANDA, _hidden())) < 0.05 * _error(RigidBody(PANDA))


@pytest.mark.parametrize("gain", (np.full(6, 1.0), np.full(7, np.nan), np.full(7, -1.0)))
def test_gains_that_make_no_sense_are_refused(gain: np.ndarray) -> None:
    with pytest.raises(RetorqueError, match="finite numbers"):
        ComputedTorque(PANDA, RigidBody(PANDA), np.full(7, 1.0), gain)


def test_hybrid_networks_fit_as_they_are() -> None:
    from retorque.identify.hybrid.streaming import StreamingModel

    model: type[InverseModel] = StreamingModel
    assert callable(model.torque)
    assert preset("sign").count == 1  # their friction
