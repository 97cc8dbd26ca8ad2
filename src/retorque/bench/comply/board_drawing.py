"""A heart on a board that is not where it was thought: Table I of the compliance paper, with position control."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.tasks.comply.draw_score import DrawScore, score
from retorque.tasks.comply.draw_task import DRAWING_METHODS, DrawSettings, DrawTask
from retorque.tasks.comply.drawing_sites import check_drawing
from retorque.tasks.comply.method_controller import METHODS
from retorque.tasks.comply.stroke_shapes import shape
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

PAPER = {
    "public-code": {"position": 15.9, "orientation": 0.048, "pitch": 0.029},
    "without f_ext": {"position": 22.5, "orientation": 0.082, "pitch": 0.060},
    "unifp": {"position": 57.8, "orientation": 0.147, "pitch": 0.068},
    "facet": {"position": 22.4, "orientation": 0.151, "pitch": 0.018},
}
"""Table I, on hardware."""
UNITS = {"position": "mm", "orientation": "rad", "pitch": "rad", "force": "N", "contact": "%"}


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench compliance`."""

    robot: str = "toddlerbot_2xm"
    """Which embodiment draws."""
    shape: str = "heart"
    """heart, star, circle, text:WORDS or an SVG path."""
    methods: tuple[str, ...] = METHODS
    """Controllers to compare on the same boards; unifp and facet are there too, for toddlerbot_2xm."""
    kinematics: str = "compiled"
    """Inverse kinematics of all methods: compiled or mink."""
    trials: int = 20
    """Boards, each misplaced and tilted, with a robot of its own hidden friction."""
    seed: int = 0
    """Of everything random."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Draw with every method."""
    check_drawing(settings.robot)
    shape(settings.shape)
    check_names("method", "--methods", settings.methods, DRAWING_METHODS)
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    world = DrawSettings(
        robot=settings.robot,
        shape=settings.shape,
        trials=settings.trials,
        seed=settings.seed,
        kinematics=settings.kinematics,
    )
    jobs = [(world, method) for method in settings.methods]
    task = DrawTask(world)
    for method in settings.methods:
        task.check(method)
    ticks = len(task.plan().position)
    found = run_jobs(draw, jobs, ticks * len(jobs), "compliance", settings.workers, settings.cluster)
    rows = [
        row for method, result in zip(settings.methods, found, strict=True) for row in _rows(settings, method, result)
    ]
    return Report(
        bench="compliance",
        settings=recorded(settings),
        rows=rows,
        notes="boards 1 cm and 10 degrees wrong; position: distance from the stroke as it lies on the true board "
        "(deviation: from the commanded point, misplacement included); force along the true normal, 5 N commanded; "
        "a fallen robot's figures are those of its fall; unifp and facet: trained for minutes, the right arm only; "
        "paper: Table I, on hardware",
    )


def draw(world: DrawSettings, method: str) -> DrawScore:
    """One method's scores."""
    task = DrawTask(world)
    return score(task, task.run(method, report_work))


def _rows(settings: Settings, method: str, found: DrawScore) -> list[Row]:
    shared = {"fallen": int(found.fallen.sum()), "kinematics": settings.kinematics}
    extras = {
        "position": {"deviation": float(found.deviation.mean())},
        "force": {"peak": float(found.peak.mean()), "largest peak": float(found.peak.max())},
        "contact": {"least": float(found.contact.min())},
    }
    rows = []
    for metric, unit in UNITS.items():
        values = np.asarray(getattr(found, metric))
        paper = PAPER.get(method, {}).get(metric) if settings.robot == "toddlerbot_2xm" else None
        extra = {**shared, **extras.get(metric, {})}
        rows.append(
            Row.of(values, robot=settings.robot, method=method, metric=metric, unit=unit, paper=paper, extra=extra)
        )
    return rows
