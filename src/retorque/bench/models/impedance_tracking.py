"""Models as the feed-forward term of impedance control: Table III of the hybrid inverse-dynamics paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from retorque.bench.models.inverse_dynamics import STAGE, STAGES, HybridSettings, Reporter, failed, models_of
from retorque.bench.models.tracking_by_joint import PAPER_JOINTS
from retorque.bench.report import Report, Row, recorded
from retorque.identify.hybrid.motion_tracking import DURATIONS, GAINS, Tracking, set_points, track
from retorque.robots.robot import Robot
from retorque.work.array import Array
from retorque.work.checks import check_between
from retorque.work.jobs import run_jobs

METRICS = ("joint RMSE", "final offset")
PAPER: dict[str, dict[str, tuple[float, float]]] = {
    "RBD+Sign+LSTM E2E": {"soft": (12.799, 18.401), "medium": (2.244, 3.125), "stiff": (0.744, 0.992)},
    "RBD+Sign+LSTM 2S": {"soft": (16.207, 24.45), "medium": (2.599, 2.304), "stiff": (0.763, 0.596)},
    "RBD+Sign+MLP 2S": {"soft": (22.442, 34.427), "medium": (3.719, 3.955), "stiff": (1.053, 0.947)},
    "RBD+LSTM 2S": {},
    "RBD+Sign E2E": {"soft": (22.892, 30.053), "medium": (2.948, 3.447), "stiff": (2.863, 1.09)},
    "RBD+Sign 2S": {"soft": (18.372, 24.379), "medium": (6.764, 9.075), "stiff": (2.781, 3.21)},
    "RBD E2E": {"soft": (19.013, 29.757), "medium": (11.613, 16.388), "stiff": (4.005, 4.478)},
    "RBD 2S": {"soft": (18.867, 29.733), "medium": (12.495, 18.538), "stiff": (7.729, 9.739)},
    "LSTM E2E": {},
}
"""Table III on a real Panda, slow and fast together: RMSE and final offset [deg]; the black box failed. The 2.863 of
RBD+Sign E2E at stiff gains is as printed; the joints of the paper's own Table VII average to 0.946."""


@dataclass(frozen=True, kw_only=True)
class Settings(HybridSettings):
    """Settings of `retorque bench impedance-tracking`."""

    routes: int = 2
    """Different sequences of five movements."""
    velocity: Literal["measured", "desired"] = "measured"
    """The velocity that the models see: the paper's measured one, or the reference's, which feeds nothing back."""
    by_joint: bool = False
    """One row a joint (Tables VI and VII) instead of their mean."""

    def as_job(self) -> dict[str, Any]:
        """As for the models; a table by joint tells of the same runs."""
        return {key: value for key, value in super().as_job().items() if key != "by_joint"}


@dataclass(frozen=True)
class Tracked:
    """What one training's models did, slow and fast together."""

    error: Array
    """(metrics, models, gains, runs, n) mean over the movements [deg]."""
    failed: Array
    """(models, gains, runs) whether a joint ran into its limits, or the training itself had failed."""


def run(settings: Settings) -> Report:
    """Run the bench; a progress bar goes to standard error."""
    check_between("--routes", settings.routes, 1, 1000)
    settings.check()
    jobs = [(settings.as_job(), arm, trial) for arm in range(settings.stand_ins) for trial in range(settings.trials)]
    work = len(jobs) * (STAGES + len(DURATIONS) + 1) * STAGE
    how = (settings.workers, settings.cluster, settings.kept("tracked"))
    sets = run_jobs(tracked_by, jobs, work, "training and tracking", *how)
    every = Tracked(
        np.concatenate([np.array(tracked["error"]) for tracked in sets], axis=3),
        np.concatenate([np.array(tracked["failed"]) for tracked in sets], axis=2),
    )
    return _report(settings, every)


def tracked_by(job: dict[str, Any], arm: int, trial: int) -> dict[str, Any]:
    """What the models of one training on one stand-in do, in plain lists."""
    from retorque.identify.hybrid.streaming import StreamingModel

    settings = Settings.of_job(job)
    robot, seed, told = Robot.load(settings.robot), settings.seed + arm, Reporter()
    routes = set_points(robot, settings.routes, seed)
    found = models_of(settings, arm, (trial,))[0]
    models = [StreamingModel(robot, found[name].arrays, found[name].header) for name in PAPER]
    runs = [
        track(robot, models, routes, speed, velocity=settings.velocity, seed=seed, progress=partial(told, speed))
        for speed in DURATIONS
    ]
    tracked = _together(runs, np.array([failed(found[name]) for name in PAPER]))
    return {"error": tracked.error.tolist(), "failed": tracked.failed.tolist()}


def _together(runs: list[Tracking], untrained: Array) -> Tracked:
    """Both speeds as runs of one kind; `untrained` (models,) is which trainings had failed."""
    error = [
        np.concatenate([np.mean(x, axis=-2) for x in part], axis=-2)
        for part in zip(*((r.rmse, r.offset) for r in runs))
    ]
    stopped = np.concatenate([run.failed for run in runs], axis=-1)
    return Tracked(np.rad2deg(np.array(error)), stopped | untrained[:, None, None])


def _report(settings: Settings, tracked: Tracked) -> Report:
    """One row a model, metric and gain, of the runs that did not fail."""
    rows, failures = [], []
    joints = tracked.error.shape[-1]
    for i, name in enumerate(PAPER):
        for j, gain in enumerate(GAINS):
            stopped = tracked.failed[i, j]
            if np.any(stopped):
                failures.append(f"{name} at {gain} gains ({np.mean(stopped):.0%} of the runs)")
            for k, metric in enumerate(METRICS):
                values = tracked.error[k, i, j][~stopped] if not np.all(stopped) else np.full((1, joints), np.nan)
                extra = {"failed": float(np.mean(stopped))}
                fields = {"robot": settings.robot, "method": settings.called(name), "unit": "deg", "extra": extra}
                title, paper = f"{metric}, {gain}", PAPER[name].get(gain)
                if not settings.by_joint:
                    published = None if paper is None else paper[k]
                    rows.append(Row.of(values.mean(axis=1), **fields, metric=title, paper=published))
                    continue
                theirs = PAPER_JOINTS[metric].get(name, {}).get(gain, ())
                rows += [
                    Row.of(
                        values[:, n], **fields, metric=f"{title}, joint {n + 1}", paper=theirs[n] if theirs else None
                    )
                    for n in range(joints)
                ]
    notes = (
        "mean over the joints of five movements a route, slow and fast; a failed run hit a joint limit and was stopped "
        "there, and is counted, not averaged"
    )
    if failures:
        notes += f": {'; '.join(failures)}"
    return Report(bench="impedance-tracking", settings=recorded(settings), rows=rows, notes=notes)
