"""Joint tracking with hidden parameters, every adapter on the same targets: Table 3 of the TAM paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.bench.adapters import AdapterChoice, AdapterSettings, halves, supervised
from retorque.bench.ideal_check import check_ideal
from retorque.bench.report import Report, Row, recorded
from retorque.loop.loop import Loop
from retorque.loop.loop import run as run_loop
from retorque.loop.trace import Trace
from retorque.robots.robot import Robot
from retorque.runtime.compiled.compiled_body import compiled_impedance
from retorque.simulate.effects import EFFECTS
from retorque.tasks.public_tracking import PublicTrackingTask, public_robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, fixed_base
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between
from retorque.work.errors import RetorqueError
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

SEVEN = ("panda", "piper", "iiwa14", "rizon4", "rby1", "google_robot", "z1")
"""The robots of Table 3."""

PAPER: dict[str, dict[str, float]] = {
    "direct": dict(zip(SEVEN, (4.16, 4.88, 3.69, 4.06, 3.80, 4.69, 6.11), strict=True)),
    "particle": dict(zip(SEVEN, (1.43, 0.83, 0.99, 1.33, 1.39, 1.65, 1.05), strict=True)),
    "tam-no-etau": dict(zip(SEVEN, (1.27, 0.54, 0.94, 1.43, 1.30, 3.58, 2.43), strict=True)),
    "tam": dict(zip(SEVEN, (0.59, 0.52, 0.56, 0.84, 0.84, 1.05, 0.93), strict=True)),
    "tam-ft": dict(zip(SEVEN, (0.43, 0.42, 0.47, 0.68, 0.66, 0.93, 0.72), strict=True)),
}
"""Joint RMSE [deg] of Tables 3 and D.2, without noise, contact or other effects."""
PAPER["tam-no-residual"] = PAPER["tam-no-etau"]  # the paper's module knows nothing else of the ideal model

ORACLE_NOTE = "; the oracle inverts the simulator's own time step, so without noise it is zero by construction"
"""What keeps a reader from taking the oracle's row for a measurement."""


PUBLIC_NOTE = (
    "; protocol public: the world of the paper's public evaluator (inertias of piper and google are our cards')"
)
"""What that protocol is."""


