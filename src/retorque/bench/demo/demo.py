"""The main job in a minute: a robot with a hidden payload and friction, every adapter on it, a table and a page."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from retorque.adapt import ADAPTERS, make
from retorque.bench.demo.demo_arm import animation
from retorque.bench.demo.demo_page import page
from retorque.bench.demo.demo_plots import plot
from retorque.bench.tracking import adapted_motion, ideal_motion
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, fixed_base
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

LEFT_OUT = ("particle-sharp", "tam-no-residual", "tam-short-window", "tam-privileged", "physpred")
"""Variants that a first look does not need."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of `retorque demo`."""

    robot: str = "panda"
    """A robot on board, or the path of an MJCF or URDF file."""
    trials: int = 6
    """Robots, each with something else hidden."""
    duration: float = 16.0
    """Length of the motion [s]."""
    seed: int = 0
    """Of everything random."""
    out: Path = Path("retorque-demo")
    """Folder for the page, the plot and the animation."""
    workers: int = 0
    """Processes; 0 takes all cores."""


class Result(NamedTuple):
    """One adapter's run, or the ideal robot's."""

    position: Array
    """(ticks, trials, n) [rad]"""
    time: Array
    """(ticks,) [s]"""


def run(settings: Settings) -> int:
    """Run the demo; the exit code."""
    began = time.perf_counter()
    _check(settings)
    robot = fixed_base(Robot.load(settings.robot))
    world = TrackingSettings(trials=settings.trials, seed=settings.seed, duration=settings.duration, noise=True)
    task = TrackingTask(robot, world)
    names = _on_board(task)
    # The slow one first, so that it does not finish alone.
    order = sorted(["", *names], key=lambda name: name != "particle")
    jobs = [(settings.robot, world, name) for name in order]
    ticks = round(settings.duration / 1e-3)
    results = dict(zip(order, run_jobs(motion, jobs, ticks * len(jobs), "demo", settings.workers), strict=True))
    ideal = results.pop("")
    errors = {name: np.rad2deg(results[name].position - ideal.position) for name in names}
    best = min((name for name in names if name not in ("direct", "oracle")), key=lambda name: _rms(errors[name]).mean())
    trial = int(np.argmax(task.parameters.payload_mass))  # the pictures show the heaviest payload
    print_table(robot, errors, ideal.time)
    files = {
        "plot.png": plot(ideal, results, errors, best, trial, dark=False),
        "plot-dark.png": plot(ideal, results, errors, best, trial, dark=True),
        "arm.gif": animation(robot, ideal, results["direct"], results[best], best, trial),
    }
    files["index.html"] = page(task, summary(errors, ideal.time), best, trial, files).encode()
    for name, content in files.items():
        write_whole(settings.out / name, content)
    seconds = time.perf_counter() - began
    print(f"{seconds:.0f} s; open {settings.out / 'index.html'} (plot and animation are beside it)")
    return 0


def motion(name: str, world: TrackingSettings, adapter: str) -> Result:
    """Where the robots go with an adapter; without a name, where the ideal one goes."""
    task = TrackingTask(Robot.load(name), world)
    trace = adapted_motion(task, adapter, report_work) if adapter else ideal_motion(task, report_work)
    return Result(trace.position.astype(np.float32), trace.time)


def print_table(robot: Robot, errors: dict[str, Array], clock: Array) -> None:
    """The adapters' errors, for a terminal."""
    table = Table(
        title=f"{robot.title or robot.name}: hidden payload, friction and drive; distance from the ideal motion"
    )
    table.add_column("adapter")
    for heading in ("joint RMSE [deg]", "of uncorrected", "first 2 s", "last 2 s", "worst trial"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for row in summary(errors, clock):
        figures = [f"{row[k]:.3f}" for k in ("rmse", "first", "last", "worst")]
        share = f"{100.0 * row['share']:.1f} %"
        table.add_row(row["name"], figures[0], share, *figures[1:], ADAPTERS[row["name"]][1])
    Console(width=None if os.isatty(1) else 160).print(table)


def summary(errors: dict[str, Array], clock: Array) -> list[dict[str, Any]]:
    """One row an adapter: RMSE over everything, the first and the last 2 s, and the worst trial [deg]."""
    base = float(_rms(errors["direct"]).mean())
    rows = []
    for name, error in errors.items():
        each = _rms(error)
        rows.append(
            {
                "name": name,
                "rmse": float(each.mean()),
                "share": float(each.mean()) / base,
                "first": float(_rms(error[clock <= 2.0]).mean()),
                "last": float(_rms(error[clock > clock[-1] - 2.0]).mean()),
                "worst": float(each.max()),
            }
        )
    return rows


def _rms(error: Array) -> Array:
    """Over time and joints, (trials,)."""
    return np.sqrt(np.mean(error**2, axis=(0, 2)))


def _on_board(task: TrackingTask) -> list[str]:
    """Adapters that work in this installation, `direct` first and the oracle last."""
    found = []
    for name in ADAPTERS:
        if name in LEFT_OUT:
            continue
        try:
            make(name, task.robot, 1, truth=lambda: task.parameters)
        except (RetorqueError, ModuleNotFoundError):
            continue  # it needs weights or an extra that are not here
        found.append(name)
    return sorted(found, key=lambda name: (name != "direct", name == "oracle"))


def _check(settings: Settings) -> None:
    if settings.trials < 1:
        raise RetorqueError(f"--trials must be at least 1, not {settings.trials}")
    if not 2.0 <= settings.duration <= 60.0:
        raise RetorqueError(f"--duration must be between 2 and 60 s, not {settings.duration}")
    if settings.seed < 0 or settings.workers < 0:
        raise RetorqueError("--seed and --workers must be 0 or more")
    if settings.out.exists() and not settings.out.is_dir():
        raise RetorqueError(f"'{settings.out}' is a file; give --out a folder")
