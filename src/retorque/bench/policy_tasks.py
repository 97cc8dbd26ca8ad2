"""Pushing, flipping and balancing under adapters: Table 1 of the TAM paper, in simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import stats

from retorque.bench.adapters import AdapterChoice, AdapterSettings, halves, supervised
from retorque.bench.report import Report, Row, recorded
from retorque.robots.robot import Robot
from retorque.tasks.experiments import POLICIES, make_policy, make_task
from retorque.tasks.policy_task import Robots, play
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between, check_names
from retorque.work.errors import unknown
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

CONDITIONS = {"nominal": 0.0, "+1 kg": 1.0}
"""Payload on top of what is hidden, by condition [kg]."""
IDEAL = "ideal"
"""The row of the ideal robot, on which the policy was made."""
PAPER: dict[str, dict[str, float]] = {
    "push": {"ideal": 0.84, "direct": 0.476, "particle": 0.571, "rma": 0.524, "tam-rma": 0.667, "tam": 0.762},
    "flip": {"ideal": 0.735, "direct": 0.50, "particle": 0.34, "tam": 0.72},
    "ball": {"ideal": 15.9, "direct": 8.8, "particle": 13.1, "tam": 13.6},
}
"""Table 1: a real Panda, but for the ideal simulation."""


@dataclass(frozen=True, kw_only=True)
class PolicyTaskSettings(AdapterSettings):
    """Settings of the benches of policies."""

    adapters: tuple[str, ...] = ("direct", "recursive", "tam", "tam-recursive")
    """Adapters to compare: on board, or your own as MODULE:CLASS (looked for in this folder too)."""
    policy: str = ""
    """Which of the task's policies acts; default: the first that it has."""
    policy_weights: Path | None = None
    """The policy's weights instead of the ones on board."""
    robot: str = "panda"
    """An arm of the Panda's size."""
    conditions: tuple[Literal["nominal", "+1 kg"], ...] = ("nominal", "+1 kg")
    """Payload on top of what is hidden."""
    trials: int = 200
    """Randomised robots, starts and goals; the same in every row."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


@dataclass(frozen=True, kw_only=True)
class PushBench(PolicyTaskSettings):
    """Settings of `retorque bench push`."""


@dataclass(frozen=True, kw_only=True)
class FlipBench(PolicyTaskSettings):
    """Settings of `retorque bench flip`."""


@dataclass(frozen=True, kw_only=True)
class BallBench(PolicyTaskSettings):
    """Settings of `retorque bench ball`."""

    trials: int = 100
    """Randomised robots, starts and goals; the same in every row."""


def push(settings: PushBench) -> Report:
    """Boxes pushed to poses."""
    return _run("push", settings)


def flip(settings: FlipBench) -> Report:
    """Cubes flipped onto the next face."""
    return _run("flip", settings)


def ball(settings: BallBench) -> Report:
    """Goals reached by a ball on a plate."""
    return _run("ball", settings)


def _run(task: str, settings: PolicyTaskSettings) -> Report:
    check_between("--trials", settings.trials, 1, MOST_TRIALS)
    check_names("condition", "--conditions", settings.conditions, CONDITIONS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    policy = settings.policy or POLICIES[task][0]
    if policy not in POLICIES[task]:
        raise unknown(f"policy of '{task}'", policy, POLICIES[task])
    choices = settings.choices()
    robot = Robot.load(settings.robot)
    make_policy(make_task(task, robot, 1, settings.seed), policy, settings.policy_weights, settings.seed)  # or refuse
    methods: list[AdapterChoice | None] = [None, *choices]
    parts = halves(settings.trials)
    cases = [(m, c) for m in methods for c in (settings.conditions if m is not None else ("nominal",))]
    jobs = [
        (task, settings.robot, policy, settings.policy_weights, method, condition, settings.trials, settings.seed, rows)
        for method, condition in cases
        for rows in parts
    ]
    ticks = round(make_task(task, robot, 1, 0).duration / 1e-3)
    results = run_jobs(scores_of_part, jobs, ticks * len(jobs), task, settings.workers, settings.cluster)
    found: dict[tuple[str, str], Array] = {}
    for index, (method, condition) in enumerate(cases):
        name = IDEAL if method is None else method.name
        found[name, condition] = np.concatenate(results[index * len(parts) : (index + 1) * len(parts)])
    rows = [_row(task, robot.name, name, condition, policy, found) for name, condition in found]
    return Report(
        bench=task,
        settings=recorded(settings),
        rows=rows,
        notes="robots with hidden parameters in simulation, sensor noise and delays, adapters supervised, cold start; "
        "'behind ideal': paired difference to the ideal robot with its 95 % interval; paper: TAM, Table 1, a real "
        "Panda (its ideal row: simulation)",
    )


def scores_of_part(
    task_name: str,
    robot_name: str,
    policy: str,
    weights: Path | None,
    method: AdapterChoice | None,
    condition: str,
    trials: int,
    seed: int,
    rows: slice,
) -> Array:
    """The scores of some of the trials, (trials,)."""
    whole = make_task(task_name, Robot.load(robot_name), trials, seed)
    if method is None:
        robots = Robots.ideal(whole.robot, trials)
    else:
        robots = Robots.hidden(whole.robot, trials, seed, CONDITIONS[condition])
    task = whole.part(rows)
    target = task.target(robots.part(rows))
    adapter = None
    if method is not None:
        own = int(np.random.SeedSequence([seed, 3, rows.start or 0]).generate_state(1)[0])
        adapter = supervised(method, task.robot, task.trials, own, lambda: target.parameters)
    return play(task, target, make_policy(task, policy, weights, seed), adapter, progress=report_work)


def _row(task: str, robot: str, name: str, condition: str, policy: str, found: dict[tuple[str, str], Array]) -> Row:
    values = found[name, condition]
    behind = found[IDEAL, "nominal"] - values
    half = 1.96 * float(np.std(behind, ddof=1)) / np.sqrt(len(behind)) if len(behind) > 1 else 0.0
    row = Row.of(
        values,
        robot=robot,
        method=name,
        metric="goals" if task == "ball" else "success",
        unit="goals" if task == "ball" else "share",
        paper=PAPER[task].get(name) if condition == "nominal" and robot == "panda" else None,
        extra={
            "condition": condition,
            "policy": policy,
            "behind ideal": f"{float(np.mean(behind)):.3g} ± {half:.2g}",
            "trial_values": values.tolist(),
        },
    )
    return row if task == "ball" else row.with_interval(wilson(values))


def wilson(values: Array) -> tuple[float, float]:
    """95 % interval of a rate, from zeros and ones (trials,)."""
    found = stats.binomtest(int(np.sum(values)), len(values)).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