@dataclass(frozen=True, kw_only=True)
class Settings(AdapterSettings):
    """Settings of `retorque bench tracking`."""

    robots: tuple[str, ...] = ("panda",)
    """Robots on board, or paths of MJCF or URDF files; `all` for the paper's seven."""
    adapters: tuple[str, ...] = ("default", "direct", "oracle")
    """Adapters to compare: on board, or your own as MODULE:CLASS (looked for in this folder too)."""
    trials: int = 100
    """Randomised targets a robot."""
    seed: int = 0
    """Of everything random."""
    duration: float = 16.0
    """Length of each trial [s]."""
    noise: bool = False
    """Add the sensor noise and delays of Table B.1."""
    contact: bool = False
    """Add five smooth external-torque pulses a trial."""
    payload_step: float = 0.0
    """Payload added in the middle of each trial [kg]."""
    nothing_hidden: bool = False
    """Use the ideal robot as the target: what does an adapter invent?"""
    unmodelled: bool = False
    """Add, one row each, effects that no parameter describes (`tam-recursive` has seen all of them in training)."""
    told: bool = True
    """Adapters know the ranges on the robot's card; otherwise only those that its limits and inertias suggest."""
    protocol: Literal["ours", "public"] = "ours"
    """`public`: homes, gains, amplitudes, rotors and sampler of the paper's public evaluator."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    _check(settings)
    choices = settings.choices()
    names = SEVEN if settings.robots == ("all",) else settings.robots
    robots = [fixed_base(Robot.load(name)) for name in names]
    if settings.protocol == "public":
        robots = [public_robot(robot) for robot in robots]
    effects = tuple(EFFECTS) if settings.unmodelled else ("",)
    worlds = [(robot, effect) for robot in robots for effect in effects]
    parts = halves(settings.trials)
    jobs = [
        (name, _world(settings, effect), choices, rows, settings.protocol, settings.told)
        for name in names
        for effect in effects
        for rows in parts
    ]
    ticks = round(settings.duration / 1e-3) * (1 + len(settings.adapters))
    results = run_jobs(
        errors_of_part, jobs, ticks * len(jobs), "tracking", settings.workers, settings.cluster, settings.keep
    )
    rows = []
    for index, (robot, effect) in enumerate(worlds):
        chunks = results[index * len(parts) : (index + 1) * len(parts)]
        for adapter in settings.adapters:
            errors = np.concatenate([chunk[adapter] for chunk in chunks])  # (trials, 3) [deg]
            rows.append(_row(settings, robot, effect, adapter, errors))
    return Report(
        bench="tracking",
        settings=recorded(settings),
        rows=rows,
        notes="joint RMSE against the ideal robot's own motion; paper: TAM, Table 3 and D.2 (no noise, no contact)"
        + (PUBLIC_NOTE if settings.protocol == "public" else "")
        + (ORACLE_NOTE if "oracle" in settings.adapters else ""),
    )


def _check(settings: Settings) -> None:
    """Refuse settings that cannot be run before anything is."""
    if not settings.robots:
        raise RetorqueError("name at least one robot after --robots")
    check_between("--trials", settings.trials, 1, MOST_TRIALS)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    check_between("--duration", settings.duration, 1.0, 3600.0, "s")
    check_between("--payload-step", settings.payload_step, 0.0, 100.0, "kg")


def errors_of_part(
    name: str,
    world: TrackingSettings,
    adapters: tuple[AdapterChoice, ...],
    rows: slice,
    protocol: str = "ours",
    told: bool = True,
) -> dict[str, Array]:
    """Errors of each adapter on some of the trials: (trials, 3) RMSE over all, the first 2 s, the last 4 s [deg]."""
    kind = PublicTrackingTask if protocol == "public" else TrackingTask
    task = kind(Robot.load(name), world).part(rows)
    ideal = ideal_motion(task, report_work, compiled=any(adapter.compiled for adapter in adapters))
    found = {}
    for adapter in adapters:
        trace = adapted_motion(task, adapter, report_work, told=told)
        error = np.rad2deg(trace.position - ideal.position)
        windows = (trace.time >= 0.0, trace.time <= 2.0, trace.time > world.duration - 4.0)
        found[adapter.name] = np.stack([np.sqrt(np.mean(error[w] ** 2, axis=(0, 2))) for w in windows], axis=-1)
    return found


def ideal_motion(task: TrackingTask, progress: Callable[[int], None] | None = None, *, compiled: bool = False) -> Trace:
    """How the ideal robot moves in the task; refused where it does not cope with it."""
    target = task.ideal(threads=1)
    controller = compiled_impedance(task.controller()) if compiled else task.controller()
    loop = Loop(target, task.reference, controller)
    trace = run_loop(loop, task.settings.duration, before=task.pushes(target), progress=progress)
    followed = None if task.settings.contact else np.array([task.reference.at(time).position for time in trace.time])
    check_ideal(task.robot, trace, target.diverged, followed, damping=controller.damping, timestep=target.timestep)
    return trace


def adapted_motion(
    task: TrackingTask,
    adapter: str | AdapterChoice,
    progress: Callable[[int], None] | None = None,
    *,
    told: bool = True,
) -> Trace:
    """How the targets move with an adapter, which may be told what ranges they were drawn from."""
    target = task.target(threads=1)
    robot = task.robot if told else replace(task.robot, profile=None)
    module = supervised(adapter, robot, task.settings.trials, task.adapter_seed, lambda: target.parameters)
    controller = task.controller()
    if isinstance(adapter, AdapterChoice) and adapter.compiled:
        controller = compiled_impedance(controller)
    loop = Loop(target, task.reference, controller, module)
    return run_loop(loop, task.settings.duration, before=task.events(target), progress=progress)


def _world(settings: Settings, effect: str) -> TrackingSettings:
    return TrackingSettings(
        trials=settings.trials,
        seed=settings.seed,
        duration=settings.duration,
        noise=settings.noise,
        contact=settings.contact,
        nothing_hidden=settings.nothing_hidden,
        payload_step=settings.payload_step,
        effect=effect,
    )


def _row(settings: Settings, robot: Robot, effect: str, adapter: str, errors: Array) -> Row:
    plain = not (settings.contact or settings.payload_step or settings.nothing_hidden or effect)
    extra = {
        "first 2 s": float(np.mean(errors[:, 1])),
        "last 4 s": float(np.mean(errors[:, 2])),
        "worst": float(np.max(errors[:, 0])),
        "trial_values": errors[:, 0].tolist(),
    }
    if effect:
        extra = {"effect": effect, **extra}
    paper = PAPER.get(adapter, {}).get(robot.name) if plain and robot.profile is not None else None
    return Row.of(
        errors[:, 0], robot=robot.name, method=adapter, metric="joint RMSE", unit="deg", paper=paper, extra=extra
    )
