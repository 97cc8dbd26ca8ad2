"""Whether exciting the unknown helps to reach the target: the elastic rod (section IV-D)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.run import RunSettings, run_task
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.jobs import KeptJobSettings, report, run_jobs

Explore = Literal["", "confidence", "information"]
Noise = Literal["white", "offset"]
CELLS: tuple[tuple[str, str, Explore, float | None], ...] = (
    ("paper, no exploration", "paper", "", 6.10),
    ("paper, f_exp = -w", "paper", "confidence", 4.028),
    ("information, no exploration", "information", "", None),
    ("information, gain of information", "information", "information", None),
)


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc-exploration`."""

    task: str = "rod"
    """Task to run."""
    noise: Noise = "white"
    """Of states and inputs."""
    seeds: int = 5
    """Runs of each."""
    seed: int = 0
    """Of the first run."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run each policy with and without exploration."""
    check_between("--seeds", settings.seeds, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    make_task(settings.task)
    settings.check_jobs()
    compile_with_progress()
    jobs = [
        (settings.task, settings.noise, policy, explore, settings.seed + k)
        for _, policy, explore, _ in CELLS
        for k in range(settings.seeds)
    ]
    found = run_jobs(one, jobs, len(jobs), "exploration", settings.workers, settings.cluster, settings.keep)
    rows = []
    for index, (label, _, _, paper) in enumerate(CELLS):
        part = found[index * settings.seeds : (index + 1) * settings.seeds]
        rows.append(
            Row.reached(
                np.array([time for time, _ in part]),
                robot=settings.task,
                method=label,
                metric="time to objective",
                unit="s",
                paper=paper,
                extra={"exploring_share": float(np.mean([share for _, share in part]))},
            )
        )
    return Report(bench="mpc-exploration", settings=recorded(settings), rows=rows)


def one(task: str, noise: Noise, policy: str, explore: Explore, seed: int) -> tuple[float, float]:
    """Seconds to the target, and the share of time spent exploring."""
    trace = run_task(make_task(task), RunSettings(policy=policy, explore=explore, noise=noise, seed=seed))
    report(1)
    return trace.reached, float(np.mean(trace.exploring))
