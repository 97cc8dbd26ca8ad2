"""How findings become a verdict: levels, causes, sentences, scales, and residuals that follow a signal."""

from __future__ import annotations

import json

import numpy as np
import pytest

from retorque.identify.verdict.doubts import TorqueScales
from retorque.identify.verdict.verdict import CODES, HUGE, LARGE, ODD, Case, Verdict, _follows, _scale
from retorque.robots.robot import Robot

ARM = Robot.load("z1")
N = ARM.n
ALL = np.ones(N, dtype=bool)


def scaled(common: float = 1.0, **joints: float) -> Case:
    """What is said of an arm whose torques are so many times the card's, and some joints' by themselves."""
    each = np.full(N, common)
    for name, value in joints.items():
        each[int(name.removeprefix("joint")) - 1] = value
    case = Case()
    _scale(case, ARM, TorqueScales(joint=each, common=common), ALL)
    return case


def test_the_worst_finding_decides() -> None:
    case = Case()
    assert case.end({}).verdict == "trust" and case.end({}).code == 0
    case.add(0, "a remark")
    assert case.end({}).verdict == "trust" and case.reasons == ["a remark"]
    case.add(2, "worse", "sign")
    case.add(1, "less", "scale")
    case.add(1, "again", "sign")
    found = case.end({"figure": 1.0})
    assert found.verdict == "refuse" and found.causes == ("sign", "scale") and len(found.reasons) == 4


def test_every_verdict_has_its_exit_code() -> None:
    assert CODES == {"trust": 0, "doubt": 3, "refuse": 2}
    assert all(Verdict(verdict=word).code == code for word, code in CODES.items())


def test_a_verdict_is_json() -> None:
    found = Verdict(verdict="doubt", causes=("scale",), reasons=("why",), evidence={"torque": [1.0, None]})
    assert json.loads(json.dumps(found.as_json()))["evidence"]["torque"] == [1.0, None]


@pytest.mark.parametrize(
    ("common", "level"),
    [(1.0, 0), (0.95 * LARGE, 0), (1.05 * LARGE, 1), (1.05 / LARGE, 0), (0.95 / LARGE, 1), (1.05 * HUGE, 2), (0.01, 2)],
)
def test_a_common_scale_is_doubted_then_refused(common: float, level: int) -> None:
    case = scaled(common)
    assert case.level == level and case.causes == (["scale"] if level else [])
    assert not level or f"{common:.3g} times" in case.reasons[0]


def test_one_joint_against_the_others_is_doubted() -> None:
    assert scaled(1.2, joint3=1.2 * 0.9 * ODD).level == 0
    for factor in (1.1 * ODD, 1.0 / (1.1 * ODD)):
        case = scaled(1.2, joint3=1.2 * factor)
        assert case.level == 1 and ARM.joint_names[2] in case.reasons[0] and len(case.reasons) == 1
    assert scaled(1.0, joint3=np.nan).level == 0  # the card foresees too little there
    assert scaled(float("nan")).level == 0


def test_a_joint_at_rest_has_no_scale() -> None:
    case, moving = Case(), ALL.copy()
    moving[2] = False
    _scale(case, ARM, TorqueScales(joint=np.array([1.0, 1.0, 9.0, 1.0, 1.0, 1.0]), common=1.0), moving)
    assert case.level == 0


def test_a_residual_that_follows_a_signal_is_seen() -> None:
    rng = np.random.default_rng(0)
    signal = rng.uniform(-1.0, 1.0, (600, 3))
    residual = np.stack([np.abs(signal[:, 0]), rng.standard_normal(600), np.zeros(600)], axis=1)
    found = _follows(residual, signal)
    assert found[0] > 0.95 and found[1] < 0.1 and found[2] == 0.0
