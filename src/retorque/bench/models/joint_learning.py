"""Whether a rigid body learnt beside an LSTM is still the robot's: Fig. 2 of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retorque.bench.models.inverse_dynamics import WORSE, HybridSettings
from retorque.bench.report import Report, Row, recorded
from retorque.robots.robot import Robot
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

if TYPE_CHECKING:
    from retorque.identify.hybrid.joint_training import JointCurve


@dataclass(frozen=True, kw_only=True)
class Settings(HybridSettings):
    """Settings of `retorque bench joint-learning`; everything is as published."""

    trials: int = 10
    """Trainings with other first weights, on every stand-in."""
    epochs: int = 40
    """Passes over the training data."""
    published: bool = True
    """There is no other version."""
    picture: Path | None = None
    """Also draw the curves (Fig. 2) into this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    settings.check()
    from retorque.identify.hybrid.joint_training import BODIES

    ways = [(body, residual) for body in BODIES for residual in (False, True)]
    jobs = [(settings, arm) for arm in range(settings.stand_ins)]
    work = settings.stand_ins * settings.trials * len(ways)
    found = run_jobs(curves_of, jobs, work, "recording and training", settings.workers, settings.cluster)
    curves = {way: [curve for arm in found for curve in arm[way]] for way in ways}
    rows = []
    for (body, residual), every in curves.items():
        parts = {"alone": "body"} if not residual else {"beside an LSTM": "body", "with its LSTM": "whole"}
        for words, part in parts.items():
            losses = np.array([getattr(curve, part) for curve in every])
            bad = ~(losses[:, -1] < WORSE)
            kept = losses if np.all(bad) else losses[~bad]
            extra = {"failed": int(np.sum(bad)), "curves": kept.tolist()}
            fields = {"robot": settings.robot, "metric": "validation NMSE", "unit": "-", "extra": extra}
            rows.append(Row.of(kept[:, -1], method=f"{body} {words}", **fields))
    if settings.picture is not None:
        from retorque.bench.models.model_pictures import draw_curves

        draw_curves(rows, settings.picture)
    return Report(
        bench="joint-learning",
        settings=recorded(settings),
        rows=rows,
        notes="after the last epoch; trainings that failed are counted, not averaged",
    )


def curves_of(settings: Settings, arm: int) -> dict[tuple[str, bool], list[JointCurve]]:
    """Every way of learning on one stand-in, a curve a training."""
    import torch

    from retorque.identify.hybrid.joint_training import BODIES, JointTraining, learn_together
    from retorque.identify.hybrid.recordings import record

    torch.set_num_threads(settings.threads)
    robot, seed = Robot.load(settings.robot), settings.seed + arm
    split = record(robot, scale=settings.scale, seed=seed)
    out: dict[tuple[str, bool], list[JointCurve]] = {}
    for body in BODIES:
        for residual in (False, True):
            for trial in range(settings.trials):
                training = JointTraining(
                    body=body,
                    residual=residual,
                    epochs=settings.epochs,
                    batch=settings.batch,
                    seed=1000 * seed + trial,
                )
                out.setdefault((body, residual), []).append(learn_together(robot, split, training))
                report_work(1)
    return out
