"""What is learnt under joint impedance, used in operational space: Table 2 of the TAM paper, in simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.adapters import AdapterChoice, AdapterSettings, halves, supervised
from retorque.bench.ideal_check import check_ideal
from retorque.bench.report import Report, Row, recorded
from retorque.loop.loop import Loop
from retorque.loop.loop import run as run_loop
from retorque.loop.trace import Trace
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.tasks.source_to_osc_task import CONDITIONS, SourceToOscSettings, SourceToOscTask
from retorque.tasks.tracking_task import fixed_base
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

STATES = ("reset", "carried")
"""Whether the adapter forgets at the switch of controllers."""

PAPER: dict[str, dict[tuple[str, str], float]] = {
    "direct": {("nominal", "-"): 4.09, ("+1 kg", "-"): 6.04},
    "particle": {
        ("nominal", "reset"): 2.67,
        ("nominal", "carried"): 2.75,
        ("+1 kg", "reset"): 4.69,
        ("+1 kg", "carried"): 4.65,
    },
    "physpred": {
        ("nominal", "reset"): 1.74,
        ("nominal", "carried"): 1.64,
        ("+1 kg", "reset"): 4.15,
        ("+1 kg", "carried"): 4.39,
    },
    "tam": {
        ("nominal", "reset"): 1.51,
        ("nominal", "carried"): 1.04,
        ("+1 kg", "reset"): 2.35,
        ("+1 kg", "carried"): 1.29,
    },
}
"""Position RMSE of Table 2, on the real Panda [cm]."""

Case = tuple[AdapterChoice, str, str]
"""Adapter, condition and state of a row."""

FIRM = 1.0
"""A motion is firm where 0.1 N·m at every joint moves the ideal robot's hand by less than this (RMSE) [cm]."""

STATELESS = ("direct", "oracle")
"""Adapters with nothing to forget: one row a condition."""


@dataclass(frozen=True, kw_only=True)
class Settings(AdapterSettings):
    """Settings of `retorque bench source-to-osc`."""

    robots: tuple[str, ...] = ("panda",)
    """Robots on board, or paths of MJCF or URDF files."""
    trials: int = 100
    """Randomised targets a robot."""
    seed: int = 0
    """Of everything random."""
    noise: bool = False
    """Add the sensor noise and delays of Table B.1."""
    source_duration: float = 16.0
    """Length of the joint-impedance segment [s]."""
    osc_duration: float = 8.0
    """Length of the operational-space segment [s]."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    _check(settings)
    robots = [fixed_base(Robot.load(name)) for name in settings.robots]
    choices = settings.choices()
    cases = _cases(choices)
    parts = halves(settings.trials)
    jobs = [(name, _world(settings), cases, rows) for name in settings.robots for rows in parts]
    ticks = round((settings.source_duration + settings.osc_duration) / 1e-3) * (1 + len(cases))
    results = run_jobs(
        errors_of_part, jobs, ticks * len(jobs), "source-to-osc", settings.workers, settings.cluster, settings.keep
    )
    rows = []
    for index, robot in enumerate(robots):
        chunks = results[index * len(parts) : (index + 1) * len(parts)]
        shaken = np.concatenate([moved for _, moved in chunks])
        for k, case in enumerate(cases):
            rows.append(_row(robot, case, np.concatenate([found[k] for found, _ in chunks]), shaken))
    return Report(
        bench="source-to-osc",
        settings=recorded(settings),
        rows=rows,
        notes="end-effector position RMSE over the operational-space segment, against the ideal robot's own motion, in "
        "simulation, from the public home, on pose motions (D.1) that the ideal robot follows within its joint and "
        "velocity limits (about one in three; the others are drawn again); firm: motions on which 0.1 N·m at every "
        "joint moves the ideal robot's own hand by less than 1 cm; paper: TAM, Table 2, on a real Panda",
    )


def errors_of_part(name: str, world: SourceToOscSettings, cases: list[Case], rows: slice) -> tuple[list[Array], Array]:
    """Errors of each case on some of the trials, (trials, 2): position RMSE and final position error [cm]; and how far
    a slight torque moves the ideal robot's hand on each, (trials,) [cm]."""
    task = SourceToOscTask(Robot.load(name), world).part(rows)
    body = RigidBody(task.robot)

    def path(trace: Trace) -> Array:
        return body.frame_pose(task.robot.end_effector, trace.position)[0]

    ideal = path(ideal_motion(task, report_work))
    found = []
    for case in cases:
        error = 100.0 * np.linalg.norm(path(adapted_motion(task, *case, progress=report_work)) - ideal, axis=-1)
        found.append(np.stack([np.sqrt(np.mean(error**2, axis=0)), error[-1]], axis=-1))
    return found, 100.0 * task.sensitivity()


