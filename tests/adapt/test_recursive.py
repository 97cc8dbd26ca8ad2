"""The recursive adapter: its filter, what it learns, what it refuses, and how it moves a robot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.recursive.adapter import Recursive
from retorque.adapt.recursive.linear_model import LinearModel
from retorque.adapt.recursive.recursive_contact import RecursiveContact
from retorque.adapt.recursive.square_root_filter import SquareRootFilter
from retorque.adapt.recursive.unknowns import DEAD_ZONE, PER_JOINT, SCALE, joint_unknowns
from retorque.bench.tracking import ideal_motion
from retorque.loop.adapter import Adapter
from retorque.loop.health import Health
from retorque.loop.loop import Loop, run
from retorque.loop.memory import collect
from retorque.physics.actuator import command_for
from retorque.physics.inertia import pseudo_inertia
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import apply_inertial
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.array import Array


@pytest.fixture(scope="module")
def panda() -> Robot:
    return Robot.load("panda")


def moved(task: TrackingTask, adapter: Adapter, **options: Any) -> Array:
    """Joint errors against the ideal robot's motion, (ticks, trials, n) [deg]."""
    ideal = ideal_motion(task)
    target = task.target(threads=1)
    loop = Loop(target, task.reference, task.controller(), adapter)
    trace = run(loop, task.settings.duration, **{"before": task.events(target), **options})
    return np.rad2deg(trace.position - ideal.position)


def adopt(adapter: Adapter) -> None:
    belief = adapter.learn()
    if belief is not None:
        adapter.adopt(belief)


def rmse(error: Array) -> Array:
    return np.sqrt(np.mean(error**2, axis=(0, 2)))


def test_filter_is_the_kalman_filter() -> None:
    rng = np.random.default_rng(0)
    size, m = 9, 3
    filter_ = SquareRootFilter(2, size, forgetting=1.0)
    mean, covariance = np.zeros((2, size)), np.stack([np.eye(size)] * 2)
    for _ in range(40):
        rows, measured = rng.normal(size=(2, m, size)), rng.normal(size=(2, m))
        noise = rng.uniform(0.1, 2.0, (2, m))
        expected, spread = filter_.predict(rows)
        filter_.update(measured - expected, rows, spread, noise)
        for t in range(2):
            gain = covariance[t] @ rows[t].T @ np.linalg.inv(rows[t] @ covariance[t] @ rows[t].T + np.diag(noise[t]))
            mean[t] += gain @ (measured[t] - rows[t] @ mean[t])
            covariance[t] -= gain @ rows[t] @ covariance[t]
    np.testing.assert_allclose(filter_.mean, mean, atol=1e-9)
    np.testing.assert_allclose(filter_.root @ np.swapaxes(filter_.root, -1, -2), covariance, atol=1e-9)


def test_forgetting_leaves_unexcited_directions_alone_and_stays_within_the_prior() -> None:
    rng = np.random.default_rng(1)
    size = 8
    filter_ = SquareRootFilter(1, size, forgetting=0.95)
    for _ in range(2000):
        rows = np.zeros((1, 2, size))
        rows[..., :4] = rng.normal(size=(1, 2, 4))  # the last four are never excited
        expected, spread = filter_.predict(rows)
        filter_.update(rng.normal(size=(1, 2)) - expected, rows, spread, np.full((1, 2), 0.5))
    covariance = filter_.root[0] @ filter_.root[0].T
    np.testing.assert_allclose(covariance[4:, 4:], np.eye(4), atol=1e-9)
    np.testing.assert_allclose(filter_.mean[0, 4:], 0.0, atol=1e-12)
    assert np.linalg.eigvalsh(covariance)[-1] < 1.0 + 1e-6
    assert np.linalg.eigvalsh(covariance)[0] > 1e-3  # it still listens


def test_forgetting_follows_a_change() -> None:
    rng = np.random.default_rng(2)
    filter_ = SquareRootFilter(1, 4, forgetting=0.98)
    truth = np.array([0.5, -0.5, 0.2, 0.0])
    for step in range(3000):
        if step == 2000:
            truth = np.array([-0.5, 0.5, 0.2, 0.8])
        rows = rng.normal(size=(1, 2, 4))
        measured = rows @ truth + 0.1 * rng.normal(size=(1, 2))
        expected, spread = filter_.predict(rows)
        filter_.update(measured - expected, rows, spread, np.full((1, 2), 0.01))
    np.testing.assert_allclose(filter_.mean[0], truth, atol=0.1)


