"""The benches of policies: which rows there are, the same robots in each, one or two workers, and bad input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.bench import policy_tasks
from retorque.bench.adapters import AdapterChoice, supervised
from retorque.bench.policy_tasks import PolicyTaskSettings
from retorque.bench.report import wilson
from retorque.robots.robot import Robot
from retorque.tasks.ball.ball_task import BallTask
from retorque.tasks.experiments import POLICIES, TASKS, make_policy, make_task
from retorque.tasks.policy_task import Robots, play
from retorque.tasks.push.push_choice import OBSERVATIONS, SENSED
from retorque.tasks.push.push_network import HISTORY, OUTPUTS, save_push_network
from retorque.work.errors import RetorqueError

TINY = PolicyTaskSettings(adapters=("direct", "oracle"), conditions=("nominal",), trials=8, workers=1)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks end early and run in this process: what is tested here is the bench."""
    for task in TASKS.values():
        monkeypatch.setattr(task, "duration", 0.3)
    monkeypatch.setattr(policy_tasks, "run_jobs", lambda function, jobs, *_: [function(*job) for job in jobs])


def test_rows_have_the_ideal_robot_first_and_a_paired_difference(short: None) -> None:
    report = policy_tasks.ball(replace(TINY, conditions=("nominal", "+1 kg")))
    assert [(row.method, row.extra["condition"]) for row in report.rows] == [
        ("ideal", "nominal"),
        ("direct", "nominal"),
        ("direct", "+1 kg"),
        ("oracle", "nominal"),
        ("oracle", "+1 kg"),
    ]
    assert all((row.metric, row.unit, row.trials) == ("goals", "goals", 8) for row in report.rows)
    assert report.rows[0].paper == 15.9 and report.rows[2].paper is None
    assert report.rows[0].extra["behind ideal"] == "0 ± 0"


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_a_figure() -> None:
    one, two = (policy_tasks.flip(replace(TINY, policy="script", workers=workers)) for workers in (1, 2))
    for a, b in zip(one.rows, two.rows, strict=True):
        assert a.extra["trial_values"] == b.extra["trial_values"]


def test_halves_play_the_trials_of_the_whole(short: None) -> None:
    ball = make_task("ball", Robot.load("panda"), 6, 3)
    method = policy_tasks.Method("direct", "lqr", None, AdapterChoice("direct"))
    assert isinstance(ball, BallTask)
    part = ball.part(slice(2, 5))
    np.testing.assert_array_equal(part.start, ball.start[2:5])
    scores = policy_tasks.scores_of_part("ball", "panda", method, "+1 kg", 6, 3, slice(2, 5))
    assert scores.shape == (3,) and np.isfinite(scores).all()


def test_rma_is_a_policy_of_its_own_in_the_rows_of_push(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    sizes = {"actor": (OBSERVATIONS + 4, OUTPUTS), "encoder": (HISTORY * SENSED, 4)}
    tensors = {f"{name}.0.weight": rng.standard_normal((b, a)).astype(np.float32) for name, (a, b) in sizes.items()}
    tensors |= {f"{name}.0.bias": np.zeros(b, dtype=np.float32) for name, (_, b) in sizes.items()}
    path = save_push_network(tmp_path / "rma.safetensors", tensors, Robot.load("panda"), {})
    monkeypatch.setattr("retorque.tasks.experiments.RMA", path)
    report = policy_tasks.push(replace(TINY, adapters=("direct", "rma", "tam-rma"), trials=2))
    assert [(row.method, row.extra["policy"]) for row in report.rows] == [
        ("ideal", "planner"),
        ("direct", "planner"),
        ("rma", "rma"),
        ("tam-rma", "rma"),
    ]
    assert report.rows[2].paper == 0.524 and report.rows[3].paper == 0.667
    with pytest.raises(RetorqueError, match="rma"):
        policy_tasks.ball(replace(TINY, adapters=("rma",)))


def test_bad_input_is_refused_before_anything_runs(tmp_path: Path) -> None:
    for settings, sentence in (
        (replace(TINY, policy="act"), "policy of 'push'"),
        (replace(TINY, trials=-1), "--trials"),
        (replace(TINY, seed=-1), "--seed"),
        (replace(TINY, adapters=()), "at least one adapter"),
        (replace(TINY, adapters=("rma", "rma")), "twice"),
        (replace(TINY, adapters=("directt",)), "did you mean 'direct'"),
        (replace(TINY, robot="z1"), "Panda"),
        (replace(TINY, policy="planner", policy_weights=tmp_path / "none"), "none"),
    ):
        with pytest.raises(RetorqueError, match=sentence):
            policy_tasks.push(settings)


def test_the_wilson_interval_of_all_and_of_half() -> None:
    low, high = wilson(np.ones(20))
    assert low == pytest.approx(1.0 / (1.0 + 1.96**2 / 20.0), abs=2e-3) and high == pytest.approx(1.0)
    low, high = wilson(np.array([0.0, 1.0] * 10))
    assert low + high == pytest.approx(1.0) and 0.29 < low < 0.31


@pytest.mark.parametrize("name", ("push", "flip", "ball"))
def test_the_adapter_that_does_nothing_changes_nothing_on_ideal_robots(name: str, short: None) -> None:
    ends = []
    for adapter in (None, "direct"):
        task = make_task(name, Robot.load("panda"), 2, 5)
        target = task.target(Robots.ideal(task.robot, 2))
        made = (
            None if adapter is None else supervised(adapter, task.robot, 2, 0, lambda target=target: target.parameters)
        )
        policy = "script" if name == "flip" else POLICIES[name][0]
        play(task, target, make_policy(task, policy), made)
        ends.append((np.array(target.position), np.array(target.objects)))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)
