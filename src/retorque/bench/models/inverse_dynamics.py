"""Inverse-dynamics models with and without learnt residuals: Table II of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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
    from retorque.identify.hybrid.recordings import Split
    from retorque.identify.hybrid.train_hybrid import HybridTraining

PAPER: dict[str, tuple[float, ...]] = {
    "RBD+Sign+LSTM E2E": (0.0021, 0.0025, 0.0033),
    "RBD+Sign+LSTM 2S": (0.0013, 0.0022, 0.0035),
    "RBD+Sign+MLP 2S": (0.0004, 0.0030, 0.0065),
    "RBD+LSTM 2S": (),
    "RBD+Sign E2E": (0.0038, 0.0036, 0.0037),
    "RBD+Sign 2S": (0.0035, 0.0036, 0.0035),
    "RBD E2E": (0.0082, 0.0076, 0.0082),
    "RBD 2S": (0.0080, 0.0075, 0.0081),
    "LSTM E2E": (0.0036, 0.0056, 0.0089),
}
"""Table II, on a real Panda: train, validation and test; RBD+LSTM is in Tables VI and VII only."""
STAGES = 5
"""Trainings of networks; recording is one more a stand-in."""
STAGE = 100
"""Units of progress in a stage."""
WORSE = 1.0
"""Normalised error from which a training has failed: a model that says nothing has about 0.05."""


@dataclass(frozen=True, kw_only=True)
class HybridSettings(JobSettings):
    """Which models are trained, and on what."""

    robot: str = "panda"
    """The robot whose stand-ins are recorded."""
    stand_ins: int = 1
    """Hidden arms, one a seed."""
    trials: int = 1
    """Trainings with other first weights, on every stand-in."""
    scale: float = 0.1
    """Length of the recordings; 1 is the paper's 4.9 hours."""
    epochs: int = 6
    """Most passes over the training data."""
    published: bool = False
    """Train the paper's models as published (Table IV, sections IV-D to F) instead of ours."""
    batch: int = 1000
    """Sequences a step of what is published; fewer make a small part of the data last for more steps."""
    thin: int = 1
    """Networks learn from one sequence in so many, evenly over the recordings."""
    folder: Path | None = None
    """Keep the weights here, and go on from what is already there; both benches of these models share it."""
    workers: int = 1
    """Stand-ins at a time; 0 takes all cores."""
    threads: int = 2
    """PyTorch's threads."""
    seed: int = 0
    """Of the first arm's recordings, of what it hides, of the first weights and of the set points."""
    json: Path | None = None
    """Also write the rows to this file."""

    def check(self) -> None:
        """Refuse, before the work, what cannot be done."""
        Robot.load(self.robot)
        check_between("--stand-ins", self.stand_ins, 1, 1000)
        check_between("--trials", self.trials, 1, 1000)
        check_between("--epochs", self.epochs, 1, 100_000)
        check_between("--batch", self.batch, 1, 100_000)
        check_between("--thin", self.thin, 1, 100_000)
        check_between("--scale", self.scale, *SCALES)
        check_between("--threads", self.threads, 1, MOST_WORKERS)
        check_between("--seed", self.seed, 0, MOST_SEED // 1000 - 1000)  # every training has a seed of its own
        self.check_jobs()
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError as error:
            raise RetorqueError(
                f"this bench needs {error.name}; run: pip install 'retorque[train,identify]'"
            ) from error

    def as_job(self) -> dict[str, Any]:
        """What one training follows from, as JSON: not how many there are and where each is done."""
        left_out = ("json", "workers", "cluster", "stand_ins", "trials", "threads")
        return {
            key: str(value) if isinstance(value, Path) else value
            for key, value in asdict(self).items()
            if key not in left_out
        }

    @classmethod
    def of_job(cls, job: dict[str, Any]) -> Self:
        """The settings of a job."""
        folder = job["folder"]
        return cls(**{**job, "folder": None if folder is None else Path(folder)})

    def kept(self, kind: str) -> Path | None:
        """Where finished jobs of one kind are kept."""
        return None if self.folder is None else self.folder / kind

    def called(self, name: str) -> str:
        """The name of a model in a table: the paper's own only where it is trained as published."""
        return name if self.published else f"{name} (ours)"

    def training(self, seed: int) -> HybridTraining:
        """How the networks are trained: as the paper has it, or ours."""
        from retorque.identify.hybrid.train_hybrid import HybridTraining

        if self.published:
            return HybridTraining.as_published(
                epochs=self.epochs, seed=seed, threads=self.threads, batch=self.batch, thin=self.thin
            )
        return HybridTraining(epochs=self.epochs, seed=seed, threads=self.threads, thin=self.thin)


@dataclass(frozen=True, kw_only=True)
class Settings(HybridSettings):
    """Settings of `retorque bench inverse-dynamics`."""

    picture: Path | None = None
    """Also draw each joint's test error (Fig. 3) into this file."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    settings.check()
    jobs = [(settings, arm) for arm in range(settings.stand_ins)]
    work = settings.stand_ins * (settings.trials * STAGES + 1) * STAGE
    found = run_jobs(models_of, jobs, work, "recording and training", settings.workers, settings.cluster)
    sets = [models for arm in found for models in arm]
    robot = Robot.load(settings.robot)
    rows = []
    for name, paper in PAPER.items():
        every = [models[name] for models in sets]
        kept = [model for model in every if not failed(model)] or every
        for k, (metric, split) in enumerate(zip(METRICS, ("train", "validation", "test"), strict=True)):
            extra: dict[str, Any] = {
                "training_s": float(np.mean([model.header["made"]["seconds"] for model in kept])),
                "failed": sum(map(failed, every)),
            }
            if split == "test":
                extra["joints"] = [model.header["made"]["test_nmse"] for model in kept]
            fields = {"robot": robot.name, "method": settings.called(name), "metric": metric, "unit": "-"}
            values = np.array([model.nmse[split] for model in kept])
            rows.append(Row.of(values, **fields, paper=paper[k] if paper else None, extra=extra))
    if settings.picture is not None:
        from retorque.bench.models.model_pictures import draw_joints

        draw_joints(rows, robot.joint_names, settings.picture)
    return Report(
        bench="inverse-dynamics",
        settings=recorded(settings),
        rows=rows,
        notes=(
            "normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in; "
            "trainings that failed are counted, not averaged"
        ),
    )


def failed(model: Trained) -> bool:
    """Whether a training is left out of every mean."""
    return model.failed or not all(value < WORSE for value in model.nmse.values())


def models_of(settings: HybridSettings, arm: int, trials: tuple[int, ...] = ()) -> list[dict[str, Trained]]:
    """All the models of one stand-in by name, a training each; `trials`: only these."""
    from retorque.identify.hybrid.model_set import build
    from retorque.identify.hybrid.recordings import record

    robot, seed = Robot.load(settings.robot), settings.seed + arm
    told = Reporter()

    @cache
    def recordings() -> Split:
        return record(robot, scale=settings.scale, seed=seed, progress=lambda part: told(f"recording {seed}", part))

    return [
        build(
            robot,
            scale=settings.scale,
            seed=seed,
            training=settings.training(1000 * seed + trial),
            recordings=recordings,
            folder=None if settings.folder is None else settings.folder / f"stand-in-{seed}" / f"trial-{trial}",
            progress=partial(told.of, f"{trial}: "),
        )
        for trial in trials or range(settings.trials)
    ]


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

    def of(self, training: str, label: str, part: float) -> None:
        """The same of one training among others."""
        self(training + label, part)
