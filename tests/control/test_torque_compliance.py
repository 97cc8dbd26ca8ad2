"""Compliance by torque: an arm yields to a push as its virtual spring says, and what is not felt is not pressed."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.admittance import Admittance
from retorque.control.comply.compliance import Compliance
from retorque.control.comply.compliance_action import ComplianceAction, isotropic
from retorque.control.comply.site_kinematics import DampedLeastSquares
from retorque.control.comply.torque_compliance import TorqueCompliance
from retorque.control.joint_impedance import JointImpedance
from retorque.loop.loop import Loop
from retorque.physics.default_profile import critical_damping
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.sense.adapter_torque import AdapterTorque
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.sense.wrench_solve import WrenchPrior
from retorque.simulate.target import Target
from retorque.tasks.comply.stay import Stay
from retorque.work.array import Array

PUSH = np.array([0.0, 8.0, 0.0])


class _Known:
    """An adapter that knows the contact exactly."""

    trials = 1

    def __init__(self, robot: Robot):
        self.robot = robot
        self.torque = np.zeros((1, robot.n))

    def external_torque(self, time: float) -> Array:
        return self.torque


def _panda() -> tuple[Robot, _Known, WrenchEstimator, Compliance]:
    robot = Robot.load("panda")
    frames = (robot.frame("end_effector"),)
    tree = CompiledTree(robot, frames)
    adapter = _Known(robot)
    source = WrenchEstimator(robot, ("end_effector",), AdapterTorque(adapter), WrenchPrior(force=20.0, moment=0.0))
    kinematics = DampedLeastSquares(robot, frames, own_joints(tree), 1, 1e-3)
    return robot, adapter, source, Compliance(source, Admittance(1, 1, 1e-3), kinematics)


def test_a_panda_yields_to_a_push_by_torque() -> None:
    robot, adapter, source, compliance = _panda()
    stiffness = np.full(robot.n, 400.0)
    impedance = JointImpedance(robot, stiffness, critical_damping(robot, stiffness))
    controller = TorqueCompliance(compliance, impedance)
    target = Target(robot, Parameters.ideal(robot, 1), threads=1)
    state = target.reset(robot.home[None])
    source.tree.at(state)
    start = source.tree.position.copy()
    action = ComplianceAction(start, source.tree.rotation.copy(), isotropic(200.0, 40.0)[None, None])
    loop = Loop(target, Stay(action), controller)
    target.push_frame("end_effector", PUSH[None])
    for _ in range(1500):
        state = loop.tick().state
        source.tree.at(state)
        adapter.torque = np.einsum("i,in->n", PUSH, source.tree.jacobian[0, 0, :3])[None]
    moved = (source.tree.position - start)[0, 0]
    spring = PUSH[1] / 200.0
    assert 0.8 * spring < moved[1] < 2.0 * spring  # the joints' own springs give as well
    assert np.abs(moved[[0, 2]]).max() < 0.01
    np.testing.assert_allclose(compliance.felt.wrench[0, 0, :3], PUSH, atol=1.0)
    assert not controller.codes.any()


def test_what_is_not_trusted_is_not_pressed() -> None:
    robot, adapter, _, compliance = _panda()
    state = State(0.0, robot.home[None], np.zeros((1, robot.n)), np.zeros((1, robot.n)))
    compliance.reset(state)
    start, turn = compliance.admittance.position.copy(), compliance.admittance.rotation.copy()
    wrench = np.array([5.0, 0.0, 0.0, 0.0, 0.0, 0.0])[None, None]
    stiffness = isotropic(100.0, 20.0)[None, None]
    adapter.torque = 30.0 * np.random.default_rng(1).standard_normal((1, robot.n))  # no wrench at the hand explains it
    for tick in range(400):
        now = State(1e-3 * tick, state.position, state.velocity, state.torque)
        compliance.command(now, ComplianceAction(start, turn, stiffness, None, None, wrench))
    assert not compliance.felt.trusted.any()
    assert np.abs(compliance.admittance.position - start).max() < 1e-3
    adapter.torque = np.zeros((1, robot.n))
    for tick in range(400, 900):
        now = State(1e-3 * tick, state.position, state.velocity, state.torque)
        compliance.command(now, ComplianceAction(start, turn, stiffness, None, None, wrench))
    assert compliance.felt.trusted.all()
    assert (compliance.admittance.position - start)[0, 0, 0] > 0.01  # free again: it presses
