"""How long one step of compliance takes: motor reports to joint targets, and the parts beside it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.bench.report import Report, Row, recorded
from retorque.control.comply.admittance import Admittance
from retorque.control.comply.compliance import Compliance
from retorque.control.comply.compliance_action import ComplianceAction, isotropic
from retorque.control.comply.hybrid_servoing import hybrid_servo
from retorque.control.comply.kinematics_choice import has_mink, kinematics_class
from retorque.control.comply.servo_feed_forward import ServoFeedForward
from retorque.control.comply.site_kinematics import KinematicsSettings
from retorque.loop.loop import Loop
from retorque.physics.kernels.compiled import COMPILED
from retorque.physics.kernels.compiled_tree import CompiledTree
from retorque.sense.external_torque import QuasiStatic, TorqueSettings
from retorque.sense.momentum import Momentum, welded
from retorque.sense.wrench_estimator import WrenchEstimator, own_joints
from retorque.simulate.motor_target import MotorTarget, MotorTruth
from retorque.tasks.comply.stay import Stay
from retorque.tasks.embodiments import EMBODIMENTS, embodiment
from retorque.work.array import Array
from retorque.work.checks import check_between, check_names
from retorque.work.jobs import JobSettings, run_jobs

PAPER = {"arx_x5": 750.0, "leap_hand": 2250.0, "toddlerbot_2xm": 2150.0, "g1": 2000.0}
"""The public code's step on a machine such as this one [us]; on its own Orin NX 12 ms."""
SETTLING = 100
"""Ticks before the time is taken."""
MARGIN = 0.01
"""Of the rows with self-collision [m]."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench comply-speed`."""

    robots: tuple[str, ...] = tuple(EMBODIMENTS)
    """Embodiments to time."""
    ticks: int = 3000
    """Steps that are timed."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Time everything on one thread."""
    check_names("robot", "--robots", settings.robots)
    for robot in settings.robots:
        embodiment(robot)
    check_between("--ticks", settings.ticks, 100, 10_000_000)
    settings.check_jobs()
    if settings.cluster:  # times that machine
        return run_jobs(run, [(replace(settings, cluster=""),)], 1, "comply-speed", 1, settings.cluster)[0]
    load = os.getloadavg()[0]
    rows = []
    for robot in settings.robots:
        cases: list[tuple[str, float, type[QuasiStatic], str]] = [
            ("full step", 0.0, QuasiStatic, "compiled"),
            ("full step, momentum", 0.0, Momentum, "compiled"),
            ("full step, self-collision", MARGIN, QuasiStatic, "compiled"),
        ]
        if has_mink():
            cases.append(("full step, mink", 0.0, QuasiStatic, "mink"))
        for method, margin, kind, inverse in cases:
            times = _times(_step(robot, margin, kind, inverse), settings.ticks)
            rows.append(_row(robot, method, times, PAPER.get(robot) if method == "full step" else None))
    rows.append(_row("block on a floor", "hybrid servoing (OCHS)", _times(_hybrid(), min(settings.ticks, 1000))))
    return Report(
        bench="comply-speed",
        settings={**recorded(settings), "machine": {"cores": os.cpu_count(), "load at the start": load}},
        rows=rows,
        notes=f"processor time; mean is the median; fastest: the fastest tenth, with warm caches; "
        f"{'compiled' if COMPILED else 'NOT compiled: install retorque[compile]'}; load {load:.1f} on "
        f"{os.cpu_count()} cores at the start; paper: its public code here",
    )


def _step(name: str, margin: float, kind: type[QuasiStatic], inverse: str) -> Callable[[], object]:
    body = embodiment(name)
    robot = welded(body.load())
    frames = tuple(robot.frame(site) for site in body.sites)
    tree = CompiledTree(robot, frames)
    used = own_joints(tree)
    at_all: Array = np.asarray(used.any(axis=0))
    torque = kind(robot, settings=TorqueSettings(noise=body.noise), used=at_all)
    source = WrenchEstimator(robot, body.sites, torque, body.prior)
    weights = KinematicsSettings(collision_margin=margin)
    kinematics = kinematics_class(inverse)(robot, frames, used, settings=weights)
    stiffness, damping = body.gains(robot)
    ahead = ServoFeedForward(torque.joints, stiffness, used)
    controller = Compliance(source, Admittance(len(frames)), kinematics, feed_forward=ahead)
    target = MotorTarget(robot, MotorTruth.sample(robot, 1, 0), stiffness, damping)
    state = target.reset(body.position(robot)[None])
    controller.reset(state)
    gains = np.tile(isotropic(200.0, 20.0), (1, len(frames), 1, 1))
    velocity, wrench = np.zeros((2, 1, len(frames), 6))
    action = ComplianceAction(source.tree.position.copy(), source.tree.rotation.copy(), gains, velocity, None, wrench)
    loop = Loop(target, Stay(action), controller)
    for _ in range(SETTLING):  # a robot that hangs in its servos: what is felt there is trusted
        state = loop.tick().state
    return lambda: controller.command(state, action)


def _hybrid() -> Callable[[], object]:
    """A block on a floor under a finger that sticks to it, in three dimensions."""
    stick = np.concatenate([np.eye(3), -np.eye(3)], axis=1)
    floor = np.array([[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    goal = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    external = np.array([0.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    jacobian = np.concatenate([stick, floor])
    return lambda: hybrid_servo(jacobian, goal, np.array([0.1, 0.0]), 3, np.array([2]), np.array([-3.0]), external)


def _times(call: Callable[[], object], count: int) -> Array:
    """Processor time of each call (count,) [us]: other programs on the machine do not count."""
    for _ in range(100):
        call()
    out = np.empty(count)
    for index in range(count):
        begin = time.thread_time_ns()
        call()
        out[index] = 1e-3 * (time.thread_time_ns() - begin)
    return out


def _row(robot: str, method: str, microseconds: Array, paper: float | None = None) -> Row:
    p10, p50, p99 = np.percentile(microseconds, [10.0, 50.0, 99.0])
    half = 0.98 * np.sqrt(len(microseconds))
    ranked = np.sort(microseconds)
    low, high = (int(np.clip(0.5 * len(ranked) + side * half, 0, len(ranked) - 1)) for side in (-1.0, 1.0))
    return Row(
        robot=robot,
        method=method,
        metric="time",
        unit="us",
        mean=float(p50),
        std=float(np.std(microseconds)),
        ci95=(float(ranked[low]), float(ranked[high])),
        trials=len(microseconds),
        paper=paper,
        extra={"fastest": float(p10), "p99": float(p99)},
    )
