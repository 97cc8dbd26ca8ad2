"""Rigid-body identification on the stand-in, two motions learnt: Table I of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.identify.hybrid.recordings import SCALES, record, together
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import JobSettings, progress, run_jobs
from retorque.work.jobs import report as report_work

Predict = Callable[[Motion], Array]

METRICS = ("train NMSE", "validation NMSE", "test NMSE")
PAPER: dict[str, tuple[float, float, float]] = {
    "sdp": (0.0070, 0.0074, 0.0085),
    "diffbary": (0.0071, 0.0075, 0.0086),
    "diffnea": (0.0071, 0.0075, 0.0087),
    "delan": (0.0081, 0.13066, 0.2718),
}
"""Table I, on a real Panda."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench identification`."""

    methods: tuple[str, ...] = ("sdp", "diffbary", "diffnea", "delan")
    """Ways to identify; friction is left out of all, as in the paper."""
    robot: str = "panda"
    """The robot whose stand-in is recorded."""
    scale: float = 0.1
    """Length of the recordings; 1 is the paper's 4.9 hours."""
    trials: int = 3
    """Random starts of the methods that have one."""
    thin: int = 10
    """One sample in so many is learnt from and scored on; neighbours at 1 kHz say the same."""
    epochs: int = 200
    """Most passes of DeLaN over its samples; it stops after ten without a better loss."""
    seed: int = 0
    """Of the recordings, of what the stand-in hides and of the starts."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    check_names("identification method", "--methods", settings.methods, PAPER)
    check_between("--seed", settings.seed, 0, MOST_SEED // 1000 - 1)  # every start has a seed of its own
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--thin", settings.thin, 1, 10_000)
    check_between("--epochs", settings.epochs, 1, 100_000)
    check_between("--scale", settings.scale, *SCALES)
    settings.check_jobs()
    robot = Robot.load(settings.robot)
    with progress() as bar:
        task = bar.add_task("recording", total=1.0)
        split = record(
            robot,
            scale=settings.scale,
            seed=settings.seed,
            progress=lambda part: bar.update(task, completed=part),
        )
    low, high = split.torque_range()
    data = [together(motions, settings.thin) for motions in (split.pair(), split.validation, split.test)]
    cases = [(name, start) for name in settings.methods for start in range(1 if name == "sdp" else settings.trials)]
    jobs = [(name, settings, start, data, high - low) for name, start in cases]
    found = run_jobs(scores_of, jobs, len(jobs), "identifying", settings.workers, settings.cluster)
    rows = []
    for name in settings.methods:
        scores = np.array([score for score, case in zip(found, cases, strict=True) if case[0] == name])
        for metric, values, paper in zip(METRICS, scores.T, PAPER[name], strict=True):
            fields = {"robot": robot.name, "method": name, "metric": metric, "unit": "-", "paper": paper}
            rows.append(Row.of(values, **fields))
    return Report(
        bench="identification",
        settings=recorded(settings),
        rows=rows,
        notes="normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in",
    )


def scores_of(name: str, settings: Settings, start: int, data: list[Motion], span: Array) -> list[float]:
    """Errors of one method from one start on training, validation and test motion.

    Args:
        name: the method.
        settings: of the bench.
        start: number of the random start.
        data: the three motions; the first is learnt from.
        span: (n,) what errors are divided by [N·m].
    """
    predict = _fit(name, settings, 1000 * settings.seed + start, data[0], span)
    report_work(1)
    return [float(np.mean(np.square((predict(motion) - motion.torque) / span))) for motion in data]


def _fit(name: str, settings: Settings, seed: int, data: Motion, span: Array) -> Predict:
    robot = Robot.load(settings.robot)
    if name == "delan":
        from retorque.identify.methods.delan import DeLaNSettings, fit_delan, predict_delan

        model = fit_delan(data, span, DeLaNSettings(seed=seed, epochs=settings.epochs))
        return lambda motion: predict_delan(model, motion)
    if name == "sdp":
        from retorque.identify.methods.sdp import SemidefiniteProgram

        found = SemidefiniteProgram().fit(data, robot, preset("none"))
    else:
        from retorque.identify.methods.differentiable import DiffBary, DiffNEA

        kind = DiffBary if name == "diffbary" else DiffNEA
        found = kind(seed=seed).fit(data, robot, preset("none"))
    return lambda motion: found.predict(motion.q, motion.qd, motion.qdd)
