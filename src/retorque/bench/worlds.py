"""Adapters in worlds outside the published benches: touched, loaded, worn, misreported, and asked for other motions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.adapt import adapter_class, make
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
from retorque.tasks.worlds.world_task import WorldTask, joint_error
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

NOTES = (
    "joint RMSE against the ideal robot's own motion in the same world, supervised as shipped, ramp included; force on "
    "a wall at the end; * no network on board was trained on worlds of this kind; ratios to direct count its error as "
    "0.05 deg at least; - the adapter does not serve this world's rate"
)
"""Under the table."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
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
    compiled: bool = False
    """Run adapters in the compiled core where they can be: the same figures in a fraction of the time."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> WorldsReport:
    """Run the bench; a progress bar goes to standard error."""
    worlds, adapters = _check(settings)
    names = SEVEN if settings.robots == ("all",) else settings.robots
    robots = [fixed_base(Robot.load(name)) for name in names]
    columns = list(dict.fromkeys((*adapters, "direct")))
    jobs = [
        (name, world, adapter, settings.trials, settings.seed, settings.noise, settings.compiled)
        for name in names
        for world in worlds
        for adapter in columns
    ]
    work = len(names) * len(columns) * 2 * sum(round(w.duration / w.timestep) for w in worlds)
    results = iter(run_jobs(measured, jobs, work, "worlds", settings.workers, settings.cluster))
    rows = []
    for robot in robots:
        for world in worlds:
            for adapter in columns:
                found = next(results)
                rows += [_row(robot, world, adapter, metric, values) for metric, values in found.items()]
    return WorldsReport(bench="worlds", settings=recorded(settings), rows=rows, notes=NOTES)


def measured(
    name: str, world: BenchWorld, adapter: str, trials: int, seed: int, noise: bool, fast: bool = False
) -> dict[str, tuple[Array, Array]]:
    """What one adapter does in one world, by metric: its values and the ideal robot's, (trials,) each.

    Nothing where the adapter refuses the world's rate.
    """
    robot = Robot.load(name)
    task = WorldTask(robot, world, trials, seed, noise=noise)
    short, long = adapter_class(adapter).periods
    if not short * (1.0 - 1e-6) <= world.timestep <= long * (1.0 + 1e-6):
        report_work(2 * task.ticks)
        return {}

    def supervised(truth: Callable[[], Parameters]) -> Adapter:
        made = make(adapter, robot, trials, timestep=world.timestep, seed=task.adapter_seed, truth=truth)
        if adapter == "oracle":
            return made
        return compiled(Supervisor(made)) if fast else Supervisor(made)

    ideal = task.ideal(report_work)
    done = task.adapted(supervised, report_work)
    error = joint_error(done, ideal)
    found = {"joint RMSE": (error, np.zeros_like(error))}
    if done.end_force is not None and ideal.end_force is not None:
        found["end force"] = (done.end_force, ideal.end_force)
    return found


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


def _check(settings: Settings) -> tuple[list[BenchWorld], tuple[str, ...]]:
    """The worlds and the adapters; what cannot be run is refused before anything is."""
    if not settings.robots:
        raise RetorqueError("name at least one robot after --robots")
    if not settings.adapters:
        raise RetorqueError("name at least one adapter after --adapters")
    for adapter in settings.adapters:
        adapter_class(adapter)
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
    return list(dict.fromkeys(wanted)), settings.adapters
