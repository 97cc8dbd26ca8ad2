"""What to record next: what joints did, and the sentences that follow from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.identify.methods.torque_model import TorqueModel
from retorque.identify.report.advice import Coverage, advice, coverage
from retorque.logs.motion import Motion
from retorque.robots.robot import Robot
from retorque.work.array import Array

ARM = Robot.load("z1")
N = ARM.n


class Silent(TorqueModel):
    """A model that says nothing."""

    def torque(self, motion: Motion) -> Array:
        return np.zeros_like(motion.torque)


MODEL = Silent(robot=ARM, method="silent", samples=1)
GOOD = Coverage(
    span=np.full(N, 2.0),
    span_part=np.full(N, 0.5),
    speed=0.5 * ARM.velocity_limit,
    acceleration=np.full(N, 3.0),
    reversals=np.full(N, 9),
    still=np.zeros(N),
)
FINE = [0.05] * N


def test_what_each_joint_did_is_counted() -> None:
    t = np.linspace(0.0, 4.0, 4001)[:, None] * np.ones(N)
    q, qd, qdd = np.sin(2.0 * np.pi * t), 2.0 * np.pi * np.cos(2.0 * np.pi * t), -39.5 * np.sin(2.0 * np.pi * t)
    qd[:, 0] = q[:, 0] = 0.0
    seen = coverage(Motion.of(q, qd, qdd, np.zeros_like(q)), ARM)
    np.testing.assert_allclose(seen.span, [0.0, *[2.0] * (N - 1)], atol=1e-5)
    np.testing.assert_allclose(seen.span_part, seen.span / (ARM.upper - ARM.lower))
    assert seen.reversals.tolist() == [0, *[8] * (N - 1)] and seen.still[0] == 1.0 and np.all(seen.still[1:] < 0.01)
    np.testing.assert_allclose(seen.speed[1:], 2.0 * np.pi, rtol=1e-6)


def test_a_joint_without_limits_has_no_part_of_them() -> None:
    joint = ARM.links[1].joint
    assert joint is not None
    links = list(ARM.links)
    links[1] = replace(links[1], joint=replace(joint, lower=-np.inf, upper=np.inf))
    motion = Motion.of(*np.random.default_rng(0).normal(0.0, 1.0, (4, 20, N)))
    part = coverage(motion, ARM.with_links(tuple(links))).span_part
    assert np.isnan(part[0]) and np.all(np.isfinite(part[1:]))


def test_nothing_stands_out() -> None:
    assert "--validate" in advice(MODEL, GOOD, FINE)[0]
    assert "longer or faster" in advice(MODEL, GOOD, FINE, FINE)[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reversals": 3}, "changed direction 3 times"),
        ({"span_part": 0.05}, "used 5 % of its range"),
        ({"speed": 0.01}, "below 10 % of its speed limit"),
    ],
)
def test_what_a_joint_did_not_do_is_asked_for(changes: dict[str, float], words: str) -> None:
    values = {name: getattr(GOOD, name).copy() for name in changes}
    for name, value in changes.items():
        values[name][2] = value
    said = advice(MODEL, replace(GOOD, **values), FINE)
    assert len(said) == 1 and words in said[0] and said[0].startswith(ARM.joint_names[2])


def test_torque_that_is_not_explained_is_named() -> None:
    said = advice(MODEL, GOOD, [0.05, 0.7, *FINE[2:]])
    assert len(said) == 1 and ARM.joint_names[1] in said[0] and "even in training" in said[0]
    said = advice(MODEL, GOOD, FINE, [0.05, 0.05, 0.25, *FINE[3:]])
    assert len(said) == 1 and said[0].startswith(ARM.joint_names[2]) and "three times" in said[0]
    assert "nothing stands out" in advice(MODEL, GOOD, [0.1] * N, [0.25] * N)[0]  # worse, but not three times
