"""Rigid-body identification on the stand-in, two motions learnt: Table I of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.identify.hybrid.recordings import SCALES, record, together
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import KeptJobSettings, run_jobs
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
OURS = tuple(f"{name} (ours)" for name in ("sdp", "diffbary", "diffnea"))
"""With rotors, a prior and weights by joint; the two others by trust region on the log's triangular factor."""
STARTED = ("diffbary", "diffnea", "delan", *OURS[1:])
"""Methods with a random start."""
FAILED = 1.0
"""Normalised error from which a training has failed: a model that says nothing has about 0.05."""


@dataclass(frozen=True, kw_only=True)
class Settings(KeptJobSettings):
    """Settings of `retorque bench identification`."""

    methods: tuple[str, ...] = (*PAPER, *OURS)
    """Ways to identify; friction is left out of all, as in the paper. Under a plain name the paper's (Adam from random
    links, no rotors, no prior), "(ours)" the methods of `retorque identify`."""
    robot: str = "panda"
    """The robot whose stand-ins are recorded."""
    stand_ins: int = 1
    """Hidden arms, one a seed."""
    scale: float = 0.1
    """Length of the recordings; 1 is the paper's 4.9 hours."""
    trials: int = 3
    """Random starts of the methods that have one."""
    thin: int = 10
    """One sample in so many is learnt from and scored on; neighbours at 1 kHz say the same."""
    epochs: int = 200
    """Most passes of DeLaN over its samples, and a 25th of those of DiffBary and DiffNEA; all stop after ten without a
    better loss."""
    seed: int = 0
    """Of the first arm's recordings, of what it hides and of the starts."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    check_names("identification method", "--methods", settings.methods, (*PAPER, *OURS))
    check_between("--stand-ins", settings.stand_ins, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED // 1000 - 1000)  # every start has a seed of its own
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--thin", settings.thin, 1, 10_000)
    check_between("--epochs", settings.epochs, 1, 100_000)
    check_between("--scale", settings.scale, *SCALES)
    settings.check_jobs()
    robot = Robot.load(settings.robot)
    cases = [
        (name, arm, start)
        for arm in range(settings.stand_ins)
        for name in settings.methods
        for start in range(settings.trials if name in STARTED else 1)
    ]
    data = (settings.robot, settings.scale, settings.thin)
    jobs = [(name, settings.epochs, start, *data, settings.seed + arm) for name, arm, start in cases]
    how = (settings.workers, settings.cluster, settings.keep)
    found = run_jobs(scores_of, jobs, len(jobs), "recording and identifying", *how)
    rows = []
    for name in settings.methods:
        scores = np.array([score for score, case in zip(found, cases, strict=True) if case[0] == name])
        failed = ~np.all(scores < FAILED, axis=1)
        kept = scores if np.all(failed) else scores[~failed]
        paper = PAPER.get(name.removesuffix(" (ours)"))
        for k, metric in enumerate(METRICS):
            fields = {"robot": robot.name, "method": name, "metric": metric, "unit": "-"}
            extra = {"failed": int(np.sum(failed))}
            rows.append(Row.of(kept[:, k], **fields, paper=None if paper is None else paper[k], extra=extra))
    return Report(
        bench="identification",
        settings=recorded(settings),
        rows=rows,
        notes=(
            "normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in; "
            "trainings that failed are counted, not averaged"
        ),
    )


@lru_cache(maxsize=1)
def _recorded(robot: str, scale: float, thin: int, seed: int) -> tuple[list[Motion], Array]:
    """The pair that is learnt from, validation and test motion of one arm, and the range of its torques (n,) [N·m]."""
    split = record(Robot.load(robot), scale=scale, seed=seed)
    low, high = split.torque_range()
    return [together(motions, thin) for motions in (split.pair(), split.validation, split.test)], high - low


def scores_of(name: str, epochs: int, start: int, robot: str, scale: float, thin: int, seed: int) -> list[float]:
    """Errors of one method from one start on training, validation and test motion.

    Args:
        name: the method.
        epochs: of the settings.
        start: which random one.
        robot: whose stand-in.
        scale: length of the recordings.
        thin: one sample in so many.
        seed: of the arm.
    """
    data, span = _recorded(robot, scale, thin, seed)
    predict = _fit(name, Robot.load(robot), epochs, 1000 * seed + start, data[0], span)
    report_work(1)
    return [float(np.mean(np.square((predict(motion) - motion.torque) / span))) for motion in data]


def _fit(name: str, robot: Robot, epochs: int, seed: int, data: Motion, span: Array) -> Predict:
    if name == "delan":
        from retorque.identify.methods.delan import DeLaNSettings, fit_delan, predict_delan

        model = fit_delan(data, span, DeLaNSettings(seed=seed, epochs=epochs))
        return lambda motion: predict_delan(model, motion)
    if name in ("sdp", "diffbary", "diffnea"):
        from retorque.identify.methods.adam_regression import AdamRegression, plain_program

        if name == "sdp":
            links, _ = plain_program(data, robot, span)
        else:
            chart: Literal["diffbary", "diffnea"] = "diffbary" if name == "diffbary" else "diffnea"
            links = AdamRegression(chart=chart, seed=seed, epochs=25 * epochs).fit(data, robot, span)
        body = RigidBody(robot)
        return lambda motion: body.regressor(motion.q, motion.qd, motion.qdd) @ links.ravel()
    if name == OURS[0]:
        from retorque.identify.methods.sdp import SemidefiniteProgram

        found = SemidefiniteProgram().fit(data, robot, preset("none"))
    else:
        from retorque.identify.methods.differentiable import DiffBary, DiffNEA

        kind = DiffBary if name == OURS[1] else DiffNEA
        found = kind(seed=seed).fit(data, robot, preset("none"))
    return lambda motion: found.predict(motion.q, motion.qd, motion.qdd)
