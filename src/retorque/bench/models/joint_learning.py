"""Whether a rigid body learnt beside an LSTM is still the robot's: Fig. 2 of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from retorque.bench.models.inverse_dynamics import WORSE, HybridSettings
from retorque.bench.report import Report, Row, recorded
from retorque.robots.robot import Robot
from retorque.work.jobs import report as report_work
from retorque.work.jobs import run_jobs

if TYPE_CHECKING:
    from retorque.identify.hybrid.joint_training import Body
    from retorque.identify.hybrid.recordings import Split


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

    def as_job(self) -> dict[str, Any]:
        """As for the models; the picture is of them all."""
        return {key: value for key, value in super().as_job().items() if key != "picture"}


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    settings.check()
    from retorque.identify.hybrid.joint_training import BODIES

    ways = [(body, residual) for body in BODIES for residual in (False, True)]
    which = [
        (arm, *way, trial) for arm in range(settings.stand_ins) for way in ways for trial in range(settings.trials)
    ]
    jobs = [(settings.as_job(), settings.threads, *one) for one in which]
    how = (settings.workers, settings.cluster, settings.kept("curves"))
    found = run_jobs(curve_of, jobs, len(jobs), "recording and training", *how)
    rows = []
    for body, residual in ways:
        every = [curve for curve, one in zip(found, which, strict=True) if one[1:3] == (body, residual)]
        parts = {"alone": "body"} if not residual else {"beside an LSTM": "body", "with its LSTM": "whole"}
        for words, part in parts.items():
            losses = np.array([curve[part] for curve in every])
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


def curve_of(
    job: dict[str, Any], threads: int, arm: int, body: Body, residual: bool, trial: int
) -> dict[str, list[float]]:
    """One way of learning on one stand-in from one start, the curves as plain lists."""
    import torch

    from retorque.identify.hybrid.joint_training import JointTraining, learn_together

    torch.set_num_threads(threads)
    settings = Settings.of_job(job)
    robot, seed = Robot.load(settings.robot), settings.seed + arm
    training = JointTraining(
        body=body,
        residual=residual,
        epochs=settings.epochs,
        batch=settings.batch,
        thin=settings.thin,
        seed=1000 * seed + trial,
    )
    curve = learn_together(robot, _recorded(settings.robot, settings.scale, seed), training)
    report_work(1)
    return {"body": curve.body.tolist(), "whole": curve.whole.tolist()}


@lru_cache(maxsize=1)
def _recorded(robot: str, scale: float, seed: int) -> Split:
    """The recordings of one stand-in, which its trainings follow one another with."""
    from retorque.identify.hybrid.recordings import record

    return record(Robot.load(robot), scale=scale, seed=seed)