@pytest.mark.parametrize("minutes", (4, pytest.param(60, marks=pytest.mark.slow)))
def test_covariance_stays_positive_over_simulated_minutes(minutes: int) -> None:
    rng = np.random.default_rng(3)
    size, m = 10, 2
    filter_ = SquareRootFilter(1, size, forgetting=0.997)
    basis = rng.normal(size=(64, 1, m, size)) * np.logspace(0, -4, size)  # some directions are hardly ever seen
    noise = np.full((1, m), 1e-4)
    for step in range(minutes * 60 * 100):  # 100 updates a second
        rows = basis[step % 64]
        expected, spread = filter_.predict(rows)
        filter_.update(0.01 - expected, rows, spread, noise)
    values = np.linalg.eigvalsh(filter_.root[0] @ filter_.root[0].T)
    assert np.all(np.isfinite(filter_.mean)) and values[0] > 0.0
    width = np.sum(filter_.root[0] ** 2, axis=1)
    assert width.max() < 1.05  # nothing is ever less certain than before any motion


def test_model_explains_the_command_of_sampled_targets(panda: Robot) -> None:
    model = LinearModel(panda)
    p = Parameters.sample(panda, model.profile, 20, 1001)
    rng = np.random.default_rng(4)
    q = panda.home + rng.uniform(-0.5, 0.5, (20, 7))
    qd, qdd = rng.normal(0.0, 0.7, (20, 7)), rng.normal(0.0, 2.0, (20, 7))
    effective = apply_inertial(model.body, p.total_inertial(panda), q, qd, qdd) + p.armature * qdd
    torque = command_for(effective, qd, p)
    joint = joint_unknowns(p)
    features = model.joint_features(qd, qdd, model.sign(torque), torque)
    told = apply_inertial(model.body, p.total_inertial(panda), q, qd, qdd) + np.einsum("tjf,tjf->tj", features, joint)
    error = np.abs(told - torque)[np.abs(torque) > 0.2]
    assert np.percentile(error, 95) < 0.12  # [N·m]: friction in a small basis
    assert np.median(error) < 0.03


def test_rows_are_the_derivative_of_the_unknowns(panda: Robot) -> None:
    model = LinearModel(panda)
    rng = np.random.default_rng(5)
    q, qd, qdd = panda.home + rng.uniform(-0.3, 0.3, (1, 7)), rng.normal(size=(1, 7)), rng.normal(size=(1, 7))
    features = model.joint_features(qd, qdd, np.ones((1, 7)), np.full((1, 7), 3.0))
    regressor = model.body.regressor(q, qd, qdd)
    prior, rows = model.rows(regressor, features, np.zeros((1, 7)))
    z = rng.normal(size=(1, model.size))
    joint, inertial = model.unknowns(z)
    direct = np.matmul(regressor, inertial[..., None])[..., 0] + np.einsum("tjf,tjf->tj", features, joint)
    np.testing.assert_allclose(prior + np.matmul(rows, z[..., None])[..., 0], direct, atol=1e-9)


def test_the_tick_is_the_model_in_another_layout(panda: Robot) -> None:
    adapter = Recursive(panda, 3)
    model = adapter.model
    rng = np.random.default_rng(8)
    adapter._filter.mean[:] = 0.2 * rng.normal(size=adapter._filter.mean.shape)
    adapter._disturbance.torque[:] = rng.normal(size=(3, 7))
    adapter._refresh()
    q = panda.home + rng.uniform(-0.3, 0.3, (3, 7))
    qd, qdd = rng.normal(0.0, 0.3, (3, 7)), rng.normal(0.0, 3.0, (3, 7))
    joint, _ = model.unknowns(adapter._filter.mean)
    zero = np.zeros((3, 7))
    features = model.joint_features(qd + 1e-3 * qdd, qdd, zero, zero)
    torque = np.matmul(model.body.regressor(q, qd, qdd), adapter._estimate["inertial"])[..., 0]
    torque += np.einsum("tjf,tjf->tj", features, joint) + adapter._disturbance.torque
    told = model.joint_features(zero, zero, model.sign(torque), zero)
    dead = np.sum(told[..., DEAD_ZONE] * joint[..., DEAD_ZONE], axis=-1)
    gain = 1.0 + np.where(torque > 0.0, *np.moveaxis(joint[..., SCALE], -1, 0))
    command = (torque + dead) / gain
    np.testing.assert_allclose(adapter._inverse(adapter._estimate, q, qd, qdd), command, atol=1e-9)


