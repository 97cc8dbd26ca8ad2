"""Identification of real robots from recorded logs: a UR10e from motor currents, a Panda from joint torques."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.identify.methods.estimate import Estimate
from retorque.identify.methods.estimator import fit
from retorque.identify.methods.torque_model import TorqueModel
from retorque.logs.columns import Columns
from retorque.logs.log import Log
from retorque.logs.motion import Motion
from retorque.logs.signal import Filter
from retorque.physics.friction import preset
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

UR10E_GAINS = np.array([14.87, 13.26, 11.13, 10.62, 11.03, 11.47])
"""Published drive gains of the UR10e [N·m/A]."""
UR10E_RELATIVE = (0.114, 0.039, 0.037, 0.051, 0.266, 0.502)
"""Relative error of weighted least squares on the same logs, which is not physically consistent."""
PANDA_RMSE = (0.19, 0.21, 0.16, 0.19, 0.07, 0.07, 0.05)
"""Torque RMSE to reach on the Panda's log [N·m]."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench real-logs`."""

    workers: int = 1
    """Identifications at a time, 0 takes all cores; their times are only worth something one at a time."""
    data: Path = Path("../shared/data")
    """Folder with `ur10e/` and `panda_exciting/`."""
    methods: tuple[str, ...] = ("sdp", "wls")
    """Identification methods to compare."""
    friction: str = "presliding"
    """Friction model of every method."""
    cutoff: float = 5.0
    """Cut-off of the zero-phase filter [Hz]."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Identify both robots by each method and score held-out motion."""
    if not settings.data.is_dir():
        raise RetorqueError(
            f"the recorded logs are not at '{settings.data}'; give the folder that holds ur10e/ and panda_exciting/ "
            "with --data"
        )
    settings.check_jobs()
    used = [name for name, (folder, _) in LOGS.items() if (settings.data / folder).is_dir()]
    jobs = [(settings, name, method) for name in used for method in settings.methods]
    found = run_jobs(rows_of, jobs, len(jobs), "identifying", settings.workers, settings.cluster) if jobs else []
    rows = [row for part in found for row in part]
    if not rows:
        raise RetorqueError(f"'{settings.data}' holds neither ur10e/ nor panda_exciting/; give another --data")
    notes = (
        "paper: for the ur10e the relative error of weighted least squares with links that cannot exist, "
        "for the panda the figure to reach; friction and filter were chosen on training data. "
        "eigenvalue: smallest of any link's pseudo-inertia, above zero where every link can exist."
    )
    return Report(bench="real-logs", settings={**recorded(settings), "robots": used}, rows=rows, notes=notes)


def ur10e_logs(folder: Path, robot: Robot, settings: Filter) -> tuple[Motion, Motion]:
    """The 50 s Fourier motion to learn from and the point-to-point motion to test on."""

    def one(name: str, rows: slice) -> Motion:
        return _whole(Log((folder / name,), robot, rows=rows, drive_gains=UR10E_GAINS, filter=settings))

    train = one("ur-20_02_12-50sec_12harm.csv.gz", slice(355, 5090))
    return train, one("ur-20_01_17-ptp_10_points.csv.gz", slice(700, 4200))


def panda_columns() -> Columns:
    """Which file of the Panda's folder is what."""
    names = {"time": "time", "position": "positions", "velocity": "velocity", "torque": "torques"}
    return Columns(files={signal: f"{name}.txt.gz" for signal, name in names.items()})


def panda_logs(folder: Path, robot: Robot, settings: Filter) -> tuple[Motion, Motion]:
    """The first 70 % of the one log to learn from, the rest to test on."""
    columns = panda_columns()
    split = int(0.7 * 20_544)

    def one(rows: slice) -> Motion:
        return _whole(Log((folder,), robot, columns=columns, rows=rows, filter=settings))

    return one(slice(0, split)), one(slice(split, None))


def _whole(log: Log) -> Motion:
    motion = log.load()
    assert isinstance(motion, Motion)  # these logs are short
    return motion


LOGS = {"ur10e": ("ur10e", ur10e_logs), "panda": ("panda_exciting", panda_logs)}
"""The folder of each robot's logs, and what reads them."""


def rows_of(settings: Settings, name: str, method: str) -> list[Row]:
    """A robot's joints by one method, and how long that took."""
    robot = load(name)
    folder, logs = LOGS[name]
    train, held = logs(settings.data / folder, robot, Filter(cutoff=settings.cutoff))
    begun = time.perf_counter()
    estimate = fit(train, robot, preset(settings.friction), method)
    seconds = time.perf_counter() - begun
    score = estimate.score(held)
    goals: tuple[float, ...]
    if robot.name == "ur10e":
        metric, unit, values, goals = "relative error", "-", score.relative, UR10E_RELATIVE
    else:
        metric, unit, values, goals = "torque RMSE", "N·m", score.rmse, PANDA_RMSE
    rows = [
        Row.of(
            np.array([value]),
            robot=robot.name,
            method=method,
            metric=f"{metric}, joint {j + 1}",
            unit=unit,
            paper=goals[j],
            extra=_extra(estimate, float(score.rmse[j])),
        )
        for j, value in enumerate(values)
    ]
    report_work(1)
    spent = Row.of(
        np.array([seconds]), robot=robot.name, method=method, metric="log to solution", unit="s", paper=_seconds(robot)
    )
    return [*rows, spent]


def _seconds(robot: Robot) -> float | None:
    """FIGAROH needs 1.35 s for the UR10e's 4,700 samples."""
    return 1.35 if robot.name == "ur10e" else None


def _extra(model: TorqueModel, rmse: float) -> dict[str, float]:
    margin = {"eigenvalue": float(np.min(model.margins))} if isinstance(model, Estimate) else {}
    return {"rmse": rmse, **margin}
