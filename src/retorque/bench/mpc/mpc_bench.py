"""Time to objective of every policy on every task (MPC and identification, Table II)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import TASKS, make_task
from retorque.tasks.mpc.run import POLICIES, UP_OSI, RunSettings, run_task
from retorque.tasks.mpc.up_osi import UP_OSI_TASKS
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import KeptJobSettings, report, run_jobs

NOISES = ("white", "offset")
SETTLING = 1.0
"""After a change the errors of the parameters are taken this much later [s]."""


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc`."""

    tasks: tuple[str, ...] = tuple(TASKS)
    """Tasks to run."""
    policies: tuple[str, ...] = POLICIES
    """Policies to compare; also up-osi, for cartpole and double-pendulum."""
    noises: tuple[str, ...] = NOISES
    """white, offset or both."""
    variant: str = "paper"
    """paper or code."""
    state: str = "smoothed"
    """What the planner sees; true is the leak of the public code."""
    seeds: int = 5
    """Runs of each, as in the paper."""
    seed: int = 0
    """Of the first run."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run everything, and put the paper's seconds beside."""
    for name in settings.tasks:
        make_task(name, settings.variant)
    check_names("task", "--tasks", settings.tasks)
    check_names("policy", "--policies", settings.policies, (*POLICIES, UP_OSI))
    check_names("noise", "--noises", settings.noises, NOISES)
    if settings.state not in ("smoothed", "true"):
        raise unknown("state", settings.state, ("smoothed", "true"))
    check_between("--seeds", settings.seeds, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    compile_with_progress()
    cells = [
        (t, p, n)
        for t in settings.tasks
        for n in settings.noises
        for p in settings.policies
        if p != UP_OSI or t in UP_OSI_TASKS
    ]
    if not cells:
        raise RetorqueError(f"{UP_OSI} has weights on board for {' and '.join(UP_OSI_TASKS)}; add it to --tasks")
    jobs = [
        (task, settings.variant, policy, noise, settings.state, settings.seed + k)
        for task, policy, noise in cells
        for k in range(settings.seeds)
    ]
    found = run_jobs(one, jobs, len(jobs), "mpc", settings.workers, settings.cluster, settings.keep)
    rows: list[Row] = []
    for index, (task, policy, noise) in enumerate(cells):
        part = found[index * settings.seeds : (index + 1) * settings.seeds]
        rows += _rows(task, policy, noise, settings, part)
    return Report(
        bench="mpc",
        settings=recorded(settings),
        rows=rows,
        notes="times are means over the runs that reached the target; the paper's time steps are not known, so its "
        "seconds are no bar; runs are in virtual time and repeat to the bit",
    )


def one(task_name: str, variant: str, policy: str, noise: str, state: str, seed: int) -> dict[str, Any]:
    """One run in plain numbers.

    `reached`: seconds to the target (not a number: never); `errors`: of each parameter 1 s after each change that came
    in time, as shares of the range; `inside`: how many of so many `values` of parameters lay inside their 95 % band.
    """
    task = make_task(task_name, variant)
    how = RunSettings(
        policy=policy,
        noise="offset" if noise == "offset" else "white",
        state="true" if state == "true" else "smoothed",
        seed=seed,
    )
    trace = run_task(task, how)
    report(1)
    errors = []
    for step, _ in task.schedule:
        row = step + round(SETTLING / task.timestep)
        if row < len(trace.time):
            errors.append((np.abs(trace.p[row] - trace.truth[row]) / task.free.span).tolist())
    inside = np.abs(trace.p - trace.truth) <= 1.96 * trace.deviation
    known = np.isfinite(trace.deviation)
    return {
        "reached": float(trace.reached),
        "errors": errors,
        "inside": int(np.sum(inside & known)),
        "values": int(np.sum(known)),
    }


def _rows(task: str, policy: str, noise: str, settings: Settings, found: list[dict[str, Any]]) -> list[Row]:
    times = np.array([run["reached"] for run in found])
    paper = make_task(task, settings.variant).paper.get(policy)
    where = {"robot": task, "method": policy}
    extra = {"noise": noise, "state": settings.state, "variant": settings.variant}
    rows = [
        Row.reached(
            times,
            metric="time to objective",
            unit="s",
            paper=paper,
            extra={**extra, "seconds": times.tolist()},
            **where,
        ),
        Row.rate(np.isfinite(times), metric="success", unit="-", extra=extra, **where),
    ]
    worst = [[max(error) for error in run["errors"]] for run in found]
    if any(worst):
        most = max(len(run) for run in worst)
        by_change = [float(np.mean([run[k] for run in worst if len(run) > k])) for k in range(most)]
        rows.append(
            Row.of(
                np.concatenate([np.array(run) for run in worst]),
                metric="parameter error 1 s after a change",
                unit="of the range",
                extra={**extra, "by_change": by_change},
                **where,
            )
        )
    if policy == "information":
        shares = np.array([run["inside"] / run["values"] for run in found])
        inside = sum(run["inside"] for run in found) / sum(run["values"] for run in found)
        all_values = {**extra, "all_values": inside}
        rows.append(Row.of(shares, metric="truth inside 95 % band", unit="-", extra=all_values, **where))
    return rows
