"""Policies that keep parameters: the paper's rules, the oracles, and what information finds and names."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest

from retorque.physics.dynamics import make_dynamics
from retorque.physics.parameters import Parameters
from retorque.physics.selection import Selection
from retorque.plan.modelling.confidence import Confidence, sliding_friction
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.plan.modelling.information import Information
from retorque.plan.modelling.model import Modeller
from retorque.plan.modelling.oracles import OracleModeller
from retorque.plan.modelling.published_modellers import Naive, Paper, Smooth, Weighted
from retorque.plan.modelling.window import SampleWindow
from retorque.plan.modelling.window_fit import WindowFit
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@pytest.fixture(scope="module")
def task() -> MpcTask:
    return make_task("cartpole")


@pytest.fixture(scope="module")
def fit(task: MpcTask) -> WindowFit:
    dynamics = make_dynamics(task.robot, task.timestep, backend="tree", selection=task.free.selection)
    return WindowFit(dynamics, task.free, np.full(4, task.noise))


def watch(
    modeller: Modeller, fit: WindowFit, steps: int, change_at: int, after: float, seed: int, push: float = 12.0
) -> list[Array | bool | int]:
    """Samples of a pushed cart-pole whose masses change by a factor; when changes were found, and the last model."""
    rng = np.random.default_rng(seed)
    window = SampleWindow(modeller.longest, 4, 1, fit.dynamics.timestep)
    p, x, found = np.array([1.0, 0.5]), np.array([0.0, 2.0, 0.0, 0.0]), []
    u = np.zeros(1)
    for k in range(steps):
        if k == change_at:
            p = p * after
        window.add(k * fit.dynamics.timestep, x + fit.noise * rng.standard_normal(4), u)
        model = modeller.update(window.samples()) if window.count > 1 else modeller.model
        if model.changed and (not found or found[-1] != k):
            found.append(k)
        u = np.array([push * np.sin(0.07 * k) + 0.3 * push * np.sin(0.23 * k) - 2.0 * x[0]])
        x = fit.dynamics.step(x, u, fit.free.whole(p))
    return found


def test_information_finds_a_change_within_ten_samples_and_none_where_there_is_none(fit: WindowFit) -> None:
    for seed in (1000, 1001, 1002):
        modeller = Information(fit.free, fit)
        found = watch(modeller, fit, 150, 80, 1.5, seed)
        assert found and 80 < found[0] <= 91, found
        assert modeller.model.window < 80
        np.testing.assert_allclose(modeller.model.p, [1.5, 0.75], rtol=0.15)


def test_information_grows_its_window_and_its_bands_hold_the_truth(fit: WindowFit) -> None:
    modeller = Information(fit.free, fit)
    assert watch(modeller, fit, 110, 1000, 1.0, 1003) == []
    model = modeller.model
    assert model.window == 101 and not model.frozen and model.confidence > 0.9
    assert np.all(np.abs(model.p - [1.0, 0.5]) < 3.0 * model.deviation) and np.all(model.deviation < 0.05)


def test_what_the_motion_does_not_show_is_frozen_and_named(fit: WindowFit, task: MpcTask) -> None:
    modeller = Information(task.free, fit)
    window = SampleWindow(60, 4, 1, 0.01)
    rng = np.random.default_rng(1)
    for k in range(40):  # hangs at rest: no mass shows
        window.add(0.01 * k, np.array([0.0, np.pi, 0.0, 0.0]) + fit.noise * rng.standard_normal(4), np.zeros(1))
        if window.count > 1:
            modeller.update(window.samples())
    assert modeller.model.frozen and set(modeller.model.frozen) <= set(task.free.labels)
    assert modeller.model.exploring
    np.testing.assert_allclose(modeller.model.p, task.free.guess, atol=0.5)


def make(kind: type[Naive], task: MpcTask, fit: WindowFit) -> Naive:
    confidence = Confidence(task.free, task.temperature)
    if kind is Paper:
        return Paper(task.free, fit, task.samples, confidence, change=task.change, least=task.least)
    return kind(task.free, fit, task.samples, confidence)


def test_the_published_policies_follow_their_rules(task: MpcTask, fit: WindowFit) -> None:
    quiet = WindowFit(fit.dynamics, task.free, np.full(4, 1e-6))
    for kind in (Naive, Smooth, Weighted, Paper):
        modeller = make(kind, task, quiet)
        watch(modeller, quiet, 40, 1000, 1.0, 0)
        np.testing.assert_allclose(modeller.model.p, [1.0, 0.5], rtol=2e-3)
    paper = make(Paper, task, quiet)
    assert isinstance(paper, Paper)
    start = paper.model
    low = paper._choose(start, np.array([3.0, 3.0]), 0.3)  # not sure enough: eps2 of Table I
    np.testing.assert_array_equal(low.p, start.p)
    moved = paper._choose(start, np.array([3.0, 3.0]), 0.8)  # a change beyond eps1: start anew
    np.testing.assert_array_equal(moved.p, [3.0, 3.0])
    near = paper._choose(moved, np.array([3.05, 3.0]), 0.8)  # averaged with equal weights
    np.testing.assert_allclose(near.p, [3.025, 3.0])
    for _ in range(11):
        low = paper._choose(near, near.p, 0.1)
    assert low.exploring and not paper._choose(low, low.p, 0.9).exploring


def test_oracles_know_and_know_late(task: MpcTask) -> None:
    truth = {"p": np.array([1.0, 1.0])}
    now, late = (OracleModeller(task.free, lambda: truth["p"], k) for k in (0, 3))
    window = SampleWindow(5, 4, 1, 0.01)
    for k in range(8):
        window.add(0.01 * k, np.zeros(4), np.zeros(1))
        truth["p"] = np.array([1.0, 1.0 + k])
        models = now.update(window.samples()), late.update(window.samples())
        assert models[0].p[1] == 1.0 + k and models[1].p[1] == 1.0 + max(0, k - 3)


def test_scores_are_the_papers_formulas(task: MpcTask, fit: WindowFit) -> None:
    rng = np.random.default_rng(2)
    states = rng.standard_normal((6, 4))
    scores = Confidence(task.free, 1.0).scores(states, 0.01)
    q, a = states[:-1, 1], np.diff(states[:, 2:], axis=0) / 0.01
    # The cart: J = (1, 0). The pole of 1 kg: centre at 0.5 m, inertia 1/12 about it.
    assert scores[0] == pytest.approx(np.sum(np.abs(a[:, 0])))
    row = a[:, 0] + 0.5 * np.cos(q) * a[:, 1]
    turn = 0.5 * np.cos(q) * a[:, 0] + (0.25 + 1.0 / 12.0) * a[:, 1] - 9.81 * 0.5 * np.sin(q)
    assert scores[1] == pytest.approx(np.sum(np.hypot(row, turn)), rel=1e-6)
    assert Confidence(task.free, 1.0, coriolis=True).scores(states, 0.01)[1] != pytest.approx(scores[1])
    rod = make_task("rod")
    states = rng.standard_normal((5, 8))
    np.testing.assert_allclose(Confidence(rod.free, 1.0).scores(states, 0.01), np.sum(np.abs(states[:-1, 1:4]), axis=0))
    for name in ("double-pendulum", "arm-centre", "arm-inertia"):
        other = make_task(name)
        value = Confidence(other.free, other.temperature).value(rng.standard_normal((5, 6)), 0.01)
        assert 0.0 < value < 1.0


def test_sliding_friction_scores_only_what_slides() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 0.1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1" mass="1"/></body></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    paths = []
    for speed in (0.0, 1.0):
        mujoco.mj_resetData(model, data)
        data.qvel[0] = speed
        rows = []
        for _ in range(30):
            rows.append(np.concatenate([data.qpos, data.qvel]))
            mujoco.mj_step(model, data)
        paths.append(sliding_friction(model, np.array(rows[10:]), model.opt.timestep))
    assert paths[1] > 10.0 > 100.0 * paths[0]


def test_free_parameters_are_checked(task: MpcTask) -> None:
    selection = Selection(task.robot, ["mass_scale"], Parameters.ideal(task.robot))
    with pytest.raises(RetorqueError, match="outside their bounds"):
        FreeParameters(selection, lower=[0.0, 0.0], upper=[1.0, 1.0], guess=[2.0, 0.5])
    with pytest.raises(RetorqueError, match="2 numbers each"):
        FreeParameters(selection, lower=[0.0], upper=[1.0], guess=[0.5])
    with pytest.raises(RetorqueError, match="is not selected"):
        FreeParameters(selection, columns=["mass"], lower=[0.0], upper=[1.0], guess=[0.5])
    with pytest.raises(RetorqueError, match="no confidence score"):
        rest = Selection(task.robot, ["torque_bias"], Parameters.ideal(task.robot))
        Confidence(FreeParameters(rest, lower=[-1.0] * 4, upper=[1.0] * 4, guess=[0.0] * 4), 1.0)
    assert replace(task, steps=3).steps == 3