def ideal_motion(task: SourceToOscTask, progress: Callable[[int], None] | None = None) -> Trace:
    """How the ideal robot moves in operational space."""
    target = task.ideal(threads=1)
    trace = _second_part(task, Loop(target, task.source.reference, task.source.controller()), progress)
    check_ideal(task.robot, trace, target.diverged)
    return trace


def adapted_motion(
    task: SourceToOscTask,
    adapter: str | AdapterChoice,
    condition: str,
    state: str,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """How the targets move in operational space with an adapter that starts afresh or carries on at the switch."""
    target = task.target(condition, threads=1)
    seed = task.source.adapter_seed
    module = supervised(adapter, task.robot, task.settings.trials, seed, lambda: target.parameters)
    loop = Loop(target, task.source.reference, task.source.controller(), module)
    return _second_part(task, loop, progress, forget=state == "reset")


def _second_part(
    task: SourceToOscTask, loop: Loop, progress: Callable[[int], None] | None, *, forget: bool = False
) -> Trace:
    """Run the joint-space motion, switch, and keep what happens then."""
    run_loop(loop, task.settings.source_duration, progress=progress)
    loop.switch(task.poses, task.controller(), forget=forget)
    return run_loop(loop, task.settings.osc_duration, progress=progress)


def _cases(adapters: tuple[AdapterChoice, ...]) -> list[Case]:
    """Adapter, condition and state of every row."""
    return [
        (adapter, condition, state)
        for adapter in adapters
        for condition in CONDITIONS
        for state in (("-",) if adapter.name in STATELESS else STATES)
    ]


def _check(settings: Settings) -> None:
    """Refuse settings that cannot be run before anything is."""
    if not settings.robots:
        raise RetorqueError("name at least one robot after --robots")
    check_between("--trials", settings.trials, 1, MOST_TRIALS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    check_between("--source-duration", settings.source_duration, 1.0, 3600.0, "s")
    check_between("--osc-duration", settings.osc_duration, 1.0, 3600.0, "s")


def _world(settings: Settings) -> SourceToOscSettings:
    return SourceToOscSettings(
        trials=settings.trials,
        seed=settings.seed,
        noise=settings.noise,
        source_duration=settings.source_duration,
        osc_duration=settings.osc_duration,
    )


def _row(robot: Robot, case: Case, errors: Array, shaken: Array) -> Row:
    adapter, condition, state = case
    published = PAPER.get(adapter.name, {}) if robot.name == "panda" else {}
    return Row.of(
        errors[:, 0],
        robot=robot.name,
        method=adapter.name,
        metric="position RMSE",
        unit="cm",
        paper=published.get((condition, state)),
        extra={
            "condition": condition,
            "state": state,
            "final": float(np.mean(errors[:, 1])),
            "worst": float(np.max(errors[:, 0])),
            "worst, firm": float(np.max(errors[shaken < FIRM, 0], initial=0.0)),
            "trial_values": errors[:, 0].tolist(),
            "shaken": shaken.tolist(),
        },
    )