def test_a_push_that_turns_the_drives_round_is_felt_without_their_dead_zones(panda: Robot) -> None:
    adapter = Recursive(panda, 3)
    rng = np.random.default_rng(9)
    adapter._filter.mean[:] = 0.2 * rng.normal(size=adapter._filter.mean.shape)
    adapter._refresh()
    estimate, inverse = dict(adapter._estimate), adapter._inverse
    gain, dead = 0.9, 0.8
    for side in ("push", "pull"):
        estimate[side] = np.stack([np.full((3, 7), dead), np.full((3, 7), gain)])
    q = panda.home + rng.uniform(-0.3, 0.3, (3, 7))
    qd, qdd = rng.normal(0.0, 0.3, (3, 7)), rng.normal(0.0, 3.0, (3, 7))
    for push in (-90.0, 90.0):  # stronger than any of its own torques
        given = inverse(estimate, q, qd, qdd, np.full((3, 7), push))
        assert np.all(given * push < 0.0)
        felt = inverse(estimate, q, qd, qdd, given=given) - given
        np.testing.assert_allclose(felt, push / gain, rtol=1e-9)
        turned = inverse(estimate, q, qd, qdd) * given < 0.0
        assert turned.any()
        wrong = inverse(estimate, q, qd, qdd)[turned] - given[turned] - push / gain
        assert np.abs(wrong).max() > 1.9 * dead / gain


def test_it_moves_a_hidden_panda_like_the_ideal_one(panda: Robot) -> None:
    task = TrackingTask(panda, TrackingSettings(trials=3, seed=1002, duration=8.0, noise=True))
    without = rmse(moved(task, make("direct", panda, 3)))
    adapter = Recursive(panda, 3)
    with_it = rmse(moved(task, adapter))
    assert np.all(with_it < 0.15 * without)
    assert np.all(with_it < 0.5)
    readout = adapter.readout(0)
    masses = [u for u in readout.unknowns if u.name == "link7 mass"]
    truth = task.parameters.total_inertial(panda)[0, 6, 0]
    assert abs(masses[0].value - truth) < 4.0 * masses[0].std + 0.05
    assert len(readout.unexcited) > 0 and "armature" in str(readout)


def test_it_invents_nothing_on_the_ideal_robot(panda: Robot) -> None:
    task = TrackingTask(panda, TrackingSettings(trials=3, seed=1003, duration=8.0, noise=True, nothing_hidden=True))
    without = rmse(moved(task, make("direct", panda, 3)))
    for cls in (Recursive, RecursiveContact):
        assert np.all(rmse(moved(task, cls(panda, 3))) < without + 0.05)


def test_contact_is_let_through_and_felt(panda: Robot) -> None:
    task = TrackingTask(panda, TrackingSettings(trials=2, seed=1004, duration=10.0, noise=True, contact=True))
    adapter = RecursiveContact(panda, 2)
    felt: list[tuple[Array, Array]] = []
    ideal, target = ideal_motion(task), task.target(threads=1)
    pushes = task.pushes(target)

    def before(tick: int) -> None:
        pushes(tick)
        if tick >= 4000 and tick % 20 == 0:
            assert task.pulses is not None
            felt.append((task.pulses.at(tick * 1e-3), adapter.external_torque(tick * 1e-3)))

    loop = Loop(target, task.reference, task.controller(), adapter)
    error = rmse(np.rad2deg(run(loop, 10.0, before=before).position - ideal.position))
    without = rmse(moved(task, make("direct", panda, 2)))
    assert np.all(error < 0.3 * without)
    true, estimated = (np.array(x) for x in zip(*felt, strict=True))
    strong = np.max(np.abs(true) / panda.torque_limit, axis=-1) > 0.05
    assert strong.any()
    left = np.linalg.norm((true - estimated)[strong], axis=-1) / np.linalg.norm(true[strong], axis=-1)
    assert np.median(left) < 0.25


@pytest.mark.parametrize("cls", [Recursive, RecursiveContact])
def test_links_stay_feasible_whatever_is_reported(panda: Robot, cls: type[Recursive]) -> None:
    rng = np.random.default_rng(6)
    adapter = cls(panda, 2)
    for tick in range(400):
        noise = rng.normal(size=(3, 2, 7))
        adapter.observe(State(tick * 1e-3, panda.home + noise[0], 3.0 * noise[1], 40.0 * noise[2]))
        if tick % adapter.learn_every == 0:
            adopt(adapter)
            values = np.linalg.eigvalsh(pseudo_inertia(adapter.belief.arrays["inertial"].reshape(2, -1, 10)))
            assert values.min() > 0.0
    assert np.all(np.isfinite(adapter.correct(State(0.4, panda.home + noise[0], noise[1], noise[2]), noise[2])))


