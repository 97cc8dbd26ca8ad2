"""Wrenches on the motor-level plant, and what the estimate says when reports are broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from retorque.control.comply.comply_code import ComplyCode
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import JointMotors
from retorque.robots.state import MotorReport, State
from retorque.sense.adapter_torque import AdapterTorque
from retorque.sense.external_torque import QuasiStatic, TorqueSettings
from retorque.sense.gear_friction import STATIC, GearFriction
from retorque.sense.momentum import Momentum, welded
from retorque.sense.public_estimator import PublicCodeEstimator
from retorque.sense.wrench_estimator import EstimatorSettings, WrenchEstimator, own_joints
from retorque.tasks.embodiments import embodiment
from retorque.tasks.push_task import PushSettings, PushTask


@pytest.fixture(scope="module")
def arx() -> tuple[PushTask, list[State], np.ndarray]:
    task = PushTask(embodiment("arx_x5"), PushSettings(trials=2, seed=1001, speed=0.3))
    return task, *task.record()


def _estimator(task: PushTask, kind: type[QuasiStatic] = Momentum) -> WrenchEstimator:
    body, trials = task.body, task.settings.trials
    torque = kind(task.robot, trials, settings=TorqueSettings(noise=body.noise))
    return WrenchEstimator(task.robot, body.sites, torque, body.prior, trials=trials)


def _errors(made: WrenchEstimator, states: list[State], truth: np.ndarray) -> tuple[np.ndarray, list[int]]:
    off, codes = [], []
    for state, force in zip(states, truth, strict=True):
        estimate = made.update(state)
        off.append(estimate.wrench[..., :3] - force)
        codes.append(int(np.bitwise_or.reduce(estimate.codes)))
    return np.linalg.norm(np.array(off), axis=-1), codes


def test_pushes_are_felt_better_than_by_the_public_code(arx: tuple[PushTask, list[State], np.ndarray]) -> None:
    task, states, truth = arx
    ours, codes = _errors(_estimator(task), states, truth)
    theirs = QuasiStatic(task.robot, 2, settings=TorqueSettings(friction=False, smoothing=0.3, backdrive_gain=1.0))
    public, _ = _errors(PublicCodeEstimator(task.robot, task.body.sites, theirs, trials=2), states, truth)
    assert ours.mean() < 0.7
    assert ours.mean() < 0.6 * public.mean()
    assert not any(code & (ComplyCode.MISSING | ComplyCode.FROZEN | ComplyCode.SAG) for code in codes)


def test_the_covariance_holds_the_truth(arx: tuple[PushTask, list[State], np.ndarray]) -> None:
    task, states, truth = arx
    made, inside = _estimator(task), []
    for state, force in zip(states, truth, strict=True):
        estimate = made.update(state)
        off = estimate.wrench[..., :3] - force
        distance = np.einsum("tsi,tsij,tsj->ts", off, np.linalg.inv(estimate.covariance[..., :3, :3]), off)
        inside.append(distance < 7.815)
    assert 0.85 < np.mean(inside) <= 1.0


def _broken(report: MotorReport, change: Callable[[np.ndarray], None]) -> MotorReport:
    assert report.current is not None
    current = report.current.copy()
    change(current)
    return replace(report, current=current)


def _set(value: float) -> Callable[[np.ndarray], None]:
    def change(current: np.ndarray) -> None:
        current[:, 1] = value

    return change


def _flip(current: np.ndarray) -> None:
    current[:, 2] *= -1.0


@pytest.mark.parametrize(
    ("change", "code"),
    ((_set(np.nan), ComplyCode.MISSING), (_set(0.4), ComplyCode.FROZEN), (_flip, ComplyCode.UNEXPLAINED)),
    ids=("missing", "stuck", "swapped sign"),
)
def test_broken_reports_are_named_and_not_trusted(
    arx: tuple[PushTask, list[State], np.ndarray], change: Callable[[np.ndarray], None], code: ComplyCode
) -> None:
    task, states, _ = arx
    made = _estimator(task)
    found, worst, blind = 0, 0.0, []
    for tick, state in enumerate(states):
        broken = tick > 50
        assert state.motor is not None
        seen = replace(state, motor=_broken(state.motor, change)) if broken else state
        estimate = made.update(seen)
        assert np.isfinite(estimate.wrench).all()
        if broken:
            found |= int(np.bitwise_or.reduce(estimate.codes))
            trusted = np.where(estimate.trusted[..., None], estimate.wrench[..., :3], 0.0)
            worst = max(worst, float(np.abs(trusted).max()))
            blind.append(not estimate.trusted.all())
    assert found & code
    assert worst < 40.0  # what is acted upon stays bounded
    assert np.mean(blind) > 0.3


def test_a_sagging_bus_and_a_full_voltage_are_named() -> None:
    task = PushTask(embodiment("leap_hand"), PushSettings(trials=1, seed=1002))
    target = task.target()
    made = _estimator(task)
    target.servo.bus = 0.7
    state = target.read()
    assert state.motor is not None and state.motor.pwm is not None
    state.motor.pwm[:] = 1.0
    codes = int(made.update(state).codes[0])
    assert codes & ComplyCode.SAG and codes & ComplyCode.SATURATED


def test_free_space_is_tared_and_a_contact_is_not() -> None:
    task = PushTask(embodiment("leap_hand"), PushSettings(trials=1, seed=1003))
    states, truth = task.record()
    with_tare, _ = _errors(_estimator(task, QuasiStatic), states, truth)
    plain = _estimator(task, QuasiStatic)
    plain.settings = replace(plain.settings, tare=False)
    without, _ = _errors(plain, states, truth)
    rest = slice(40, 50)  # before the first push
    assert with_tare[rest].mean() < 0.6 * without[rest].mean()
    assert with_tare[50:].mean() < 1.1 * without[50:].mean()


def test_an_adapters_own_estimate_is_read_as_it_is() -> None:
    body = embodiment("arx_x5")
    robot = body.load()

    class Adapter:
        trials = 1

        def __init__(self) -> None:
            self.robot = robot

        def external_torque(self, time: float) -> np.ndarray:
            return np.array([[0.5, 0.0, -0.2, 0.0, 0.1, 0.0]])

    made = WrenchEstimator(robot, ("end_effector",), AdapterTorque(Adapter(), 0.01), body.prior)
    zero = np.zeros((1, robot.n))
    state = State(0.0, body.position(robot)[None], zero, zero)
    estimate = made.update(state)
    back = np.einsum("tsrn,tsr->tn", made.tree.jacobian, estimate.wrench)
    assert np.linalg.norm(back - Adapter().external_torque(0.0)) < np.linalg.norm(Adapter().external_torque(0.0))
    assert own_joints(made.tree).all()


def test_a_resting_joint_hides_its_static_friction_and_a_lag_counts() -> None:
    robot = welded(embodiment("arx_x5").load())
    joints = JointMotors.of(robot)
    friction = GearFriction(joints, 1, 0.02, 0.3)
    q, still, drive = np.zeros((1, robot.n)), np.zeros((1, robot.n)), np.zeros((1, robot.n))
    friction.reset(q)
    for _ in range(5):
        _, at_rest, *_ = friction.update(drive, q, still)
    np.testing.assert_allclose(np.sqrt(3.0 * at_rest[0]), STATIC * joints.coulomb, rtol=1e-4)
    resting = at_rest.copy()
    for _ in range(20):
        q = q + 0.02
        _, found, *_ = friction.update(drive, q, still + 1.0)
    sliding = found.copy()
    known = np.square(0.3 * joints.coulomb) + np.square(0.3 * joints.viscous)
    np.testing.assert_allclose(3.0 * sliding[0], known, rtol=1e-6)
    _, pausing, *_ = friction.update(drive, q, still)  # a joint that has only just stopped hides less than one at rest
    assert np.all(sliding < pausing) and np.all(pausing < 0.5 * resting)
    momentum = Momentum(robot, settings=TorqueSettings(signal="torque"), bandwidth=10.0)
    tree = CompiledTree(robot, (robot.end_effector,))
    state = State(0.0, robot.home[None], still, still)
    tree.at(state)
    torque = tree.gravity.copy()
    momentum.reset(state)
    spread = []
    for tick in range(60):
        pushed = torque - min(1.0, max(0.0, 0.05 * (tick - 20)))  # 1 N·m within 0.4 s, then steady
        lag = momentum.update(State(0.02 * tick, state.position, still, pushed), tree).lag
        assert lag is not None
        spread.append(lag.mean())
    assert spread[35] > spread[15] + 0.01  # behind while it grows
    assert spread[59] < spread[15] + 0.02  # and not long after


def test_friction_turns_round_soon_after_its_joint() -> None:
    joints = JointMotors.of(embodiment("toddlerbot_2xm").load())
    friction = GearFriction(joints, 1, 0.02, 0.3)
    n, q = len(joints.motors), np.zeros((1, len(joints.motors)))
    drive = np.full((1, n), 0.1)
    friction.reset(q)

    def lost(move: float) -> np.ndarray:
        q[:] += move
        return drive - friction.update(drive, q, np.zeros((1, n)))[0]

    for _ in range(20):
        ahead = lost(0.002)
    assert (ahead > 0.0).all()
    for _ in range(3):  # 6 mrad back at a speed that the reports round to nothing
        back = lost(-0.002)
    step = np.array([motor.position_step for motor in joints.motors])
    assert (back < 0.0)[0, step < 0.002].all()  # it opposes the motion of now


def test_what_rest_hides_widens_only_what_is_reported(arx: tuple[PushTask, list[State], np.ndarray]) -> None:
    task, states, _ = arx
    torques = [QuasiStatic(task.robot, 2, settings=TorqueSettings(noise=task.body.noise)) for _ in range(2)]
    less, more = (
        WrenchEstimator(task.robot, task.body.sites, torque, task.body.prior, EstimatorSettings(hiding=hiding), 2)
        for torque, hiding in zip(torques, (1.0, 3.0), strict=True)
    )
    wider = 0.0
    for state in states[:100]:
        a, b = less.update(state), more.update(state)
        np.testing.assert_array_equal(a.wrench, b.wrench)
        np.testing.assert_allclose(b.covariance - a.covariance, 2.0 * less.solve.beyond, atol=1e-9)
        wider = max(wider, float(np.abs(less.solve.beyond).max()))
    assert wider > 0.0
