"""When plans should begin: adaptive, the paper's rule and a fixed lead, where solves take long (section IV-E)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.plan.start_time import RULES
from retorque.plan.workers import Durations
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.run import POLICIES, RunSettings, run_task
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import KeptJobSettings, report, run_jobs

PAPER = {"fixed": 8.20, "paper": 6.31}


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc-start-time`."""

    rules: tuple[str, ...] = RULES
    """Rules to compare."""
    policy: str = "paper"
    """Way to keep the parameters."""
    iteration: float = 0.02
    """An iteration of iLQR in virtual time: as slow as makes the start matter [s]."""
    jitter: float = 0.5
    """Spread of the logarithm of a solve's duration."""
    seeds: int = 5
    """Runs of each."""
    seed: int = 0
    """Of the first run."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run each rule on the cart-pole."""
    check_names("rule", "--rules", settings.rules, RULES)
    check_names("policy", "--policy", (settings.policy,), POLICIES)
    check_between("--seeds", settings.seeds, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_between("--iteration", settings.iteration, 0.0, 1.0, "s")
    check_between("--jitter", settings.jitter, 0.0, 3.0)
    settings.check_jobs()
    compile_with_progress()
    how = (settings.policy, settings.iteration, settings.jitter)
    jobs = [(*how, rule, settings.seed + k) for rule in settings.rules for k in range(settings.seeds)]
    found = run_jobs(one, jobs, len(jobs), "start time", settings.workers, settings.cluster, settings.keep)
    rows = []
    for index, rule in enumerate(settings.rules):
        part = found[index * settings.seeds : (index + 1) * settings.seeds]
        rows.append(
            Row.reached(
                np.array([time for time, _ in part]),
                robot="cartpole",
                method=rule,
                metric="time to objective",
                unit="s",
                paper=PAPER.get(rule),
                extra={"late_plans": float(np.mean([late for _, late in part]))},
            )
        )
    notes = "paper: the fixed start failed in 2 of 5 runs; times are means over the runs that reached the target"
    return Report(bench="mpc-start-time", settings=recorded(settings), rows=rows, notes=notes)


def one(policy: str, iteration: float, jitter: float, rule: str, seed: int) -> tuple[float, int]:
    """Seconds to the target, and plans that came too late."""
    how = RunSettings(
        policy=policy,
        start_rule=rule,
        durations=Durations(iteration=iteration, jitter=jitter),
        fixed_lead=3.0 * iteration,  # about what a solve takes on average
        seed=seed,
    )
    trace = run_task(make_task("cartpole"), how)
    report(1)
    return trace.reached, trace.late
