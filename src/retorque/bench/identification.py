"""Rigid-body identification on the stand-in, two motions learnt: Table I of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row
from retorque.identify.hybrid.recordings import Split, record, together
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import progress

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
class Settings:
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
    for name in settings.methods:
        if name not in PAPER:
            raise unknown("identification method", name, PAPER)
    if settings.trials < 1 or settings.thin < 1 or settings.epochs < 1:
        raise RetorqueError("trials, thin and epochs must be at least 1")
    robot = Robot.load(settings.robot)
    rows = []
    with progress() as bar:
        task = bar.add_task("recording", total=1.0 + len(settings.methods))
        split = record(
            robot,
            scale=settings.scale,
            seed=settings.seed,
            progress=lambda part: bar.update(task, completed=part),
        )
        for index, name in enumerate(settings.methods):
            starts = 1 if name == "sdp" else settings.trials
            scores = []
            for start in range(starts):
                bar.update(task, description=f"{name}, start {start + 1} of {starts}")
                base = 1.0 + index + start / starts
                tell = lambda part, base=base, starts=starts: bar.update(task, completed=base + part / starts)  # noqa: E731
                scores.append(_scores(_fit(name, robot, split, settings, start, tell), split, settings.thin))
            bar.update(task, completed=2.0 + index)
            for metric, values, paper in zip(METRICS, np.array(scores).T, PAPER[name], strict=True):
                fields = {"robot": robot.name, "method": name, "metric": metric, "unit": "-", "paper": paper}
                rows.append(Row.of(values, **fields))
    return Report(
        bench="identification",
        settings=asdict(settings),
        rows=rows,
        notes="normalised mean squared torque error; the paper's robot is a real Panda, ours a simulated stand-in",
    )


def _fit(
    name: str, robot: Robot, split: Split, settings: Settings, start: int, tell: Callable[[float], None]
) -> Predict:
    data = together(split.pair(), settings.thin)
    seed = 1000 * settings.seed + start
    if name == "delan":
        from retorque.identify.methods.delan import DeLaNSettings, fit_delan, predict_delan

        low, high = split.torque_range()
        how = DeLaNSettings(seed=seed, epochs=settings.epochs)
        model = fit_delan(data, high - low, how, lambda epoch, loss: tell(epoch / settings.epochs))
        return lambda motion: predict_delan(model, motion)
    if name == "sdp":
        from retorque.identify.methods.sdp import SemidefiniteProgram

        found = SemidefiniteProgram().fit(data, robot, preset("none"))
    else:
        from retorque.identify.methods.differentiable import DiffBary, DiffNEA

        kind = DiffBary if name == "diffbary" else DiffNEA
        found = kind(seed=seed).fit(data, robot, preset("none"))
    return lambda motion: found.predict(motion.q, motion.qd, motion.qdd)


def _scores(predict: Predict, split: Split, thin: int) -> list[float]:
    low, high = split.torque_range()
    out = []
    for motions in (split.pair(), split.validation, split.test):
        motion = together(motions, thin)
        out.append(float(np.mean(np.square((predict(motion) - motion.torque) / (high - low)))))
    return out
