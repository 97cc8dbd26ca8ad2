"""A Panda under MPC with an adapter beneath: the ideal model and an adapter, an identified model, or both."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retorque.adapt import adapter_class
from retorque.bench.report import Report, Row, recorded
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.over_adapter import reach
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import KeptJobSettings, report, run_jobs


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench mpc-adapter`."""

    adapters: tuple[str, ...] = ("tam-recursive", "default")
    """What corrects torques beneath the plan, beside nothing (direct)."""
    seeds: int = 8
    """Robots with hidden parameters."""
    reaches: int = 4
    """Poses that each reaches for, one after the other."""
    seed: int = 0
    """Of the first robot."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Every combination on the same robots."""
    check_names("adapter", "--adapters", settings.adapters)
    for adapter in settings.adapters:
        adapter_class(adapter)
    check_between("--seeds", settings.seeds, 1, 1000)
    check_between("--reaches", settings.reaches, 1, 100)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    compile_with_progress()
    cells = [(model, under) for model in ("ideal", "identified") for under in ("direct", *settings.adapters)]
    jobs = [(m, a, settings.seed + k, settings.reaches) for m, a in cells for k in range(settings.seeds)]
    how = (settings.workers, settings.cluster, settings.keep)
    found: list[dict[str, Any]] = run_jobs(one, jobs, len(jobs), "mpc-adapter", *how)
    rows = []
    for index, (model, under) in enumerate(cells):
        part = found[index * settings.seeds : (index + 1) * settings.seeds]
        rows.append(
            Row.of(
                np.array([np.sqrt(np.mean(np.square(trace["distance"]))) for trace in part]),
                robot="panda",
                method=f"{model} model + {under}",
                metric="distance from the target, last quarter of a reach",
                unit="rad",
                extra={
                    "first_reach": float(np.mean([trace["distance"][0] for trace in part])),
                    "last_reach": float(np.mean([trace["distance"][-1] for trace in part])),
                    "worst": float(np.max([trace["distance"] for trace in part])),
                    "effort": float(np.mean([trace["effort"] for trace in part])),
                },
            )
        )
    return Report(bench="mpc-adapter", settings=recorded(settings), rows=rows)


def one(model: str, adapter: str, seed: int, reaches: int) -> dict[str, Any]:
    """One robot: distances of its reaches [rad], and effort."""
    trace = reach(model, adapter, seed, reaches=reaches)
    report(1)
    return {"distance": trace.distance.tolist(), "effort": trace.effort}
