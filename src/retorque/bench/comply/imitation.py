"""Diffusion policies that scoop: x_des through compliance against x_ref by position, section IV-D of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retorque.bench.report import Report, Row, recorded
from retorque.tasks.scoop.diffusion_network import load_diffusion
from retorque.tasks.scoop.diffusion_poses import DiffusionPoses
from retorque.tasks.scoop.pose_recorder import ScoopEyes
from retorque.tasks.scoop.pose_source import PoseSource
from retorque.tasks.scoop.scoop_task import ScoopScore, ScoopSettings, ScoopTask
from retorque.tasks.scoop.scripted_scoop import ScriptedScoop
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

POLICIES = {
    "x_des, compliance": ("x_des", "retorque"),
    "x_ref, position": ("x_ref", "position"),
    "x_des, position": ("x_des", "position"),
    "script, compliance": ("script", "retorque"),
    "script, position": ("script", "position"),
}
"""What is cloned, or the operators' own script, and what follows it."""
PAPER = {"x_des, compliance": 0.8, "x_ref, position": 0.4}
"""16 and 8 of 20 eggs, on hardware."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench imitation`."""

    methods: tuple[str, ...] = tuple(POLICIES)
    """What leads, and what follows it."""
    trials: int = 20
    """Tables of unknown height, each with a ball and an arm of its own."""
    seed: int = 0
    """Of everything random."""
    wrong: float = 0.012
    """Largest error of the tables' heights; the demonstrations had 0.012 [m]."""
    x_des: Path | None = None
    """Weights cloned from x_des instead of the ones on board."""
    x_ref: Path | None = None
    """Weights cloned from x_ref instead of the ones on board."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Scoop with every method on the same tables."""
    check_names("method", "--methods", settings.methods, POLICIES)
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    check_between("--wrong", settings.wrong, 0.0, 0.05)
    settings.check_jobs()
    world = ScoopSettings(trials=settings.trials, seed=settings.seed, wrong=settings.wrong)
    weights = {"x_des": settings.x_des, "x_ref": settings.x_ref}
    jobs = [(world, *POLICIES[method], weights.get(POLICIES[method][0])) for method in settings.methods]
    for _, action, _, path in jobs:
        if action != "script":
            load_diffusion(action, path)
    ticks = round(world.duration / 0.02) * len(jobs)
    found = run_jobs(scooped, jobs, ticks, "imitation", settings.workers, settings.cluster)
    rows = [_row(method, score) for method, score in zip(settings.methods, found, strict=True)]
    return Report(
        bench="imitation",
        settings=recorded(settings),
        rows=rows,
        notes=f"success: the ball lies in the bowl in the end; tables up to {1e3 * settings.wrong:g} mm off; "
        "95 % interval of a rate (Wilson); paper: 16 and 8 of 20 eggs on hardware, another task",
    )


def scooped(world: ScoopSettings, action: str, controller: str, weights: Path | None) -> ScoopScore:
    """One method's scores."""
    task, seed = ScoopTask(world), world.seed
    source: PoseSource
    if action == "script":
        source = ScriptedScoop(task.place, seed)
    else:
        source = DiffusionPoses(load_diffusion(action, weights, task.robot), ScoopEyes(task, seed), seed)
    return task.run(task.policy(source), task.controller(controller), progress=report_work)


def _row(method: str, score: ScoopScore) -> Row:
    extra = {
        "succeeded": int(score.success.sum()),
        "mean peak [N]": float(score.peak.mean()),
        "largest peak [N]": float(score.peak.max()),
        "trial_values": score.success.tolist(),
    }
    return Row.rate(
        score.success,
        robot="arx_x5",
        method=method,
        metric="success",
        unit="share",
        paper=PAPER.get(method),
        extra=extra,
    )
