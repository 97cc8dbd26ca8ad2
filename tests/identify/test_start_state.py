"""Presliding friction that a log began with is learnt from it, and does not spoil the friction of the joint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from retorque.cli.main import main
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import fit
from retorque.identify.methods.start_state import learn_starts, stretches, with_starts
from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion, join
from retorque.physics.friction import preset
from retorque.physics.presliding import slip
from retorque.physics.rigid_body import RigidBody

STILL = 4
"""The joint that stands still in the second log."""


@pytest.fixture(scope="module")
def logs(simulate: Callable[..., Any]) -> tuple[Any, Motion, Motion]:
    """A hidden Panda; a log in which all joints move, and one in which a joint stands still, wound up."""
    truth = simulate("panda", preset("presliding"), seconds=6.0)
    rng = np.random.default_rng(0)
    second = simulate("panda", preset("presliding"), seconds=6.0, seed=3).motion
    q, qd, qdd = second.q.copy(), second.qd.copy(), second.qdd.copy()
    q[:, STILL], qd[:, STILL], qdd[:, STILL] = q[0, STILL], 0.0, 0.0
    start = rng.uniform(-1.0, 1.0, (7, 5))
    start[STILL] = 1.0
    layout = Layout(truth.robot, truth.friction)
    torque = layout.torque(RigidBody(truth.robot), truth.vector, q, qd, qdd, slip(q, start))
    torque = torque + 0.02 * rng.standard_normal(torque.shape)
    still = Motion(q=q, qd=qd, qdd=qdd, torque=torque, time=second.time + 100.0, slip=slip(q))
    first = truth.motion
    noisy = replace(first, torque=first.torque + 0.02 * rng.standard_normal(first.torque.shape))
    return truth, noisy, still


def friction_error(truth: Any, estimate: Estimate) -> float:
    """Of the still joint's dry friction, as a part of itself."""
    names = truth.friction.names
    dry = [k for k, name in enumerate(names) if name.startswith(("presliding", "saturating"))]
    true = Layout(truth.robot, truth.friction).unpack(truth.vector)[2][STILL, dry].sum()
    return abs(float(estimate.coefficients[STILL, dry].sum()) / float(true) - 1.0)


def test_stretches_are_logs_and_what_lies_between_gaps(logs: tuple[Any, Motion, Motion]) -> None:
    _, first, second = logs
    assert [part.start for part in stretches(join([first, second]))] == [0, len(first)]
    assert [part.start for part in stretches(join([first, first]))] == [0, len(first)]
    assert len(stretches(first[:1])) == 1


def test_a_joint_that_stands_still_is_explained_and_spoils_nothing(logs: tuple[Any, Motion, Motion]) -> None:
    truth, first, second = logs
    both = join([first, second])
    before = fit(both, truth.robot, truth.friction)
    started, after = learn_starts(both, before, lambda motion: fit(motion, truth.robot, truth.friction))
    third = slice(len(first), len(both))
    was, now = (
        np.sqrt(np.mean(np.square(model.residual(motion)[third, STILL])))
        for model, motion in ((before, both), (after, started))
    )
    assert now < 0.1 * was, (was, now)
    assert friction_error(truth, after) < min(0.1, friction_error(truth, before) + 0.02)
    assert np.max(np.abs(started.slip)) <= 1.0 if started.slip is not None else False


def test_a_log_that_began_unwound_is_left_alone(logs: tuple[Any, Motion, Motion]) -> None:
    truth, first, _ = logs
    estimate = fit(first, truth.robot, truth.friction)
    assert with_starts(first, estimate) is first
    plain = fit(first, truth.robot, preset("coulomb-viscous"))
    assert with_starts(first, plain) is first  # nothing remembers there


def test_the_command_says_so(
    logs: tuple[Any, Motion, Motion], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first, second = logs
    paths = []
    for name, motion in (("a", first), ("b", second)):
        paths.append(str(tmp_path / f"{name}.npz"))
        np.savez(paths[-1], time=motion.time, q=motion.q, qd=motion.qd, torque=motion.torque)
    main(["identify", *paths, "--robot", "panda"])
    assert "friction that the log began with" in capsys.readouterr().out
