"""Controllers and inverse kinematics on the ideal robot."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control import DirectTorque, JointAction, JointImpedance, OperationalSpace, PoseAction, TorqueAction
from retorque.control.inverse_kinematics import solve
from retorque.control.operational_space import seen_in_task
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


def _state(q: np.ndarray, qd: np.ndarray) -> State:
    return State(0.0, q, qd, np.zeros_like(q))


def test_impedance_at_its_target_is_the_bias_torque() -> None:
    rng = np.random.default_rng(0)
    q, qd = rng.uniform(PANDA.lower, PANDA.upper, (6, 7)), rng.standard_normal((6, 7))
    controller = JointImpedance(PANDA, np.full(7, 100.0), np.full(7, 10.0))
    found = controller.command(_state(q, qd), JointAction(q, qd)).torque
    np.testing.assert_allclose(found, RigidBody(PANDA).bias(q, qd), atol=1e-12)
    pulled = controller.command(_state(q, qd), JointAction(q + 0.1, qd - 0.2)).torque
    np.testing.assert_allclose(pulled - found, 100.0 * 0.1 - 10.0 * 0.2, atol=1e-9)


def test_one_robot_and_a_batch_get_the_same_torque() -> None:
    rng = np.random.default_rng(1)
    q, qd = rng.normal(0.0, 0.2, (4, 7)) + PANDA.home, rng.standard_normal((4, 7))
    controller = JointImpedance(PANDA, np.full(7, 100.0), np.full(7, 10.0))
    action = JointAction(PANDA.home, np.zeros(7))
    batch = controller.command(_state(q, qd), action).torque
    for trial in range(4):
        one = controller.command(_state(q[trial], qd[trial]), action).torque
        np.testing.assert_allclose(one, batch[trial], atol=1e-12)


@pytest.mark.parametrize("gain", (np.full(6, 1.0), np.full(7, np.nan), np.full(7, -1.0)))
def test_impedance_refuses_gains_that_make_no_sense(gain: np.ndarray) -> None:
    with pytest.raises(RetorqueError):
        JointImpedance(PANDA, gain, np.full(7, 1.0))


def test_direct_torque_adds_nothing() -> None:
    torque = np.arange(7.0)
    assert DirectTorque().command(_state(PANDA.home, PANDA.home), TorqueAction(torque)).torque is torque


def test_operational_space_returns_to_its_pose_and_holds_it() -> None:
    body, controller = RigidBody(PANDA), OperationalSpace(PANDA)
    at, turned = body.frame_pose(PANDA.end_effector, PANDA.home)
    action = PoseAction(at[None], turned[None], np.zeros((1, 3)), np.zeros((1, 3)))
    target = Target(PANDA, Parameters.ideal(PANDA, 1), threads=1)
    state = target.reset(PANDA.home + np.array([0.05, -0.05, 0.05, 0.05, -0.05, 0.05, 0.05]))
    before = np.linalg.norm(body.frame_pose(PANDA.end_effector, target.position)[0] - at)
    for _ in range(4000):
        target.write(controller.command(state, action))
        state = target.read()
    after = np.linalg.norm(body.frame_pose(PANDA.end_effector, target.position)[0] - at)
    assert before > 1e-2 and after < 1e-3
    assert np.abs(target.velocity).max() < 1e-2


def test_inverse_kinematics_reaches_what_can_be_reached_within_the_limits() -> None:
    rng = np.random.default_rng(2)
    body = RigidBody(PANDA)
    joints = PANDA.home + rng.uniform(-0.4, 0.4, (20, 7))
    joints = np.clip(joints, PANDA.lower + 0.1, PANDA.upper - 0.1)
    at, turned = body.frame_pose(PANDA.end_effector, joints)
    found, error = solve(body, PANDA.end_effector, at, turned, PANDA.home)
    assert np.mean(error < 1e-4) >= 0.9
    assert np.all(found >= PANDA.lower) and np.all(found <= PANDA.upper)
    reached = body.frame_pose(PANDA.end_effector, found)[0]
    np.testing.assert_allclose(reached[error < 1e-4], at[error < 1e-4], atol=1e-4)


def test_inverse_kinematics_says_when_a_pose_is_out_of_reach() -> None:
    body = RigidBody(PANDA)
    turned = body.frame_pose(PANDA.end_effector, PANDA.home)[1]
    _, error = solve(body, PANDA.end_effector, np.array([3.0, 0.0, 0.5]), turned, PANDA.home)
    assert error > 1.0


def test_what_moves_the_hand_is_the_pseudo_inverse_at_singular_postures_too() -> None:
    body, rng = RigidBody(PANDA), np.random.default_rng(0)
    q = PANDA.home + 0.4 * rng.standard_normal((6, 7))
    q[1] = 0.0  # stretched
    jacobian, joints = body.jacobian(PANDA.end_effector, q), rng.standard_normal((6, 7))
    jacobian[2, 3] = 0.0  # exactly singular
    wanted = np.matmul(np.linalg.pinv(jacobian, rcond=1e-4), np.matmul(jacobian, joints[..., None]))[..., 0]
    np.testing.assert_allclose(seen_in_task(jacobian, joints), wanted, atol=1e-9)
    np.testing.assert_allclose(seen_in_task(jacobian[0], joints[0]), wanted[0], atol=1e-12)  # one robot
    np.testing.assert_allclose(seen_in_task(jacobian[2], joints[2]), wanted[2], atol=1e-9)
