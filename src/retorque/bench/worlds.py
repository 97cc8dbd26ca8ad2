"""Adapters in worlds outside the published benches: touched, loaded, worn, misreported, and asked for other motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from retorque.adapt import adapter_class
from retorque.bench.adapters import AdapterChoice, AdapterSettings
from retorque.bench.report import Row, recorded
from retorque.bench.tracking import SEVEN
from retorque.bench.worlds_report import WorldsReport
from retorque.loop.adapter import Adapter
from retorque.loop.supervisor import Supervisor
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.runtime.compiled.make import compiled
from retorque.tasks.tracking_task import fixed_base
from retorque.tasks.worlds import FAMILIES, WORLDS, BenchWorld
from retorque.tasks.worlds.world_task import WorldRun, WorldTask, joint_error
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

NOTES = (
    "joint RMSE against the ideal robot's own motion in the same world, supervised as shipped, ramp included; force on "
    "a wall at the end; * no network on board was trained on worlds of this kind; ratios to direct count its error as "
    "0.05 deg at least; - the adapter does not serve this world's rate"
)
"""Under the table."""


@dataclass(frozen=True, kw_only=True)
class Settings(AdapterSettings):
    """Settings of `retorque bench worlds`."""

    worlds: tuple[str, ...] = ("all",)
    """Names of worlds or families of worlds; `all` for every one."""
    adapters: tuple[str, ...] = ("default", "direct", "recursive")
    """Adapters to compare, on board or as module:Class; direct is always run."""
    robots: tuple[str, ...] = ("panda",)
    """Robots on board, or paths of MJCF or URDF files; `all` for the paper's seven."""
    trials: int = 4
    """Robots a world, each with something else hidden."""
    seed: int = 0
    """Of everything random; adapters were tuned on 1000 and above."""
    noise: bool = True
    """Sensor noise and delays of Table B.1."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> WorldsReport:
    """Run the bench; a progress bar goes to standard error."""
    worlds, columns = _check(settings), list(settings.choices())
    if "direct" not in settings.adapters:
        columns.append(AdapterChoice("direct"))
    names = SEVEN if settings.robots == ("all",) else settings.robots
    robots = [fixed_base(Robot.load(name)) for name in names]
    jobs = [
        (name, world, adapter, settings.trials, settings.seed, settings.noise)
        for name in names
        for world in worlds
        for adapter in columns
    ]
    work = len(names) * len(columns) * 2 * sum(round(w.duration / w.timestep) for w in worlds)
    results = iter(run_jobs(measured, jobs, work, "worlds", settings.workers, settings.cluster, settings.keep))
    rows = []
    for robot in robots:
        for world in worlds:
            for adapter in columns:
                found = next(results)
                rows += [_row(robot, world, adapter.name, metric, values) for metric, values in found.items()]
    return WorldsReport(bench="worlds", settings=recorded(settings), rows=rows, notes=NOTES)


def measured(
    name: str, world: BenchWorld, adapter: AdapterChoice, trials: int, seed: int, noise: bool
) -> dict[str, tuple[Array, Array]]:
    """What one adapter does in one world, by metric: its values and the ideal robot's, (trials,) each.

    Nothing where the adapter refuses the world's rate.
    """
    robot = Robot.load(name)
    task = WorldTask(robot, world, trials, seed, noise=noise)
    short, long = adapter_class(adapter.name).periods
    if not short * (1.0 - 1e-6) <= world.timestep <= long * (1.0 + 1e-6):
        report_work(2 * task.ticks)
        return {}

    def supervised(truth: Callable[[], Parameters]) -> Adapter:
        made = adapter.make(robot, trials, task.adapter_seed, truth, world.timestep)
        if adapter.name == "oracle":
            return made
        return compiled(Supervisor(made)) if adapter.compiled else Supervisor(made)

    ideal = ideal_run(name, world, trials, seed)
    report_work(task.ticks)
    done = task.adapted(supervised, report_work)
    error = joint_error(done, ideal)
    found = {"joint RMSE": (error, np.zeros_like(error))}
    if done.end_force is not None and ideal.end_force is not None:
        found["end force"] = (done.end_force, ideal.end_force)
    return found


@lru_cache(maxsize=1)
def ideal_run(name: str, world: BenchWorld, trials: int, seed: int) -> WorldRun:
    """How the ideal robot moves in a world, the same for every adapter (a world's adapters follow each other)."""
    return WorldTask(Robot.load(name), world, trials, seed).ideal()


def _row(robot: Robot, world: BenchWorld, adapter: str, metric: str, values: tuple[Array, Array]) -> Row:
    mine, ideal = values
    extra = {
        "world": world.name,
        "family": world.family,
        "trained on": world.trained,
        "worst": float(np.max(mine)),
        "ideal": float(np.mean(ideal)),
        "trial_values": mine.tolist(),
    }
    unit = "deg" if metric == "joint RMSE" else "N"
    return Row.of(mine, robot=robot.name, method=adapter, metric=metric, unit=unit, extra=extra)


def _check(settings: Settings) -> list[BenchWorld]:
    """The worlds; what cannot be run is refused before anything is."""
    if not settings.robots:
        raise RetorqueError("name at least one robot after --robots")
    check_between("--trials", settings.trials, 1, MOST_TRIALS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    wanted: list[BenchWorld] = []
    for name in settings.worlds:
        if name in WORLDS:
            wanted.append(WORLDS[name])
        elif name in FAMILIES or name == "all":
            wanted += [world for world in WORLDS.values() if name in (world.family, "all")]
        else:
            raise unknown("world", name, [*WORLDS, *FAMILIES, "all"])
    if not wanted:
        raise RetorqueError("name at least one world after --worlds")
    return list(dict.fromkeys(wanted))
