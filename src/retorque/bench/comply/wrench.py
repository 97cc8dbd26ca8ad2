"""Wrenches from motor signals against the true ones: the compliance paper's Figure 3, by robot, speed and friction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.bench.comply.wrench_checks import moving_arm, phantom_moment
from retorque.bench.report import Report, Row, recorded
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.physics.motor_torque import SIGNALS, Signal
from retorque.robots.state import State
from retorque.sense.external_torque import QuasiStatic, TorqueSettings
from retorque.sense.momentum import Momentum
from retorque.sense.public_estimator import PublicCodeEstimator
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.tasks.embodiments import EMBODIMENTS, embodiment
from retorque.tasks.push_task import PushSettings, PushTask
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.errors import unknown
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

PAPER = {"toddlerbot_2xm": 0.69, "arx_x5": 1.05}
"""Mean absolute error of Figure 3, on hardware [N]."""
INSIDE = 7.815
"""Squared Mahalanobis distance of three numbers that 95 % stay within."""
ESTIMATORS = ("retorque", "quasi-static", "paper", "public-code")
"""retorque: momentum, friction by card, one solve; quasi-static: the same without momentum; paper: equations 6 to 9;
public-code: separate solves, and a flat gain for driven joints."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench wrench`."""

    robots: tuple[str, ...] = ("arx_x5", "leap_hand", "toddlerbot_2xm", "g1")
    """Embodiments."""
    estimators: tuple[str, ...] = ESTIMATORS
    """Estimators to compare on the same recordings."""
    motions: tuple[str, ...] = ("comply", "hold", "0.3")
    """comply: the compliance controller yields; hold: servos hold; a number: joints move at that speed [rad/s]."""
    frictions: tuple[float, ...] = (1.0,)
    """Times the cards' friction; 0: none."""
    signal: Signal = "best"
    """What the motors' torque is read from."""
    trials: int = 20
    """Robots with hidden friction, each pushed six times at every site."""
    seed: int = 0
    """Of everything random."""
    checks: bool = True
    """Also measure the phantom moment of a pure force, and a fast arm by torque."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Record pushes, then let every estimator read the same recordings."""
    _check(settings)
    worlds = [(r, m, f) for r in settings.robots for m in settings.motions for f in settings.frictions]
    jobs = [(robot, motion, friction, replace(settings, json=None)) for robot, motion, friction in worlds]
    results = run_jobs(_rows, jobs, len(jobs) * 10, "wrench", settings.workers, settings.cluster)
    rows = [row for part in results for row in part]
    if settings.checks:
        rows += [*phantom_moment(settings.trials, settings.seed), *moving_arm(min(settings.trials, 10), settings.seed)]
    return Report(
        bench="wrench",
        settings=recorded(settings),
        rows=rows,
        notes="force error: mean absolute error an axis, as the paper's Figure 3; norm: of the vector; hidden friction "
        "is up to 30 % off the cards; inside: truth within the reported 95 % ellipsoid, of those that are trusted",
    )


def _check(settings: Settings) -> None:
    check_names("robot", "--robots", settings.robots)
    for robot in settings.robots:
        embodiment(robot)
    check_names("estimator", "--estimators", settings.estimators, ESTIMATORS)
    check_names("motion", "--motions", settings.motions)
    check_names("friction", "--frictions", settings.frictions)
    for friction in settings.frictions:
        check_between("--frictions", friction, 0.0, 10.0)
    for motion in settings.motions:
        if motion not in ("comply", "hold"):
            try:
                check_between("--motions", float(motion), 0.0, 5.0, "rad/s")
            except ValueError:
                raise unknown("motion", motion, ("comply", "hold", "a speed in rad/s")) from None
    if settings.signal not in SIGNALS:
        raise unknown("signal", settings.signal, SIGNALS)
    check_between("--trials", settings.trials, 1, 1000)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()


def _rows(robot: str, motion: str, friction: float, settings: Settings) -> list[Row]:
    """Of one robot in one motion."""
    body = EMBODIMENTS[robot]
    speed = 0.0 if motion in ("comply", "hold") else float(motion)
    world = PushSettings(
        trials=settings.trials, seed=settings.seed, speed=speed, friction=friction, comply=motion == "comply"
    )
    task = PushTask(body, world)
    states, truth = task.record()
    report_work(6)
    rows = []
    for name in settings.estimators:
        wrench, inside, trusted = read(task, name, states, truth, settings.signal)
        error = wrench - truth  # (ticks, trials, sites, 3)
        norm = np.linalg.norm(error, axis=-1)
        extra = {
            "motion": motion,
            "friction": friction,
            "signal": settings.signal,
            "norm": float(norm.mean()),
            "spread": float(np.abs(error).std()),
            "inside": float(inside[trusted].mean()) if trusted.any() and inside.any() else float("nan"),
            "trusted": float(trusted.mean()),
        }
        paper = PAPER.get(robot) if name == "paper" else None
        values = np.abs(error).mean(axis=(0, 2, 3))
        rows.append(Row.of(values, robot=robot, method=name, metric="force error", unit="N", paper=paper, extra=extra))
        report_work(1)
    return rows


def read(task: PushTask, name: str, states: list[State], truth: Array, signal: Signal) -> tuple[Array, Array, Array]:
    """Forces (ticks, trials, sites, 3), whether the truth lies in their ellipsoids, and whether they are trusted."""
    robot, body, trials, dt = task.robot, task.body, task.settings.trials, task.settings.timestep
    tree = CompiledTree(robot, tuple(robot.frame(site) for site in body.sites), trials)
    used: Array = np.asarray(own_joints(tree).any(axis=0))
    own = TorqueSettings(signal=signal, noise=body.noise)
    made: WrenchEstimator
    if name in ("retorque", "quasi-static"):
        kind = Momentum if name == "retorque" else QuasiStatic
        torque = kind(robot, trials, dt, own, used)
        made = WrenchEstimator(robot, body.sites, torque, body.prior, body.estimator(), trials, dt)
    else:
        gain = 0.0 if name == "paper" else 1.0
        theirs = replace(own, friction=False, smoothing=body.smoothing if name == "paper" else 0.3, backdrive_gain=gain)
        torque = QuasiStatic(robot, trials, dt, theirs, used)
        made = PublicCodeEstimator(robot, body.sites, torque, body.prior, None, trials, dt)
    forces, inside, trusted = [], [], []
    for state, force in zip(states, truth, strict=True):
        estimate = made.update(state)
        forces.append(estimate.wrench[..., :3].copy())
        trusted.append(estimate.trusted.copy())
        covariance = estimate.covariance[..., :3, :3]
        if covariance.any():
            off = forces[-1] - force
            distance = np.einsum("tsi,tsi->ts", off, np.linalg.solve(covariance, off[..., None])[..., 0])
            inside.append(distance < INSIDE)
        else:
            inside.append(np.zeros(estimate.trusted.shape, dtype=bool))
    return np.array(forces), np.array(inside), np.array(trusted)
