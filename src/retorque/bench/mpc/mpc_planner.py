"""Which parameters the planner can cope with at all: a grid over Table I's ranges, parameters known and constant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import TASKS, make_task
from retorque.tasks.mpc.run import RunSettings, run_task
from retorque.tasks.mpc.swing_bound import swings_up
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import KeptJobSettings, report, run_jobs


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc-planner`."""

    tasks: tuple[str, ...] = tuple(TASKS)
    """Tasks to run."""
    points: int = 5
    """Values of each parameter over its range; three-parameter tasks take three."""
    variant: str = "paper"
    """paper or code."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run every cell, and those that Table II passes through."""
    check_between("--points", settings.points, 2, 20)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_names("task", "--tasks", settings.tasks)
    for name in settings.tasks:
        make_task(name, settings.variant)
    settings.check_jobs()
    compile_with_progress()
    rows: list[Row] = []
    for name in settings.tasks:
        task = make_task(name, settings.variant)
        points = settings.points if task.free.size < 3 else min(3, settings.points)
        axes = [np.linspace(low, high, points) for low, high in zip(task.free.lower, task.free.upper, strict=True)]
        cells = [tuple(map(float, cell)) for cell in product(*axes)]
        passed = [given for _, given in task.schedule if given]
        jobs = [(name, settings.variant, cell, settings.seed) for cell in [*cells, *passed]]
        found = np.array(run_jobs(one, jobs, len(jobs), name, settings.workers, settings.cluster, settings.keep))
        failed = [list(cell) for cell, time in zip(cells, found[: len(cells)], strict=True) if not np.isfinite(time)]
        solved = np.isfinite(found[: len(cells)])
        hopeless = [cell for cell in failed if name == "cartpole" and not swings_up(task, tuple(cell))]
        rows.append(
            Row.rate(
                solved,
                robot=name,
                method="known parameters",
                metric="solved cells",
                unit="-",
                extra={
                    "failed": failed,
                    "impossible": hopeless,
                    "median_s": float(np.median(found[: len(cells)][solved] if solved.any() else 0)),
                },
            )
        )
        if passed:
            ends = np.isfinite(found[len(cells) :])
            rows.append(
                Row.of(ends.astype(float), robot=name, method="known parameters", metric="cells of Table II", unit="-")
            )
    notes = (
        "a cell is solved when the target is reached within 1000 steps, with white noise and a smoothed state; "
        "impossible: the pole cannot be swung up with a tenth more than the limit (tasks/mpc/swing_bound.py)"
    )
    return Report(bench="mpc-planner", settings=recorded(settings), rows=rows, notes=notes)


def one(name: str, variant: str, cell: tuple[float, ...], seed: int) -> float:
    """Seconds to the target with these parameters throughout."""
    task = replace(make_task(name, variant), schedule=((0, cell),))
    trace = run_task(task, RunSettings(policy="oracle", seed=seed))
    report(1)
    return trace.reached
