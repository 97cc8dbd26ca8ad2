"""Whether a payload's error bars hold: simulated arms whose drive gains are wrong together and one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.identify.hybrid.recordings import FAST_PERIOD, fourier_paths
from retorque.identify.payload_estimate import PayloadEstimate, estimate_payload
from retorque.identify.regression.layout import Layout
from retorque.logs.motion import Motion
from retorque.physics.friction import preset
from retorque.physics.parameters import altered_links
from retorque.physics.presliding import slip
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

RATE = 50.0  # Hz


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench payload`."""

    robots: tuple[str, ...] = ("ur10e", "panda")
    """Robots of which arms are drawn in turn."""
    arms: int = 50
    """Simulated arms."""
    common: float = 0.08
    """Standard deviation of the error that all drive gains of an arm share."""
    single: float = 0.04
    """Standard deviation of each gain's own error."""
    mass_spread: float = 0.1
    """Largest relative error of the card's masses."""
    centre_spread: float = 0.01
    """Largest error per axis of the card's centres of mass [m]."""
    noise: float = 0.02
    """Torque noise over the spread of the torque."""
    seed: int = 0
    """Seed of the first arm."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Draw arms and payloads, and see where the truth lies."""
    check_between("--arms", settings.arms, 1, 10_000)
    check_names("robot", "--robots", settings.robots)
    for name in settings.robots:
        load(name)
    for option in ("common", "single", "mass_spread", "noise"):
        check_between(f"--{option.replace('_', '-')}", getattr(settings, option), 0.0, 0.5)
    check_between("--centre-spread", settings.centre_spread, 0.0, 0.5, "m")
    check_between("--seed", settings.seed, 0, MOST_SEED)
    settings.check_jobs()
    jobs = [(settings, settings.robots[k % len(settings.robots)], k) for k in range(settings.arms)]
    found = np.array(run_jobs(one_arm, jobs, len(jobs), "weighing", settings.workers, settings.cluster))
    error, score, share = found.T
    inside = np.abs(score) < 1.96
    name = "+".join(settings.robots)
    rows = [
        Row.of(100.0 * np.abs(error), robot=name, method="payload", metric="mass error", unit="%",
               extra={"median": float(100.0 * np.median(np.abs(error)))}),
        Row.of(100.0 * inside, robot=name, method="payload", metric="truth inside the 95 % interval", unit="%"),
        Row.of(np.square(score), robot=name, method="payload", metric="squared error over its variance", unit="-"),
        Row.of(100.0 * share, robot=name, method="payload", metric="share of the gains in the variance", unit="%"),
    ]  # fmt: skip
    return Report(bench="payload", settings=recorded(settings), rows=rows)


def one_arm(settings: Settings, name: str, index: int) -> tuple[float, float, float]:
    """Relative error of the mass, the error over its standard deviation, and the gains' share of the variance."""
    robot, rng = load(name), np.random.default_rng([settings.seed, index])
    limit = float(np.max(np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)))
    mass = float(rng.uniform(0.1, 1.0)) * limit / 60.0
    estimate, _ = weighed(settings, robot, mass, rng)
    report_work(1)
    return estimate.mass / mass - 1.0, (estimate.mass - mass) / estimate.mass_std, estimate.gain_share


def weighed(settings: Settings, robot: Robot, mass: float, rng: np.random.Generator) -> tuple[PayloadEstimate, Motion]:
    """The estimate of a payload on a hidden arm, and the loaded log."""
    layout, body = Layout(robot, preset("presliding")), RigidBody(robot)
    links = layout.links
    scale = 1.0 + settings.mass_spread * rng.uniform(-1.0, 1.0, links)
    offset = settings.centre_spread * rng.uniform(-1.0, 1.0, (links, 3))
    limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)
    hidden = replace(
        layout.selection.base,
        inertial=altered_links(robot, scale, offset),
        armature=robot.armature + rng.uniform(0.1, 1.0, robot.n),
        friction_coefficients=0.01 * limit[:, None] * rng.uniform(0.2, 1.0, (robot.n, layout.friction.count)),
    )
    vector = layout.selection.to_vector(hidden)
    gains = (1.0 + settings.common * rng.standard_normal()) * (1.0 + settings.single * rng.standard_normal(robot.n))
    centre = 0.1 * rng.uniform(-1.0, 1.0, 3)
    logs = []
    for carried in (0.0, mass):
        parameters = hidden.with_payload(carried, centre, carried * 0.05**2 * np.eye(3))
        vector[: 10 * links] = parameters.total_inertial(robot).ravel()
        path = fourier_paths(robot, 1, int(rng.integers(1 << 30)))
        time = np.arange(int(FAST_PERIOD * RATE)) / RATE
        q, qd, qdd = (x[:, 0] for x in path.at(time[:, None] / FAST_PERIOD, np.full((len(time), 1), 1.0 / FAST_PERIOD)))
        wound = slip(q)
        torque = layout.torque(body, vector, q, qd, qdd, wound)
        noise = settings.noise * torque.std(axis=0) * rng.standard_normal(torque.shape)
        logs.append(Motion(q=q, qd=qd, qdd=qdd, torque=(torque + noise) / gains, time=time, slip=wound))
    return estimate_payload(logs[0], logs[1], robot), logs[1]
