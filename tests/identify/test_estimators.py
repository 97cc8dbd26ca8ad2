"""Known parameters come back: exactly from clean data, within their errors from noisy data, and always possible."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from retorque.identify.methods.estimator import fit
from retorque.identify.regression.base import base_parameters
from retorque.identify.regression.factors import Factors, merge
from retorque.identify.regression.layout import Layout
from retorque.identify.regression.noise import autocorrelation_time
from retorque.logs.motion import Motion
from retorque.physics.friction import Friction, preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]


@pytest.mark.parametrize("method", ["ols", "wls", "sdp"])
@pytest.mark.parametrize("name", ["z1", "panda"])
def test_clean_data_gives_the_truth(simulate: Simulate, name: str, method: str) -> None:
    truth = simulate(name)
    estimate = fit(truth.motion, truth.robot, truth.friction, method)
    true_base = estimate.base.combination @ truth.vector
    assert np.allclose(estimate.base_values, true_base, rtol=1e-6, atol=1e-6)
    other = simulate(name, seed=5)
    predicted = estimate.predict(other.motion.q, other.motion.qd, other.motion.qdd)
    assert np.max(np.abs(predicted - other.motion.torque)) < 1e-5


def test_sdp_is_possible_where_least_squares_is_not(simulate: Simulate) -> None:
    truth = simulate("ur10e", seconds=6.0)
    rng = np.random.default_rng(0)
    noisy = replace(truth.motion, torque=truth.motion.torque + rng.standard_normal(truth.motion.torque.shape))
    free, bound = (fit(noisy, truth.robot, truth.friction, method) for method in ("wls", "sdp"))
    assert np.min(free.margins) < 0.0 and not free.physical
    assert np.min(bound.margins) > 0.0 and bound.physical
    assert np.all(bound.parameters[bound.layout.nonnegative] >= 0.0)


@pytest.mark.parametrize(("method", "seed"), [*(("sdp", seed) for seed in range(4)), ("diffbary", 1), ("diffnea", 1)])
def test_every_published_estimate_satisfies_the_inequality(simulate: Simulate, method: str, seed: int) -> None:
    if method != "sdp":
        pytest.importorskip("torch")
    truth = simulate("piper", seconds=2.0, seed=seed, truth_seed=seed)
    rng = np.random.default_rng(seed)
    size = 10.0**seed * 0.01  # up to nonsense
    noisy = replace(truth.motion, torque=truth.motion.torque + size * rng.standard_normal(truth.motion.torque.shape))
    estimate = fit(noisy, truth.robot, preset("presliding"), method)
    assert np.all(estimate.margins > 0.0) and estimate.physical
    reloaded = RigidBody(estimate.identified())  # what is exported
    wanted = estimate.body.inverse_dynamics(noisy.q, noisy.qd, noisy.qdd)
    assert np.allclose(reloaded.inverse_dynamics(noisy.q, noisy.qd, noisy.qdd), wanted, atol=1e-6)


@pytest.mark.parametrize("method", ["wls", "sdp"])
def test_errors_are_honest_under_correlated_noise(simulate: Simulate, method: str) -> None:
    truth = simulate("z1", seconds=10.0)
    rng = np.random.default_rng(3)
    base = base_parameters(Layout(truth.robot, truth.friction))
    true_base = base.combination @ truth.vector
    off = []
    for _ in range(30):
        white = rng.standard_normal(truth.motion.torque.shape) * np.array([0.2, 0.5, 0.4, 0.1, 0.1, 0.05])
        noise = np.zeros_like(white)
        for index in range(1, len(white)):  # remembers about nine samples
            noise[index] = 0.8 * noise[index - 1] + 0.6 * white[index]
        noisy = replace(truth.motion, torque=truth.motion.torque + noise)
        estimate = fit(noisy, truth.robot, truth.friction, method)
        off.append((estimate.base_values - true_base) / estimate.base_deviation)
    off = np.abs(np.array(off))
    assert np.mean(off < 3.0) >= 0.99
    if method == "wls":
        assert 0.6 < np.sqrt(np.mean(np.square(off))) < 1.4  # and not merely by being huge


def test_parameter_errors_contain_the_card_where_the_log_is_blind(simulate: Simulate) -> None:
    truth = simulate("panda", seconds=4.0)
    estimate = fit(truth.motion, truth.robot, truth.friction, "sdp")
    unseen = [estimate.names.index(name) for name in estimate.base.unseen if name.endswith(" link1")]
    assert np.allclose(estimate.standard_errors[unseen], estimate.prior_deviation[unseen], rtol=1e-3)
    assert any("no motion reveals: m link1" in sentence for sentence in estimate.unidentifiable)


def test_a_joint_that_stands_still_is_named(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=4.0)
    layout = Layout(truth.robot, truth.friction)
    q, qd, qdd = truth.motion.q.copy(), truth.motion.qd.copy(), truth.motion.qdd.copy()
    q[:, 5], qd[:, 5], qdd[:, 5] = 0.3, 0.0, 0.0
    torque = layout.torque(RigidBody(truth.robot), truth.vector, q, qd, qdd)
    estimate = fit(Motion.of(q, qd, qdd, torque, 0.01), truth.robot, truth.friction, "sdp")
    assert any("armature joint6" in text and "too little" in text for text in estimate.unidentifiable)
    assert np.all(estimate.margins > 0.0)


def test_base_parameters_of_known_robots() -> None:
    for name, inertial in (("ur10e", 36), ("panda", 43)):
        base = base_parameters(Layout(Robot.load(name), preset("none")))
        assert sum(text[0] in "mI" for text in base.names) == inertial
    assert "Izz link1" in base.names[0] and "armature joint1" in base.names[0]


def test_lift_changes_nothing_that_can_be_seen(simulate: Simulate) -> None:
    truth = simulate("panda", seconds=1.0)
    layout = Layout(truth.robot, truth.friction)
    base = base_parameters(layout)
    lifted = base.lift(base.combination @ truth.vector, layout.card)
    m = truth.motion
    again = layout.torque(RigidBody(truth.robot), lifted, m.q, m.qd, m.qdd)
    assert np.allclose(again, m.torque, atol=1e-8)
    assert np.allclose(lifted[base.dependent], layout.card[base.dependent])


def test_regressor_is_the_derivative_of_torque(simulate: Simulate) -> None:
    truth = simulate("piper", preset("presliding"), seconds=0.1)
    layout, body, m = Layout(truth.robot, truth.friction), RigidBody(truth.robot), truth.motion
    matrix = layout.matrix(body, m)
    for index in range(0, layout.size, 7):
        step = np.zeros(layout.size)
        step[index] = 1e-3
        high, low = (layout.torque(body, truth.vector + s * step, m.q, m.qd, m.qdd, m.slip) for s in (1.0, -1.0))
        assert np.allclose((high - low) / 2e-3, matrix[..., index], atol=1e-7)
    inertial, armature, coefficients = layout.unpack(truth.vector)
    dynamics = RigidBody(truth.robot, inertial, armature).inverse_dynamics(m.q, m.qd, m.qdd)
    assert np.allclose(matrix @ truth.vector, dynamics + truth.friction.torque(m.qd, coefficients, m.slip), atol=1e-9)


def test_factors_do_not_depend_on_how_the_log_was_cut(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=5.0)
    layout, body = Layout(truth.robot, truth.friction), RigidBody(truth.robot)
    vector = truth.vector + 0.01
    sums = []
    for size in (37, 500):
        factors = Factors(layout)
        for piece in truth.motion.chunks(size):
            factors.add(body, piece)
        assert all(len(factor) <= factor.shape[1] for factor in factors.of_joint)  # never grows with the log
        sums.append(factors.squared_residual(vector))
    halves = []
    for piece in (truth.motion[:200], truth.motion[200:]):
        half = Factors(layout)
        half.add(body, piece)
        halves.append(half)
    sums.append(merge(halves).squared_residual(vector))
    direct = truth.motion.torque - layout.torque(body, vector, truth.motion.q, truth.motion.qd, truth.motion.qdd)
    for found in sums:
        assert np.allclose(found, np.sum(np.square(direct), axis=0), rtol=1e-8)


def test_autocorrelation_time_of_known_noise() -> None:
    rng = np.random.default_rng(0)
    noise = np.zeros((60_000, 2))
    for index in range(1, len(noise)):
        noise[index] = np.array([0.0, 0.9]) * noise[index - 1] + rng.standard_normal(2)
    assert np.allclose(autocorrelation_time(noise), [1.0, 19.0], rtol=0.15)


def test_missing_packages_and_wrong_names_are_sentences(simulate: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    truth = simulate("z1", seconds=1.0)
    with pytest.raises(RetorqueError, match="did you mean 'sdp'"):
        fit(truth.motion, truth.robot, Friction(), "sdpp")
    for module in ("torch", "retorque.identify.methods.differentiable"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RetorqueError, match=r"pip install 'retorque\[train\]'"):
        fit(truth.motion, truth.robot, Friction(), "diffbary")


def test_other_joint_counts_and_too_few_samples_are_refused(simulate: Simulate) -> None:
    truth = simulate("z1", seconds=1.0)
    with pytest.raises(RetorqueError, match="6 joints"):
        fit(truth.motion, Robot.load("panda"), Friction())
    with pytest.raises(RetorqueError, match="longer motion"):
        fit(truth.motion[:5], truth.robot, Friction())