def test_bad_reports_are_skipped_and_said(panda: Robot) -> None:
    adapter = Recursive(panda, 2)
    rng = np.random.default_rng(7)

    def state(time: float) -> State:
        return State(time, panda.home + 0.01 * rng.normal(size=(2, 7)), 0.1 * rng.normal(size=(2, 7)), np.ones((2, 7)))

    for tick in range(60):
        adapter.observe(state(tick * 1e-3))
    adapter.learn()
    before = adapter._filter.mean.copy()
    for tick in range(60, 65):  # one joint of one robot stops reporting for longer than can be bridged
        broken = state(tick * 1e-3)
        broken.velocity[0, 3] = np.nan
        adapter.observe(broken)
    adapter.learn()
    assert adapter.health[0] & Health.SKIPPED and not adapter.health[1] & Health.SKIPPED
    np.testing.assert_array_equal(adapter._filter.mean[0], before[0])
    assert np.any(adapter._filter.mean[1] != before[1])
    total = adapter.history.total
    adapter.observe(state(0.064))  # repeated
    adapter.observe(state(0.020))  # late
    assert adapter.history.total == total
    adapter.observe(state(0.200))  # a gap: no slope may be taken across it
    before = adapter._filter.mean.copy()
    adapter.learn()
    assert np.all(adapter.health & Health.SKIPPED)
    np.testing.assert_array_equal(adapter._filter.mean, before)


def test_what_is_not_learnt_from_is_no_evidence(panda: Robot) -> None:
    adapter = Recursive(panda, 1)
    rate = np.linspace(1.0, 3.0, panda.n)

    def report(tick: int, broken: bool) -> None:
        angle = rate * tick * 1e-3
        torque = np.full((1, panda.n), np.nan) if broken else 20.0 * np.sin(angle)[None]
        adapter.observe(
            State(tick * 1e-3, (panda.home + 0.2 * np.sin(angle))[None], 0.2 * (rate * np.cos(angle))[None], torque)
        )
        if tick % 10 == 9:
            adopt(adapter)

    for tick in range(300):
        report(tick, broken=False)
    trust = float(adapter.belief.arrays["trust"][0, 0])
    assert trust > 0.99
    for tick in range(300, 1500):
        report(tick, broken=True)
    assert float(adapter.belief.arrays["trust"][0, 0]) == trust


def test_reset_forgets(panda: Robot) -> None:
    adapter = RecursiveContact(panda, 1)
    fresh = {name: value.copy() for name, value in collect(adapter).items()}
    torque = adapter.model.body.gravity(panda.home[None]) + 0.5
    for tick in range(200):
        adapter.observe(State(tick * 1e-3, panda.home[None], np.full((1, 7), 0.1), torque))
        if tick % adapter.learn_every == 0:
            adopt(adapter)
    assert np.any(adapter._filter.mean != 0.0)
    adapter.reset()
    for name, value in collect(adapter).items():
        if not name.startswith(("history._rows", "history._valid")):  # what lies in the ring is not looked at
            np.testing.assert_array_equal(value, fresh[name], err_msg=name)


def test_every_robot_with_any_number_of_joints() -> None:
    for name in ("z1", "ur10e", "leap_hand"):
        robot = Robot.load(name)
        adapter = make("recursive", robot, 2)
        q = np.broadcast_to(robot.home, (2, robot.n))
        for tick in range(30):
            adapter.observe(State(tick * 1e-3, q, 0.0 * q, 0.0 * q))
        adopt(adapter)
        out = adapter.correct(State(0.03, q, 0.0 * q, 0.0 * q), 0.0 * q)
        assert out.shape == (2, robot.n) and np.all(np.isfinite(out))
        assert LinearModel(robot).size > robot.n * PER_JOINT


def test_payload_step_is_followed(panda: Robot) -> None:
    settings = TrackingSettings(trials=2, seed=1005, duration=12.0, noise=True, payload_step=1.0)
    task = TrackingTask(panda, replace(settings))
    adapter = Recursive(panda, 2)
    ideal = ideal_motion(task)
    target = task.target(threads=1)
    trace = run(Loop(target, task.reference, task.controller(), adapter), 12.0, before=task.events(target))
    error = np.rad2deg(trace.position - ideal.position)
    assert np.all(rmse(error[trace.time > 7.0]) < 0.3)  # a second of motion after the payload
