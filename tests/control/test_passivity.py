"""Controllers as springs and dampers: energy only goes out, frames do not matter, and robots in a batch are alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from retorque.control.action import JointAction, PoseAction
from retorque.control.computed_torque import ComputedTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.control.joint_targets import JointTargets
from retorque.control.operational_space import OperationalSpace
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State

ARM = Robot.load("panda")
BODY = RigidBody(ARM)
REST = np.zeros(ARM.n)


def moving(seed: int = 0) -> State:
    rng = np.random.default_rng(seed)
    return State(0.0, ARM.home + rng.uniform(-0.3, 0.3, ARM.n), rng.normal(0.0, 1.0, ARM.n), REST)


def fall(state: State, torque: np.ndarray, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Where the ideal robot is after a torque has acted for a moment."""
    acceleration = BODY.forward_dynamics(state.position, state.velocity, torque)
    return state.position + seconds * state.velocity, state.velocity + seconds * acceleration


@pytest.mark.parametrize("seed", range(4))
def test_impedance_loses_exactly_what_its_damper_takes(seed: int) -> None:
    """d/dt (½ v'Mv + ½ e'Kp e) = ½ v'(dM/dt)v - v'Kd v: it takes away the forces of motion, which do no work."""
    kp, kd = np.linspace(20.0, 80.0, ARM.n), np.linspace(1.0, 8.0, ARM.n)
    goal = JointAction(ARM.home, REST)
    controller, state = JointImpedance(ARM, kp, kd), moving(seed)

    def energy(q: np.ndarray, v: np.ndarray) -> float:
        return float(0.5 * v @ BODY.mass_matrix(q) @ v + 0.5 * np.sum(kp * (ARM.home - q) ** 2))

    torque, h = controller.command(state, goal).torque, 1e-6
    assert torque is not None
    rate = (energy(*fall(state, torque, h)) - energy(*fall(state, torque, -h))) / (2.0 * h)
    v = state.velocity
    matrices = [BODY.mass_matrix(state.position + s * h * v) for s in (1.0, -1.0)]
    turning = 0.5 * v @ (matrices[0] - matrices[1]) @ v / (2.0 * h)
    assert rate == pytest.approx(turning - float(np.sum(kd * v**2)), rel=1e-4)


def test_computed_torque_makes_every_joint_a_spring_of_its_own() -> None:
    kp = np.linspace(25.0, 100.0, ARM.n)
    state, goal = moving(1), JointAction(ARM.home, 0.1 + REST, 0.5 + REST)
    torque = ComputedTorque(ARM, BODY, kp).command(state, goal).torque
    assert torque is not None
    found = BODY.forward_dynamics(state.position, state.velocity, torque)
    damping = 2.0 * np.sqrt(kp)
    want = 0.5 + kp * (ARM.home - state.position) + damping * (0.1 - state.velocity)
    np.testing.assert_allclose(found, want, atol=1e-8)


def test_the_hand_does_not_care_which_way_the_world_is_turned() -> None:
    """A robot and its goal on a turned base: the same torques, if gravity turns along."""
    turn = Rotation.from_euler("xyz", [0.4, -0.7, 1.2])
    x, y, z = turn.apply(ARM.links[0].position)
    qx, qy, qz, qw = (turn * Rotation.from_quat(ARM.links[0].quaternion, scalar_first=True)).as_quat()
    gx, gy, gz = turn.apply(ARM.gravity)
    base = replace(ARM.links[0], position=(x, y, z), quaternion=(qw, qx, qy, qz))
    turned = replace(ARM, links=(base, *ARM.links[1:]), gravity=(gx, gy, gz))
    state = moving(2)
    position, rotation = BODY.frame_pose(ARM.end_effector, ARM.home)
    speed, spin = np.array([0.1, -0.2, 0.3]), np.array([0.5, 0.2, -0.1])
    here = OperationalSpace(ARM, stiffness=[150.0] * 3 + [20.0] * 3, damping=[20.0] * 3 + [5.0] * 3)
    there = OperationalSpace(turned, stiffness=[150.0] * 3 + [20.0] * 3, damping=[20.0] * 3 + [5.0] * 3)
    own = here.command(state, PoseAction(position, rotation, speed, spin)).torque
    goal = PoseAction(turn.apply(position), turn.as_matrix() @ rotation, turn.apply(speed), turn.apply(spin))
    np.testing.assert_allclose(there.command(state, goal).torque, own, atol=1e-9)


def test_posture_in_the_null_space_never_pushes_the_hand() -> None:
    soft, stiff = (OperationalSpace(ARM, nullspace_stiffness=k) for k in (0.0, 50.0))
    state = moving(3)
    pose = PoseAction(*BODY.frame_pose(ARM.end_effector, ARM.home), np.zeros(3), np.zeros(3))
    none, much = soft.command(state, pose).torque, stiff.command(state, pose).torque
    assert none is not None and much is not None
    jacobian = BODY.jacobian(ARM.end_effector, state.position)
    assert np.max(np.abs(much - none)) > 1.0
    np.testing.assert_allclose(np.linalg.pinv(jacobian.T) @ (much - none), 0.0, atol=1e-9)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_one_robots_bad_report_reaches_no_other(bad: float) -> None:
    batch = [moving(seed) for seed in range(3)]
    q, v = np.array([s.position for s in batch]), np.array([s.velocity for s in batch])
    controller = JointImpedance(ARM, np.full(ARM.n, 50.0), np.full(ARM.n, 5.0))
    goal = JointAction(ARM.home, REST)
    clean = controller.command(State(0.0, q, v, np.zeros_like(q)), goal).torque
    v[1, 4] = bad
    with np.errstate(invalid="ignore"):
        found = controller.command(State(0.0, q, v, np.zeros_like(q)), goal).torque
    assert found is not None and clean is not None
    np.testing.assert_array_equal(found[[0, 2]], clean[[0, 2]])
    assert not np.all(np.isfinite(found[1]))


def test_servos_are_told_where_to_be() -> None:
    action = JointAction(ARM.home + 0.1, 0.3 + REST)
    told = JointTargets().command(moving(), action)
    assert told.torque is None
    np.testing.assert_array_equal(told.position, action.position)
    assert JointTargets().gives == "position"
