"""Pushing, flipping and balancing under adapters: Table 1 of the TAM paper, in simulation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.bench.adapters import AdapterChoice, AdapterSettings, check_adapters, halves, supervised
from retorque.bench.report import Report, Row, recorded
from retorque.robots.robot import Robot
from retorque.tasks.experiments import POLICIES, make_policy, make_task
from retorque.tasks.policy_task import Robots, play
from retorque.tasks.sight import open_eyes, through_cameras
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between, check_names
from retorque.work.errors import unknown
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

CONDITIONS = {"nominal": 0.0, "+1 kg": 1.0}
"""Payload on top of what is hidden, by condition [kg]."""
USUAL_TRIALS = {"push": 200, "flip": 200, "ball": 100}
"""Of each bench."""
RMA_ROWS = {"rma": "direct", "tam-rma": "tam"}
"""Rows of the policy that adapts by itself, and the adapter below each."""
IDEAL = "ideal"
"""The row of the ideal robot, on which the policy was made."""
PAPER: dict[str, dict[str, float]] = {
    "push": {"ideal": 0.84, "direct": 0.476, "particle": 0.571, "rma": 0.524, "tam-rma": 0.667, "tam": 0.762},
    "flip": {"ideal": 0.735, "direct": 0.50, "particle": 0.34, "tam": 0.72},
    "ball": {"ideal": 15.9, "direct": 8.8, "particle": 13.1, "tam": 13.6},
}
"""Table 1: a real Panda, but for the ideal simulation."""
PAPER_F1 = {
    "direct": 0.21,
    "tam-short-window": 0.42,
    "tam-no-residual": 0.67,
    "physpred": 0.59,
    "tam-privileged": 0.70,
    "tam": 0.84,
}
"""F.1: success of TAM's variants at pushing in simulation, 100 trials."""


@dataclass(frozen=True, kw_only=True)
class PolicyTaskSettings(AdapterSettings):
    """Settings of the benches of policies."""

    adapters: tuple[str, ...] = ("direct", "recursive", "tam", "tam-recursive")
    """Adapters to compare: on board, or your own as MODULE:CLASS (looked for in this folder too); for push also rma,
    the policy that adapts by itself, and tam-rma, that policy above tam."""
    policy: str = ""
    """Which of the task's policies acts; default: the first that it has."""
    policy_weights: Path | None = None
    """The policy's weights instead of the ones on board."""
    cameras: bool = False
    """Let the policy see ball or box through cameras instead of as they are."""
    robot: str = "panda"
    """An arm of the Panda's size."""
    conditions: tuple[Literal["nominal", "+1 kg"], ...] = ("nominal", "+1 kg")
    """Payload on top of what is hidden."""
    trials: int | None = None
    """Randomised robots, starts and goals, the same in every row; default: 200, of ball 100."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


def push(settings: PolicyTaskSettings) -> Report:
    """Boxes pushed to poses."""
    return _run("push", settings)


def flip(settings: PolicyTaskSettings) -> Report:
    """Cubes flipped onto the next face."""
    return _run("flip", settings)


def ball(settings: PolicyTaskSettings) -> Report:
    """Goals reached by a ball on a plate."""
    return _run("ball", settings)


@dataclass(frozen=True)
class Method:
    """One row: a policy, and what corrects its torques."""

    name: str
    policy: str
    weights: Path | None
    """The policy's, instead of those on board."""
    adapter: AdapterChoice | None
    """None: the ideal robot."""
    cameras: bool = False
    """Whether the policy sees through cameras."""


def _methods(task: str, settings: PolicyTaskSettings) -> list[Method]:
    """The rows that were asked for, the ideal robot's first; what does not fit is refused."""
    policy = settings.policy or POLICIES[task][0]
    if policy not in POLICIES[task]:
        raise unknown(f"policy of '{task}'", policy, POLICIES[task])
    own = {name for name in settings.adapters if name in RMA_ROWS} if task == "push" else set()
    others = tuple(name for name in settings.adapters if name not in own)
    chosen = {choice.name: choice for choice in replace(settings, adapters=others).choices()} if others else {}
    rows = [Method(IDEAL, policy, settings.policy_weights, None, settings.cameras)]
    for name in settings.adapters:
        if name in own:
            below = AdapterChoice(RMA_ROWS[name], compiled=settings.compiled)
            rows.append(Method(name, "rma", None, below, settings.cameras))
        else:
            rows.append(Method(name, policy, settings.policy_weights, chosen[name], settings.cameras))
    if not others:
        check_adapters(RMA_ROWS[name] for name in settings.adapters)  # none at all, or one twice
    return rows


