"""A robot on its feet that is pushed at the hand: it stands, says when it could not, and survives a frozen IMU."""

from __future__ import annotations

import numpy as np

from retorque.control.comply.balance import Balance, BalanceSettings, pitch_and_yaw, roll_of
from retorque.control.comply.compliance_action import ComplianceAction
from retorque.control.comply.comply_code import ComplyCode
from retorque.robots.command import Command
from retorque.robots.state import Base
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.simulate.scene import Floor, Scene
from retorque.tasks.embodiments import embodiment


def _standing(trials: int, settings: BalanceSettings) -> tuple[MotorTarget, Balance, np.ndarray]:
    body = embodiment("toddlerbot_2xm")
    robot = body.load()
    stiffness, damping = body.gains(robot)
    truth = MotorTruth.sample(robot, trials, 1004)
    target = MotorTarget(robot, truth, stiffness, damping, scene=Scene(objects=[Floor(friction=1.0)]))
    q = np.tile(body.position(robot), (trials, 1))
    pose = np.tile([0.0, 0.0, body.base_height, 1.0, 0.0, 0.0, 0.0], (trials, 1))
    target.reset(q, base=Base(pose, np.zeros((trials, 6))))
    feet = (body.feet[0], body.feet[1])
    return target, Balance(robot, feet, body.sites, stiffness, body.sole, trials, settings=settings), q


def _asks(trials: int, force: float) -> ComplianceAction:
    wrench = np.zeros((trials, 2, 6))
    wrench[:, 1, 0] = force
    return ComplianceAction(np.zeros((trials, 2, 3)), np.tile(np.eye(3), (trials, 2, 1, 1)), np.eye(6), wrench=wrench)


def _pushed(settings: BalanceSettings, force: float, frozen: bool = False) -> tuple[float, bool, int]:
    """Largest pitch, whether it fell, and the codes, under a force at the right hand."""
    target, balance, q = _standing(1, settings)
    pitches, codes, orientation = [], 0, None
    for tick in range(160):
        pull = np.zeros((1, 2, 3))
        pull[:, 1, 0] = -force * min(1.0, max(0.0, (tick - 40) / 25))
        target.push_frame("right_hand_centre", pull[:, 1])
        state = target.read()
        assert state.base is not None
        if tick == 0:
            balance.reset(state, q)
        if frozen:
            if orientation is None:
                orientation = state.base.pose[:, 3:].copy()
            state.base.pose[:, 3:] = orientation
        balance.locate(state)
        balance.feel(pull)
        action = balance.limit(_asks(1, force * (tick > 30)))
        told = q.copy()
        balance.adjust(state, action, told)
        codes |= int(balance.codes[0])
        target.write(Command(position=told))
        pitches.append(float(np.abs(pitch_and_yaw(target.base_pose()[:, 3:])[0]).max()))
    return max(pitches), bool(target.base_pose()[0, 2] < 0.2), codes


def test_five_newtons_at_the_hand_hardly_tilt_it_and_fell_it_without_balance() -> None:
    pitch, fell, codes = _pushed(BalanceSettings(), 5.0)
    assert not fell and pitch < 0.03 and not codes & ComplyCode.FORCE
    bare = BalanceSettings(feedback=False, feed_forward=False, lean=0.0)
    pitch, fell, _ = _pushed(bare, 5.0)
    assert fell or pitch > 0.05


def test_a_frozen_imu_is_named_and_feed_forward_carries_on() -> None:
    pitch, fell, codes = _pushed(BalanceSettings(), 3.0, frozen=True)
    assert codes & ComplyCode.IMU
    assert not fell and pitch < 0.1


def test_commands_beyond_the_tipping_limit_are_capped() -> None:
    target, balance, q = _standing(2, BalanceSettings())
    state = target.read()
    balance.reset(state, q)
    balance.locate(state)
    action = balance.limit(_asks(2, 30.0))
    assert action.wrench is not None
    assert np.all(balance.codes & ComplyCode.FORCE)
    assert np.all((balance.tipping > 6.0) & (balance.tipping < 10.0))  # about 7.9 N by hand
    np.testing.assert_allclose(action.wrench[:, 1, 0], 0.9 * balance.tipping)
    same = _asks(2, 4.0)
    assert balance.limit(same) is same


def test_leg_torques_are_statics_of_the_whole_robot() -> None:
    """A waist between both legs and the base carries what both feet do: without load it is told nothing sideways."""
    target, balance, q = _standing(1, BalanceSettings())
    state = target.read()
    balance.reset(state, q)
    balance.locate(state)
    hands = np.zeros((1, 2, 3))
    torque = balance._leg_torque(np.zeros((1, 2)), hands)[0]
    names = balance.robot.joint_names
    assert abs(torque[names.index("waist_roll")]) < 0.1  # half the weight at half the feet's distance is 0.7 N·m
    # A robot that is pushed sideways puts its weight on the other foot; one foot is never asked to lift.
    hands[0, 1, 1] = 1.0
    ankle = [names.index(f"{side}_knee") for side in ("left", "right")]
    pushed = balance._leg_torque(np.zeros((1, 2)), hands)[0]
    assert abs(pushed[ankle[0]]) > abs(torque[ankle[0]]) and abs(pushed[ankle[1]]) < abs(torque[ankle[1]])
    assert np.all(np.isfinite(balance._leg_torque(np.full((1, 2), 50.0), hands)))


def test_torso_roll_is_answered() -> None:
    half = 0.05
    turned = np.array([[np.cos(half), np.sin(half), 0.0, 0.0]])
    np.testing.assert_allclose(roll_of(turned), 2.0 * half)
    np.testing.assert_allclose(pitch_and_yaw(turned), 0.0, atol=1e-12)
    target, balance, q = _standing(1, BalanceSettings(feed_forward=False))
    state = target.read()
    assert state.base is not None
    balance.reset(state, q)
    told = []
    for sign in (1.0, -1.0):
        state.base.pose[:, 3:] = turned * np.array([1.0, sign, 1.0, 1.0])
        balance.locate(state)
        told.append(q.copy())
        balance.adjust(state, balance.limit(_asks(1, 0.0)), told[-1])
    knees = [balance.robot.joint_names.index(f"{side}_knee") for side in ("left", "right")]
    assert np.abs(told[0][0, knees] - told[1][0, knees]).min() > 0.01
