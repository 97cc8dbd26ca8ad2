"""What is identified: charts of links that can exist, errors that shrink, cards that say the same torques."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.identify.from_log import from_log
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import fit
from retorque.identify.report.advice import advice, coverage, sharpness
from retorque.identify.report.model_files import export
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.inertia import pseudo_inertia, robot_inertia
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Simulate = Callable[..., Any]
torch = pytest.importorskip("torch")

from retorque.identify.methods.virtual import (  # noqa: E402 (after the check that torch is there)
    barycentric,
    barycentric_virtual,
    newton_euler,
    newton_euler_virtual,
)

CHARTS = {"barycentric": (barycentric, barycentric_virtual), "newton-euler": (newton_euler, newton_euler_virtual)}
NUMBERS = st.lists(st.floats(-5.0, 5.0), min_size=10, max_size=10)


@pytest.mark.parametrize("chart", CHARTS)
@settings(max_examples=40, deadline=None)
@given(virtual=NUMBERS)
def test_any_ten_numbers_are_a_link_that_can_exist(chart: str, virtual: list[float]) -> None:
    ten = CHARTS[chart][0](torch.tensor(virtual, dtype=torch.float64)).numpy()
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(ten))
    assert eigenvalues[0] > -1e-9 * max(1.0, eigenvalues[-1]) and ten[0] > 0.0


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("name", ("panda", "z1", "ur10e", "iiwa14"))
def test_a_cards_links_have_coordinates_in_every_chart(chart: str, name: str) -> None:
    there, back = CHARTS[chart]
    links = robot_inertia(Robot.load(name))
    matrix = pseudo_inertia(links)
    matrix[:, :3, :3] += 1e-4 * matrix[:, 3, 3][:, None, None] * np.eye(3)  # rods have no thickness
    from retorque.physics.inertia import from_pseudo_inertia

    thick = from_pseudo_inertia(matrix)
    np.testing.assert_allclose(there(torch.tensor(back(thick))).numpy(), thick, rtol=1e-4, atol=2e-6)


def noisy(truth: Any, noise: float, seed: int = 0, repeat: int = 1) -> Motion:
    m = truth.motion
    rng = np.random.default_rng(seed)
    stacked = {name: np.concatenate([getattr(m, name)] * repeat) for name in ("q", "qd", "qdd", "torque")}
    stacked["torque"] = stacked["torque"] + noise * rng.standard_normal(stacked["torque"].shape)
    period = float(np.median(np.diff(m.time)))
    return Motion(**stacked, time=period * np.arange(len(stacked["q"])))


@pytest.fixture(scope="module")
def truth(simulate: Simulate) -> Any:
    return simulate("z1", preset("coulomb-viscous"), seconds=4.0, rate=60.0)


@pytest.fixture(scope="module", params=("wls", "sdp"))
def estimate(request: pytest.FixtureRequest, truth: Any) -> Estimate:
    return fit(noisy(truth, 0.02), truth.robot, truth.friction, request.param)


def test_its_torques_are_those_of_its_numbers(estimate: Estimate, truth: Any) -> None:
    m = truth.motion
    body = RigidBody(truth.robot)
    by_rows = estimate.layout.torque(body, estimate.parameters, m.q, m.qd, m.qdd)
    np.testing.assert_allclose(estimate.torque(m), by_rows, atol=1e-6)
    np.testing.assert_allclose(estimate.residual(m), m.torque - by_rows, atol=1e-6)
    score = estimate.score(m)
    np.testing.assert_allclose(score.rmse, np.sqrt(np.mean((m.torque - by_rows) ** 2, axis=0)), atol=1e-6)
    assert score.samples == len(m) and np.all(score.relative < 0.1) and np.all(score.rmse < 0.02)
    assert np.all(np.abs(estimate.noise - 0.02) < 0.004)


def test_errors_are_symmetric_positive_and_no_larger_than_the_cards(estimate: Estimate) -> None:
    covariance = estimate.covariance
    np.testing.assert_allclose(covariance, covariance.T, rtol=1e-6, atol=1e-12)
    assert np.all(np.linalg.eigvalsh(covariance) > -1e-9)
    assert np.all(estimate.standard_errors <= 1.001 * estimate.prior_deviation)
    dependent = np.setdiff1d(np.arange(len(estimate.parameters)), estimate.base.independent)
    assert not estimate.felt_errors[dependent].any() and np.all(estimate.felt_errors[estimate.base.independent] > 0.0)


def test_more_noise_is_more_error_and_more_data_is_less(truth: Any) -> None:
    plain, loud, longer = (
        fit(data, truth.robot, truth.friction, "wls")
        for data in (noisy(truth, 0.02), noisy(truth, 0.2), noisy(truth, 0.02, repeat=4))
    )
    finite = np.isfinite(plain.base_deviation) & np.isfinite(longer.base_deviation)
    np.testing.assert_allclose(np.median((loud.base_deviation / plain.base_deviation)[finite]), 10.0, rtol=0.2)
    np.testing.assert_allclose(np.median((plain.base_deviation / longer.base_deviation)[finite]), 2.0, rtol=0.2)


def test_the_order_of_samples_means_nothing_to_what_is_found(truth: Any) -> None:
    data = noisy(truth, 0.02)
    mixed = data[np.random.default_rng(1).permutation(len(data))]
    one, other = (fit(motion, truth.robot, truth.friction, "ols") for motion in (data, mixed))
    np.testing.assert_allclose(other.base_values, one.base_values, rtol=1e-5, atol=1e-6)


def test_a_card_says_the_same_torques_in_every_format(estimate: Estimate, tmp_path: Path) -> None:
    if not estimate.physical:
        with pytest.raises(RetorqueError, match="--method sdp"):
            export(estimate, tmp_path)
        assert not list(tmp_path.iterdir())
        return
    files = export(estimate, tmp_path / "new", name="mine")
    assert {path.name for path in files.values()} == {"mine.toml", "mine.urdf", "mine.xml"}
    rng = np.random.default_rng(0)
    q, qd, qdd = estimate.robot.home + 0.3 * rng.standard_normal((5, 6)), *rng.standard_normal((2, 5, 6))
    wanted = estimate.body.inverse_dynamics(q, qd, qdd)
    for kind, path in files.items():
        robot = load(path)
        found = RigidBody(robot).inverse_dynamics(q, qd, qdd)
        if kind == "urdf":  # has no place for rotors
            found = found + (estimate.armature - robot.armature) * qdd
        np.testing.assert_allclose(found, wanted, atol=2e-4, err_msg=kind)
    card = load(files["card"])
    assert card.uncertainty is not None and "identified by sdp" in card.source
    own = Parameters.of_robot(card)
    friction = own.friction.torque(qd, own.friction_coefficients)
    np.testing.assert_allclose(friction, estimate.friction.torque(qd, estimate.coefficients), atol=1e-6)


def test_one_call_from_a_file_is_the_same_as_its_steps(truth: Any, tmp_path: Path) -> None:
    m = noisy(truth, 0.01)
    np.savez(tmp_path / "log.npz", time=m.time, q=m.q, qd=m.qd, tau=m.torque)
    model = from_log(tmp_path / "log.npz", truth.robot, method="wls", friction="coulomb-viscous")
    assert isinstance(model, Estimate) and np.all(model.score(truth.motion).relative < 0.3)
    gains = from_log(
        [tmp_path / "log.npz"] * 2, truth.robot, method="wls", friction="coulomb-viscous",
    )  # fmt: skip
    assert gains.samples == 2 * model.samples
    with pytest.raises(RetorqueError, match="unknown friction"):
        from_log(tmp_path / "log.npz", truth.robot, friction="slippery")


def test_advice_is_about_what_a_joint_did(estimate: Estimate, truth: Any) -> None:
    seen = coverage(truth.motion, truth.robot)
    np.testing.assert_allclose(seen.span, np.ptp(truth.motion.q, axis=0))
    assert np.all(sharpness(estimate) > 0.0) and np.all((seen.still >= 0.0) & (seen.still <= 1.0))
    lazy = replace(seen, reversals=np.array([0, *seen.reversals[1:]]), span_part=np.array([0.01, *seen.span_part[1:]]))
    words = " ".join(advice(estimate, lazy, [0.1] * 6))
    first = truth.robot.joint_names[0]
    assert f"{first} changed direction 0 times" in words and f"{first} used 1 % of its range" in words
    foreign = " ".join(advice(estimate, seen, [0.1] * 6, [0.1, 0.9, *[0.1] * 4]))
    assert "more than three times the training error" in foreign and truth.robot.joint_names[1] in foreign
