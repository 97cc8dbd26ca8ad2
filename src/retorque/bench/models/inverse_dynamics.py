"""Inverse-dynamics models with and without learnt residuals: Table II of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from retorque.bench.models.identification import METRICS
from retorque.bench.report import Report, Row, recorded
from retorque.identify.hybrid.recordings import SCALES
from retorque.robots.robot import Robot
from retorque.work.checks import MOST_SEED, MOST_WORKERS, check_between
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

if TYPE_CHECKING:
    from retorque.identify.hybrid.model_set import Trained
    from retorque.identify.hybrid.train_hybrid import HybridTraining

PAPER: dict[str, tuple[float, float, float]] = {
    "RBD+Sign+LSTM E2E": (0.0021, 0.0025, 0.0033),
    "RBD+Sign+LSTM 2S": (0.0013, 0.0022, 0.0035),
    "RBD+Sign+MLP 2S": (0.0004, 0.0030, 0.0065),
    "RBD+Sign E2E": (0.0038, 0.0036, 0.0037),
    "RBD+Sign 2S": (0.0035, 0.0036, 0.0035),
    "RBD E2E": (0.0082, 0.0076, 0.0082),
    "RBD 2S": (0.0080, 0.0075, 0.0081),
    "LSTM E2E": (0.0036, 0.0056, 0.0089),
}
"""Table II, on a real Panda: train, validation and test."""


STAGES = 5
"""Recording, and four trainings of networks."""
STAGE = 100
"""Units of progress in a stage."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench inverse-dynamics`."""

    robot: str = "panda"
    """The robot whose stand-in is recorded."""
    scale: float = 0.1
    """Length of the recordings; 1 is the paper's 4.9 hours."""
    workers: int = 1
    """Trainings at a time; 0 takes all cores."""
    trials: int = 1
    """Trainings with other first weights."""
    epochs: int = 6
    """Most passes over the training data."""
    published: bool = False
    """Train the paper's models as published (Table IV, sections IV-D to F) instead of ours."""
    folder: Path | None = None
    """Keep the weights here, and go on from what is already there."""
    threads: int = 2
    """PyTorch's threads."""
    seed: int = 0
    """Of the recordings, of what the stand-in hides and of the first weights."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--epochs", settings.epochs, 1, 100_000)
    check_between("--scale", settings.scale, *SCALES)
    check_between("--threads", settings.threads, 1, MOST_WORKERS)
    check_between("--seed", settings.seed, 0, MOST_SEED // 1000 - 1)  # every training has a seed of its own
    settings.check_jobs()
    try:
        from retorque.identify.hybrid.model_set import NAMES, SPLITS
    except ModuleNotFoundError as error:
        raise RetorqueError(f"this bench needs {error.name}; run: pip install 'retorque[train,identify]'") from error
    robot = Robot.load(settings.robot)
    jobs = [(settings, trial) for trial in range(settings.trials)]
    work = settings.trials * STAGES * STAGE
    sets = run_jobs(models_of, jobs, work, "recording and training", settings.workers, settings.cluster)
    rows = []
    for name in NAMES:
        for metric, split, paper in zip(METRICS, SPLITS, PAPER[name], strict=True):
            values = np.array([found[name].nmse[split] for found in sets])
            extra = {"training_s": float(np.mean([found[name].header["made"]["seconds"] for found in sets]))}
            method = name if settings.published else f"{name} (ours)"
            fields = {"robot": robot.name, "method": method, "metric": metric, "unit": "-", "paper": paper}
            rows.append(Row.of(values, **fields, extra=extra))
    return Report(
        bench="inverse-dynamics",
        settings=recorded(settings),
        rows=rows,
        notes="normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in",
    )


def training_of(published: bool, epochs: int, seed: int, threads: int) -> HybridTraining:
    """How the networks are trained: as the paper has it, or ours."""
    from retorque.identify.hybrid.train_hybrid import HybridTraining

    if published:
        return HybridTraining.as_published(epochs=epochs, seed=seed, threads=threads)
    return HybridTraining(epochs=epochs, seed=seed, threads=threads)


def models_of(settings: Settings, trial: int) -> dict[str, Trained]:
    """All the models of one training, by name."""
    from retorque.identify.hybrid.model_set import build

    return build(
        Robot.load(settings.robot),
        scale=settings.scale,
        seed=settings.seed,
        training=training_of(settings.published, settings.epochs, 1000 * settings.seed + trial, settings.threads),
        folder=None if settings.folder is None else settings.folder / f"trial-{trial}",
        progress=Reporter(),
    )


class Reporter:
    """Tells the bar what a training says about its stages."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}

    def __call__(self, label: str, part: float) -> None:
        """So much of a stage is done; what follows a bracket in its label changes."""
        stage = label.partition(" (")[0]
        done = round(STAGE * part)
        report_work(max(0, done - self._done.get(stage, 0)))
        self._done[stage] = done
