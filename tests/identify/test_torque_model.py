"""What every model says of itself: errors over a motion, however it is cut, as tables and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import fit
from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.report.summary import PHYSICAL, as_json, base_table, joint_table, link_table, motor_table
from retorque.identify.verdict.verdict import Verdict
from retorque.logs.clean import Dropped
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.robots.robot import Robot
from retorque.work.array import Array

ARM = Robot.load("z1")
TRUST = Verdict(verdict="trust")


@dataclass(frozen=True, kw_only=True)
class Constant(TorqueModel):
    """A model that always says the same."""

    said: float = 0.0

    def torque(self, motion: Motion) -> Array:
        return np.full_like(motion.torque, self.said)


@dataclass
class Pieces:
    """A motion that comes in pieces of any size."""

    motion: Motion
    size: int

    def chunks(self) -> Iterator[Motion]:
        return self.motion.chunks(self.size)


MODEL = Constant(robot=ARM, method="constant", samples=7, note="knows nothing")
MOTION = Motion.of(*np.random.default_rng(0).normal(0.0, 2.0, (4, 500, ARM.n)))


def shown(table: Any) -> str:
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(table)
    return console.export_text()


@pytest.mark.parametrize("size", [1, 7, 499, 500, 9999])
def test_errors_do_not_depend_on_the_pieces(size: int) -> None:
    score = MODEL.score(Pieces(MOTION, size))
    np.testing.assert_allclose(score.rmse, np.sqrt(np.mean(MOTION.torque**2, axis=0)))
    np.testing.assert_allclose(score.relative, 1.0)
    assert score.samples == 500


def test_a_relative_error_is_over_the_torque_itself() -> None:
    torque = np.full_like(MOTION.torque, 4.0)
    score = replace(MODEL, said=3.0).score(replace(MOTION, torque=torque))
    np.testing.assert_allclose(score.rmse, 1.0)
    np.testing.assert_allclose(score.relative, 0.25)
    np.testing.assert_allclose(replace(MODEL, said=3.0).residual(MOTION), MOTION.torque - 3.0)


def test_nothing_to_score_is_no_error() -> None:
    score = MODEL.score(Pieces(MOTION[:0], 10))
    assert score.samples == 0 and not np.any(score.rmse)


def test_a_black_boxs_result_has_the_same_keys_and_nulls() -> None:
    score = MODEL.score(MOTION)
    content = as_json(MODEL, score, None, {"train": Dropped()}, {"robot": "z1"}, TRUST)
    assert all(content[name] is None for name in PHYSICAL) and content["note"] == "knows nothing"
    assert content["validation"] is None and content["verdict"] == "trust" and content["samples"] == 7
    assert len(json.loads(json.dumps(content, allow_nan=False))["train"]["rmse"]) == ARM.n


def test_a_joint_is_a_row_and_validation_two_columns() -> None:
    score = MODEL.score(MOTION)
    assert len(joint_table(MODEL, score, None).columns) == 3
    table = joint_table(MODEL, score, score)
    assert len(table.columns) == 5 and len(table.rows) == ARM.n
    text = shown(table)
    assert all(name in text for name in ARM.joint_names) and "constant" in text


@pytest.fixture(scope="module")
def estimate(simulate: Callable[..., Any]) -> Estimate:
    truth = simulate("z1", preset("presliding"), seconds=4.0)
    return fit(truth.motion, truth.robot, truth.friction, "sdp")


def test_dry_friction_that_is_known_as_a_sum_is_one_row(estimate: Estimate) -> None:
    text = shown(motor_table(estimate))
    assert "dry, together" in text and "presliding" not in text and "rotor" in text
    together = sum(
        estimate.coefficients[0, k] for k, name in enumerate(estimate.friction.names) if name.startswith("presliding")
    )
    assert f"{together:.3g} ±" in text


def test_every_term_of_a_joint_has_an_error(estimate: Estimate) -> None:
    names = [name for name, *_ in estimate.joint_terms]
    assert names == ["rotor", *estimate.friction.names]
    for _, unit, values, errors in estimate.joint_terms:
        assert unit and values.shape == errors.shape == (ARM.n,) and np.all(errors > 0.0)


def test_links_and_base_parameters_are_tables(estimate: Estimate) -> None:
    text = shown(link_table(estimate))
    assert all(link.name in text for link in ARM.moving_links) and "impossible" not in text
    assert len(base_table(estimate).rows) == estimate.base.rank
    broken = replace(estimate, parameters=np.where(np.arange(len(estimate.parameters)) == 0, -1.0, estimate.parameters))
    assert "impossible" in shown(link_table(broken)) and not broken.physical
