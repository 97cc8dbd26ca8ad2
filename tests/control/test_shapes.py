"""One robot (n,) and a batch (trials, n) get the same commands from every controller and reference."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.action import JointAction, PoseAction, TorqueAction
from retorque.control.computed_torque import ComputedTorque
from retorque.control.direct_torque import DirectTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.control.operational_space import OperationalSpace, rotation_error
from retorque.control.windowed_sines import WindowedSines
from retorque.physics.default_profile import profile_of
from retorque.physics.inverse_model import ParametricModel
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State

PANDA = Robot.load("panda")
BODY = RigidBody(PANDA)
N = PANDA.n


def states(trials: int = 3) -> State:
    rng = np.random.default_rng(0)
    q = PANDA.home + 0.2 * rng.standard_normal((trials, N))
    return State(0.0, q, rng.standard_normal((trials, N)), np.zeros((trials, N)))


def row(state: State, k: int) -> State:
    return State(state.time, state.position[k], state.velocity[k], state.torque[k])


def joint_actions() -> JointAction:
    rng = np.random.default_rng(1)
    return JointAction(*(PANDA.home + rng.standard_normal((3, N)) for _ in range(3)))


def pose_actions() -> PoseAction:
    position, rotation = BODY.frame_pose(PANDA.end_effector, PANDA.home + np.zeros((3, N)))
    return PoseAction(position + 0.05, rotation, np.full((3, 3), 0.1), np.full((3, 3), -0.2))


CASES = {
    "impedance": (JointImpedance(PANDA, np.full(N, 80.0), np.full(N, 6.0)), joint_actions()),
    "computed torque": (ComputedTorque(PANDA, BODY, np.full(N, 100.0)), joint_actions()),
    "identified": (ComputedTorque(PANDA, ParametricModel(PANDA), np.full(N, 100.0)), joint_actions()),
    "operational space": (OperationalSpace(PANDA), pose_actions()),
    "direct": (DirectTorque(), TorqueAction(np.ones((3, N)))),
}


@pytest.mark.parametrize("name", CASES)
def test_one_robot_is_the_row_of_a_batch(name: str) -> None:
    controller, action = CASES[name]
    state = states()
    batch = controller.command(state, action).torque
    assert batch is not None and batch.shape == (3, N)
    for k in range(3):
        values = [getattr(action, field) for field in type(action).__dataclass_fields__]
        single = type(action)(*(None if value is None else value[k] for value in values))
        found = controller.command(row(state, k), single).torque
        assert found is not None and found.shape == (N,)
        np.testing.assert_allclose(found, batch[k], atol=1e-9)


def test_impedance_is_its_formula() -> None:
    controller, action = CASES["impedance"]
    state = states()
    expected = (
        80.0 * (action.position - state.position)
        + 6.0 * (action.velocity - state.velocity)
        + BODY.bias(state.position, state.velocity)
    )
    np.testing.assert_allclose(controller.command(state, action).torque, expected, atol=1e-9)


def test_computed_torque_is_inverse_dynamics_at_the_wanted_acceleration() -> None:
    controller, action = CASES["computed torque"]
    state = states()
    wanted = action.acceleration + 100.0 * (action.position - state.position)
    wanted = wanted + 20.0 * (action.velocity - state.velocity)
    expected = BODY.inverse_dynamics(state.position, state.velocity, wanted)
    np.testing.assert_allclose(controller.command(state, action).torque, expected, atol=1e-9)


def test_operational_space_at_its_pose_holds_the_robot() -> None:
    q = PANDA.home
    position, rotation = BODY.frame_pose(PANDA.end_effector, q)
    still = State(0.0, q, np.zeros(N), np.zeros(N))
    torque = OperationalSpace(PANDA).command(still, PoseAction(position, rotation, np.zeros(3), np.zeros(3))).torque
    np.testing.assert_allclose(torque, BODY.gravity(q), atol=1e-9)


def test_operational_space_pulls_as_its_spring_says() -> None:
    """A target 1 cm away along x is felt as 2 N at the hand (Jᵀ f), and nothing else changes."""
    q = PANDA.home
    position, rotation = BODY.frame_pose(PANDA.end_effector, q)
    still = State(0.0, q, np.zeros(N), np.zeros(N))
    away = PoseAction(position + np.array([0.01, 0.0, 0.0]), rotation, np.zeros(3), np.zeros(3))
    torque = OperationalSpace(PANDA).command(still, away).torque
    force = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(torque - BODY.gravity(q), BODY.jacobian(PANDA.end_effector, q).T @ force, atol=1e-9)


def test_rotation_error_turns_one_into_the_other() -> None:
    from scipy.spatial.transform import Rotation

    a, b = (Rotation.random(6, random_state=seed).as_matrix() for seed in (0, 1))
    error = rotation_error(a, b)
    np.testing.assert_allclose(np.matmul(Rotation.from_rotvec(error).as_matrix(), a), b, atol=1e-9)
    np.testing.assert_allclose(rotation_error(a, a), 0.0, atol=1e-7)


def test_references_and_parameters_of_one_robot_have_no_trials_axis() -> None:
    profile = profile_of(PANDA)
    one = WindowedSines.sample(PANDA.home, profile.tracking_amplitude, (), 4.0, seed=3)
    assert one.at(1.0).position.shape == (N,)
    batch = WindowedSines.sample(PANDA.home, profile.tracking_amplitude, 1, 4.0, seed=3)
    np.testing.assert_array_equal(one.at(1.3).position, batch.at(1.3).position[0])
    single, many = (Parameters.sample(PANDA, profile, trials, 5) for trials in ((), 1))
    assert single.trials == () and many.trials == (1,)
    np.testing.assert_array_equal(single.flatten(), many.flatten()[0])