def _run(task: str, settings: PolicyTaskSettings) -> Report:
    trials = USUAL_TRIALS[task] if settings.trials is None else settings.trials
    check_between("--trials", trials, 1, MOST_TRIALS)
    check_names("condition", "--conditions", settings.conditions, CONDITIONS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    methods = _methods(task, settings)
    robot = Robot.load(settings.robot)
    for method in methods:
        make_policy(make_task(task, robot, 1, settings.seed), method.policy, method.weights, settings.seed)  # or refuse
    parts = halves(trials)
    cases = [(m, c) for m in methods for c in (settings.conditions if m.adapter is not None else ("nominal",))]
    jobs = [
        (task, settings.robot, method, condition, trials, settings.seed, rows)
        for method, condition in cases
        for rows in parts
    ]
    ticks = round(make_task(task, robot, 1, 0).duration / 1e-3)
    results = run_jobs(scores_of_part, jobs, ticks * len(jobs), task, settings.workers, settings.cluster, settings.keep)
    found = {
        (method, condition): np.concatenate(results[index * len(parts) : (index + 1) * len(parts)])
        for index, (method, condition) in enumerate(cases)
    }
    ideal = found[methods[0], "nominal"]
    rows = [_row(task, robot.name, method, condition, found[method, condition], ideal) for method, condition in cases]
    return Report(
        bench=task,
        settings=recorded(replace(settings, trials=trials)),
        rows=rows,
        notes="robots with hidden parameters in simulation, sensor noise and delays, adapters supervised, cold start; "
        "'behind ideal': paired difference to the ideal robot with its 95 % interval; paper: TAM, Table 1, a real "
        "Panda (its ideal row: simulation); F.1: the same paper's simulation",
    )


def scores_of_part(
    task_name: str,
    robot_name: str,
    method: Method,
    condition: str,
    trials: int,
    seed: int,
    rows: slice,
) -> Array:
    """The scores of some of the trials, (trials,)."""
    whole = make_task(task_name, Robot.load(robot_name), trials, seed)
    if method.adapter is None:
        robots = Robots.ideal(whole.robot, trials)
    else:
        robots = Robots.hidden(whole.robot, trials, seed, CONDITIONS[condition])
    task = whole.part(rows)
    target = task.target(robots.part(rows))
    adapter = None
    if method.adapter is not None:
        own = int(np.random.SeedSequence([seed, 3, rows.start or 0]).generate_state(1)[0])
        adapter = supervised(method.adapter, task.robot, task.trials, own, lambda: target.parameters)
    plant = through_cameras(task, target, seed + (rows.start or 0)) if method.cameras else None
    policy = make_policy(task, method.policy, method.weights, seed)
    open_eyes(policy, target, seed + (rows.start or 0))
    return play(task, target, policy, adapter, plant=plant, progress=report_work)


def _row(task: str, robot: str, method: Method, condition: str, values: Array, ideal: Array) -> Row:
    behind = ideal - values
    half = 1.96 * float(np.std(behind, ddof=1)) / np.sqrt(len(behind)) if len(behind) > 1 else 0.0
    return (Row.of if task == "ball" else Row.rate)(
        values,
        robot=robot,
        method=method.name,
        metric="goals" if task == "ball" else "success",
        unit="goals" if task == "ball" else "share",
        paper=PAPER[task].get(method.name) if condition == "nominal" and robot == "panda" else None,
        extra={
            "condition": condition,
            "policy": method.policy,
            **({"F.1": PAPER_F1[method.name]} if task == "push" and method.name in PAPER_F1 else {}),
            "behind ideal": f"{float(np.mean(behind)):.3g} ± {half:.2g}",
            "trial_values": values.tolist(),
        },
    )
