"""`retorque mpc`: one run of a planning task, with its plots."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from rich.table import Table

from retorque.bench.mpc.mpc_plots import run_picture
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.run import POLICIES, RunSettings, RunTrace, run_task
from retorque.tasks.mpc.task import MpcTask
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.files import check_file
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of `retorque mpc`."""

    task: Annotated[str, tyro.conf.Positional] = "cartpole"
    """cartpole, double-pendulum, arm-centre, arm-inertia or rod."""
    variant: Literal["paper", "code"] = "paper"
    """As printed, or as in the public code."""
    policy: str = "information"
    """information, paper, naive, smooth, weighted, oracle or delayed-oracle."""
    noise: Literal["white", "offset"] = "white"
    """White noise, or one constant offset a run as in the public code."""
    state: Literal["smoothed", "true"] = "smoothed"
    """What the planner sees; true reproduces the leak of the public code."""
    explore: Literal["", "confidence", "information"] = ""
    """What to do when nothing is seen of a parameter."""
    start_rule: Literal["quantile", "paper", "fixed"] = "quantile"
    """When plans begin."""
    seed: int = 0
    """Of everything random."""
    render: Path | None = None
    """Picture of the run: states, estimates, confidence, plan age and the motion."""


def run(settings: Settings) -> Outcome:
    """One run, a table of what happened, and the picture."""
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_names("policy", "--policy", (settings.policy,), POLICIES)
    if settings.render is not None:
        check_file(settings.render)
    task = make_task(settings.task, settings.variant)
    compile_with_progress()
    how = RunSettings(
        policy=settings.policy,
        noise=settings.noise,
        state=settings.state,
        explore=settings.explore,
        start_rule=settings.start_rule,
        seed=settings.seed,
        go_on=settings.render is not None,
    )
    with progress() as bar:
        line = bar.add_task(f"{task.name} by {settings.policy}", total=task.steps)
        trace = run_task(task, how, lambda count: bar.advance(line, count))
    outcome = Outcome()
    outcome.show(_table(task, settings, trace))
    if settings.state == "true":
        outcome.show("the planner saw the true state: the leak of the public code, not a fair run", style="yellow")
    if settings.render is not None:
        file = settings.render
        outcome.later("picture", lambda: run_picture(task, trace, settings.policy, file))
    return outcome


def _table(task: MpcTask, settings: Settings, trace: RunTrace) -> Table:
    said = f"{trace.reached:.2f} s" if np.isfinite(trace.reached) else f"not within {task.steps} steps"
    paper = task.paper.get(settings.policy)
    beside = "" if paper is None else f" (paper: {paper:.2f} s, its time step is not known)"
    table = Table(title=f"{task.name}, {settings.policy}, {settings.noise} noise: target reached {said}{beside}")
    for name in ("parameter", "true", "believed", "deviation", "error after 1 s of each value"):
        table.add_column(name)
    for k, label in enumerate(task.free.labels):
        errors = [_error_after(trace, k, step, task.timestep) for step, _ in task.schedule if step < len(trace.time)]
        table.add_row(
            label,
            f"{trace.truth[-1, k]:.4g} {task.free.units[k]}",
            f"{trace.p[-1, k]:.4g}",
            f"{trace.deviation[-1, k]:.2g}",
            ", ".join(errors),
        )
    return table


def _error_after(trace: RunTrace, k: int, step: int, timestep: float) -> str:
    row = min(step + round(1.0 / timestep), len(trace.time) - 1)
    return f"{100.0 * (trace.p[row, k] / trace.truth[row, k] - 1.0):+.0f} %" if trace.truth[row, k] else "-"
