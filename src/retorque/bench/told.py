"""Whether `default` tells a payload that is picked up from a push at the hand, a second after it began."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.adapt.default.adapter import Default
from retorque.bench.report import Report, Row, recorded
from retorque.bench.tracking import SEVEN
from retorque.loop.adapter import Adapter
from retorque.loop.supervisor import Supervisor
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import fixed_base
from retorque.tasks.worlds import WORLDS
from retorque.tasks.worlds.changes import CYCLE
from retorque.tasks.worlds.touches import LEAN_FROM, LEAN_RISE
from retorque.tasks.worlds.world_task import WorldTask
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between, check_names
from retorque.work.jobs import KeptJobSettings, run_jobs
from retorque.work.jobs import report as report_work

ASKED = 1.0
"""Time that it has to tell [s]."""
CASES = {"payload": ("payload-cycles", CYCLE), "push": ("lean", LEAN_FROM + LEAN_RISE)}
"""What is told, the world in which it happens, and when it is all there [s]."""
NOTES = (
    "share of robots with hidden parameters, in motion, of which a second later it is right: that a payload was picked "
    "up (2 kg for an arm that is told up to 1.5), or that a push of 20 N at the hand from any side is not its own"
)
"""Under the table."""


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench told`."""

    robots: tuple[str, ...] = ("panda",)
    """Robots on board, or paths of MJCF or URDF files; `all` for the paper's seven."""
    trials: int = 50
    """Robots that pick something up, and as many that are pushed."""
    seed: int = 0
    """Of everything random; the adapter was tuned on 1000 and above."""
    noise: bool = True
    """Sensor noise and delays of Table B.1."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    check_names("robot", "--robots", settings.robots)
    check_between("--trials", settings.trials, 1, MOST_TRIALS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    names = SEVEN if settings.robots == ("all",) else settings.robots
    for name in names:
        fixed_base(Robot.load(name))
    jobs = [(name, case, settings.trials, settings.seed, settings.noise) for name in names for case in CASES]
    work = sum(round((CASES[job[1]][1] + ASKED) / 1e-3) for job in jobs)
    results = run_jobs(told_right, jobs, work, "told", settings.workers, settings.cluster, settings.keep)
    rows = [
        Row.of(
            100.0 * right, robot=job[0], method="default", metric=f"{job[1]} told", unit="%", extra={"world": job[1]}
        )
        for job, right in zip(jobs, results, strict=True)
    ]
    return Report(bench="told", settings=recorded(settings), rows=rows, notes=NOTES)


def told_right(name: str, case: str, trials: int, seed: int, noise: bool) -> Array:
    """Which of the trials are told right, (trials,)."""
    robot = Robot.load(name)
    world, begins = CASES[case]
    task = WorldTask(robot, replace(WORLDS[world], duration=begins + ASKED), trials, seed, noise=noise)
    adapter = Default(task.robot, trials, task.world.timestep, task.adapter_seed)

    def supervised(truth: Callable[[], Parameters]) -> Adapter:
        return Supervisor(adapter)

    task.adapted(supervised, report_work)
    changed = adapter.changed(ASKED)
    return np.asarray(changed & ~adapter.disputed if case == "payload" else ~changed & adapter.disputed)
