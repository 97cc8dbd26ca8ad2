"""`retorque mpc`: one run of a planning task, with its plots."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro
from rich.table import Table

from retorque.bench.mpc.mpc_plots import run_picture
from retorque.physics.backends.kernel_cache import compile_with_progress
from retorque.tasks.mpc.mpc_library import make_task
from retorque.tasks.mpc.mpc_task import MpcTask
from retorque.tasks.mpc.real_time import run_real_time
from retorque.tasks.mpc.run import POLICIES, UP_OSI, RunSettings, RunTrace, run_task
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.errors import RetorqueError
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
    """information, paper, naive, smooth, weighted, oracle, delayed-oracle or up-osi."""
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
    real_time: bool = False
    """Run against the clock, with planner and modeller as processes; else in virtual time."""
    duration: float = 10.0
    """Of a run in real time [s]."""
    kills: int = 0
    """How often each of the two processes is killed in a run in real time."""


def run(settings: Settings) -> Outcome:
    """One run, a table of what happened, and the picture."""
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_names("policy", "--policy", (settings.policy,), (*POLICIES, UP_OSI))
    if settings.render is not None:
        check_file(settings.render)
    task = make_task(settings.task, settings.variant)
    check_between("--duration", settings.duration, 1.0, 3600.0, "s")
    check_between("--kills", settings.kills, 0, 1000)
    if settings.kills and not settings.real_time:
        raise RetorqueError("only a run in real time has processes to kill; add --real-time")
    if settings.real_time and settings.policy == UP_OSI:
        raise RetorqueError("up-osi has no processes; leave out --real-time")
    if settings.real_time and (settings.render is not None or settings.state == "true" or settings.explore):
        raise RetorqueError("--render, --state true and --explore are for virtual time; leave out --real-time")
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
    if settings.real_time:
        return _in_real_time(settings, how, task)
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


def _in_real_time(settings: Settings, how: RunSettings, task: MpcTask) -> Outcome:
    """The run against the clock, and what became of its ticks and processes."""
    ticks = round(settings.duration / task.timestep)
    times = np.linspace(0.1 * ticks, 0.95 * ticks, 2 * settings.kills).astype(int).tolist()
    kills = {tick: ("planner", "modeller")[k % 2] for k, tick in enumerate(times)}
    trace = run_real_time(
        settings.task, how, settings.duration, variant=settings.variant, kill=lambda tick: kills.get(tick, "")
    )
    title = f"{task.name}, {settings.policy}, {settings.noise} noise, {settings.duration:g} s in real time"
    table = Table(title=f"{title}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name in ("what", "figure"):
        table.add_column(name)
    said = f"{trace.reached:.2f} s" if np.isfinite(trace.reached) else "no"
    table.add_row("target reached", said)
    table.add_row("missed ticks", f"{trace.missed} of {trace.ticks}")
    table.add_row("ticks without a plan", f"{trace.starved}")
    table.add_row("plans, models", f"{trace.plans}, {trace.models}")
    table.add_row("age of the plan, 99 %", f"{1e3 * float(np.quantile(trace.age, 0.99)):.0f} ms")
    table.add_row("largest input", f"{100.0 * trace.largest:.0f} % of its limit")
    if settings.kills:
        table.add_row(
            "kills answered, slowest",
            f"{len(trace.gaps)} of {2 * settings.kills}, {max(trace.gaps, default=np.nan):.2f} s",
        )
        table.add_row("restarts", ", ".join(f"{count} of the {role}" for role, count in trace.restarts.items()))
    outcome = Outcome()
    outcome.show(table)
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
