"""The main job in a minute: a robot with a hidden payload and friction, every adapter on it, a table and a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from retorque.adapt import ADAPTERS, make
from retorque.bench.demo.demo_arm import animation
from retorque.bench.demo.demo_page import demo_page
from retorque.bench.demo.demo_plots import Recorded, plot
from retorque.bench.tracking import adapted_motion, ideal_motion
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, fixed_base
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder, write_whole
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work
from retorque.work.outcome import Outcome

LEFT_OUT = ("particle-sharp", "tam-no-etau", "tam-no-residual", "tam-short-window", "tam-privileged", "physpred")
"""Variants that a first look does not need."""
SHOWN = "default"
"""The adapter in the pictures: the one to use, whichever happens to be best on these robots."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
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


def run(settings: Settings) -> Outcome:
    """Run the demo: a table, and a page with pictures."""
    _check(settings)
    robot = fixed_base(Robot.load(settings.robot))
    world = TrackingSettings(trials=settings.trials, seed=settings.seed, duration=settings.duration, noise=True)
    task = TrackingTask(robot, world)
    names = _on_board(task)
    # The slow one first, so that it does not finish alone.
    order = sorted(["", *names], key=lambda name: name != "particle")
    jobs = [(settings.robot, world, name) for name in order]
    ticks = round(settings.duration / 1e-3)
    found = run_jobs(motion, jobs, ticks * len(jobs), "demo", settings.workers, settings.cluster)
    results = dict(zip(order, found, strict=True))
    ideal = results.pop("")
    errors = {name: np.rad2deg(results[name].position - ideal.position) for name in names}
    shown = SHOWN if SHOWN in names else "direct"
    out = Outcome()
    out.show(error_table(robot, errors, ideal.time))
    for name, content in _files(task, ideal, results, errors, shown).items():
        out.later(name, partial(write_whole, settings.out / name, content))
    return out


def _files(
    task: TrackingTask, ideal: Recorded, results: dict[str, Recorded], errors: dict[str, Array], shown: str
) -> dict[str, bytes]:
    """Pictures of the robot with the heaviest payload, and the page that holds them."""
    trial = int(np.argmax(task.parameters.payload_mass))
    files = {
        "plot.png": plot(ideal, results, errors, shown, trial, dark=False),
        "plot-dark.png": plot(ideal, results, errors, shown, trial, dark=True),
        "arm.gif": animation(task.robot, ideal, results["direct"], results[shown], shown, trial),
    }
    files["index.html"] = demo_page(task, summary(errors, ideal.time), shown, trial, files).encode()
    return files


def motion(name: str, world: TrackingSettings, adapter: str) -> Recorded:
    """Where the robots go with an adapter; without a name, where the ideal one goes."""
    task = TrackingTask(Robot.load(name), world)
    trace = adapted_motion(task, adapter, report_work) if adapter else ideal_motion(task, report_work)
    return Recorded(trace.position.astype(np.float32), trace.time)


def error_table(robot: Robot, errors: dict[str, Array], clock: Array) -> Table:
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
    return table


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
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--duration", settings.duration, 2.0, 60.0, "s")
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    check_folder(settings.out)
