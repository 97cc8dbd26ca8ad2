"""Inverse-dynamics models with and without learnt residuals: Table II of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from retorque.bench.identification import METRICS
from retorque.bench.report import Report, Row
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.jobs import progress

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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of `retorque bench inverse-dynamics`."""

    robot: str = "panda"
    """The robot whose stand-in is recorded."""
    scale: float = 0.1
    """Length of the recordings; 1 is the paper's 4.9 hours."""
    trials: int = 1
    """Trainings with other first weights."""
    epochs: int = 6
    """Most passes over the training data."""
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
    if settings.trials < 1 or settings.epochs < 1:
        raise RetorqueError("trials and epochs must be at least 1")
    try:
        from retorque.identify.hybrid.model_set import NAMES, SPLITS, build
        from retorque.identify.hybrid.train_hybrid import HybridTraining
    except ModuleNotFoundError as error:
        raise RetorqueError(f"this bench needs {error.name}; run: pip install 'retorque[train,identify]'") from error
    robot = Robot.load(settings.robot)
    sets = []
    with progress() as bar:
        task = bar.add_task("starting", total=1.0)
        for trial in range(settings.trials):
            folder = None if settings.folder is None else settings.folder / f"trial-{trial}"
            training = HybridTraining(
                epochs=settings.epochs, seed=1000 * settings.seed + trial, threads=settings.threads
            )
            sets.append(
                build(
                    robot,
                    scale=settings.scale,
                    seed=settings.seed,
                    training=training,
                    folder=folder,
                    progress=lambda label, part: bar.update(task, description=label, completed=part),
                )
            )
    rows = []
    for name in NAMES:
        for metric, split, paper in zip(METRICS, SPLITS, PAPER[name], strict=True):
            values = np.array([found[name].nmse[split] for found in sets])
            extra = {"training_s": float(np.mean([found[name].header["made"]["seconds"] for found in sets]))}
            fields = {"robot": robot.name, "method": name, "metric": metric, "unit": "-", "paper": paper}
            rows.append(Row.of(values, **fields, extra=extra))
    return Report(
        bench="inverse-dynamics",
        settings=asdict(settings),
        rows=rows,
        notes="normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in",
    )
