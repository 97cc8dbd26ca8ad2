"""Verdicts on logs damaged on purpose, and on logs that are well: recorded robots and simulated stand-ins."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from retorque.bench.models.real_logs import UR10E_GAINS, panda_columns
from retorque.bench.report import Report, Row, recorded
from retorque.control.action import JointAction
from retorque.control.computed_torque import ComputedTorque
from retorque.identify.commands import IdentifySettings, identify
from retorque.identify.hybrid.recordings import FAST_PERIOD, FourierPath, fourier_paths
from retorque.identify.verdict.damage import Damage, RawLog, damages
from retorque.identify.verdict.mistakes import mistakes
from retorque.identify.verdict.verdict import Verdict
from retorque.logs.log import Log
from retorque.loop.loop import Loop
from retorque.physics.rigid_body import RigidBody
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.stand_in import StandIn, StandInSettings
from retorque.work.checks import MOST_SEED, check_between, check_names
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, run_jobs
from retorque.work.jobs import report as report_work

TIMESTEP = 1e-3
UR10E_LOGS = (
    "ur-20_02_12-50sec_12harm",
    "ur-20_01_17-ptp_10_points",
    "ur-20_01_22-joint_2",
    "ur-19_09_27-11_28_22",
    "ur-19_09_27-11_32_02",
)
FRICTION = 0.02
"""Coulomb friction of a stand-in over its torque limit."""
ROTOR = 0.1 / 87.0
"""Rotor inertia where a card has none, over the torque limit: that of a Panda's shoulder [kg·m²/(N·m)]."""
OTHERS = {"ur10e": ("z1", "piper"), "panda": ("iiwa14", "rizon4"), "iiwa14": ("panda", "rizon4")}
"""Cards of other robots that a log is read with."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench damaged-logs`."""

    data: Path = Path("../shared/data")
    """Folder with `ur10e/` and `panda_exciting/`; without it only stand-ins are used."""
    robots: tuple[str, ...] = ("ur10e", "panda")
    """Robots whose recordings are judged."""
    stand_in_robots: tuple[str, ...] = ("panda", "iiwa14", "rizon4", "z1", "ur10e")
    """Robots whose stand-ins are judged, in turn."""
    stand_ins: int = 20
    """Simulated arms, one a seed."""
    damaged_stand_ins: int = 2
    """How many of them, from the first on, are damaged as well."""
    seconds: float = 20.0
    """Length of a stand-in's log [s]."""
    seed: int = 0
    """Seed of the first stand-in."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Judge every log, damaged and well."""
    check_between("--stand-ins", settings.stand_ins, 0, 1000)
    check_between("--damaged-stand-ins", settings.damaged_stand_ins, 0, 1000)
    check_between("--seconds", settings.seconds, 5.0, 3600.0, "s")
    check_between("--seed", settings.seed, 0, MOST_SEED - 1000)  # every stand-in takes the next one
    if settings.robots:
        check_names("recorded robot", "--robots", settings.robots, ("ur10e", "panda"))
    for name in settings.stand_in_robots:
        load(name)
    settings.check_jobs()
    jobs = [(settings, name, source) for name in settings.robots for source in recorded_logs(settings, name)]
    arms = settings.stand_in_robots
    if arms:
        jobs += [(settings, arms[index % len(arms)], str(index)) for index in range(settings.stand_ins)]
    if not jobs:
        raise RetorqueError("there is no log to judge; name --robots with --data, or --stand-in-robots")
    found = run_jobs(rows_of, jobs, len(jobs), "judging", settings.workers, settings.cluster)
    rows = [row for part in found for row in part]
    caught = [row for row in rows if row.metric == "refused or doubted"]
    named = [row.extra["named"] for row in caught]
    alarms = [row for row in rows if row.metric == "false alarm"]
    notes = (
        f"{sum(row.mean for row in caught):.0f} of {len(caught)} damaged logs refused or doubted, the right cause "
        f"named in {sum(named)}; {sum(row.mean for row in alarms):.0f} false alarms on {len(alarms)} logs that are well"
    )
    return Report(bench="damaged-logs", settings=recorded(settings), rows=rows, notes=notes)


def recorded_logs(settings: Settings, robot: str) -> tuple[str, ...]:
    """The names of a robot's recorded logs."""
    if robot == "ur10e" and (settings.data / "ur10e").is_dir():
        return UR10E_LOGS
    return ("recorded",) if robot == "panda" and (settings.data / "panda_exciting").is_dir() else ()


def rows_of(settings: Settings, name: str, source: str) -> list[Row]:
    """One log, as it is and, where that is asked for, damaged."""
    robot = load(name)
    stand_in = source.isdigit()
    log = (
        record(robot, settings.seed + int(source), settings.seconds) if stand_in else recording(settings, robot, source)
    )
    label = f"stand-in {settings.seed + int(source)}" if stand_in else source
    rows = [_row(robot, label, Damage(name="as it is", cause="", spoil=lambda log: log), log)]
    main = int(source) < settings.damaged_stand_ins if stand_in else source in (UR10E_LOGS[0], "recorded")
    if main:
        every = [*damages(robot.n, OTHERS.get(name, ())), *mistakes(robot)]
        rows += [_row(robot, label, damage, log) for damage in every]
    report_work(1)
    return rows


def _row(robot: Robot, label: str, damage: Damage, log: RawLog) -> Row:
    verdict = judged(robot, damage, log)
    well = not damage.cause
    value = float(verdict.verdict != "trust")
    return Row.of(
        np.array([value]),
        robot=robot.name,
        method=label,
        metric="false alarm" if well else "refused or doubted",
        unit="-",
        extra={
            "damage": damage.name,
            "verdict": verdict.verdict,
            "causes": ", ".join(verdict.causes),
            "named": int(damage.cause in verdict.causes),
        },
    )


def judged(robot: Robot, damage: Damage, log: RawLog) -> Verdict:
    """The verdict of `retorque identify` on a log as it is after the damage."""
    with tempfile.TemporaryDirectory() as folder:
        path = damage.spoil(log).save(Path(folder) / "log.npz")
        result = Path(folder) / "result.json"
        outcome = identify(IdentifySettings(logs=(path,), robot=damage.robot or robot.name, json=result))
        outcome.write_files()
        content = json.loads(result.read_text())
    return Verdict(
        verdict=content["verdict"],
        causes=tuple(content["causes"]),
        reasons=tuple(content["reasons"]),
        evidence=content["evidence"],
    )


def recording(settings: Settings, robot: Robot, source: str) -> RawLog:
    """A recorded log as it came from the robot, currents times published drive gains."""
    if robot.name == "panda":
        return RawLog.of(Log((settings.data / "panda_exciting",), robot, columns=panda_columns()))
    rows = {"ur-20_02_12-50sec_12harm": slice(355, 5090), "ur-20_01_17-ptp_10_points": slice(700, 4200)}
    path = settings.data / "ur10e" / f"{source}.csv.gz"
    log = Log((path,), robot, rows=rows.get(source, slice(None)), drive_gains=UR10E_GAINS)
    return RawLog.of(log)


class FourierPolicy:
    """A random Fourier path as a policy, from its first second on."""

    period = 0.0

    def __init__(self, path: FourierPath):
        self.path = path

    def reset(self, state: State) -> None:
        self._begun = np.asarray(state.time)

    def act(self, state: State) -> JointAction:
        phase = (np.asarray(state.time) - self._begun) / FAST_PERIOD
        return JointAction(*self.path.at(np.atleast_1d(phase), np.full(1, 1.0 / FAST_PERIOD)))


def with_rotors(robot: Robot) -> Robot:
    """The card with rotors where it has none, which the arm hides and its drives' gains are made for.

    Without them the wrist of an iiwa 14 gets 0.4 N·m/rad, and its friction of 0.8 N·m holds it where it is.
    """
    links, strength = [], iter(_strength(robot))
    for link in robot.links:
        if link.joint is not None:
            rotor = ROTOR * next(strength)
            if not link.joint.armature:
                link = replace(link, joint=replace(link.joint, armature=rotor))
        links.append(link)
    return robot.with_links(tuple(links))


def _strength(robot: Robot) -> tuple[float, ...]:
    """(n,) torque limits, those that nobody knows at 50 N·m."""
    return tuple(np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0).tolist())


def record(robot: Robot, seed: int, seconds: float) -> RawLog:
    """A log of a stand-in that follows an exciting path under computed torque of its card with rotors."""
    path, driven = fourier_paths(robot, 1, seed), with_rotors(robot)
    hidden = StandInSettings(strength=tuple(FRICTION * limit for limit in _strength(robot)))
    arm = StandIn(driven, 1, seed=seed, noise_seed=seed, settings=hidden)
    q, qd, _ = path.at(np.zeros(1), np.full(1, 1.0 / FAST_PERIOD))
    arm.reset(q, qd)
    loop = Loop(arm, FourierPolicy(path), ComputedTorque(robot, RigidBody(driven), np.full(robot.n, 200.0)))
    kept = []
    for _ in range(round(seconds / TIMESTEP)):
        tick = loop.tick()
        assert tick.command.torque is not None  # computed torque
        sent = np.clip(tick.command.torque[0], -robot.torque_limit, robot.torque_limit)
        kept.append((tick.state.position[0].copy(), tick.state.velocity[0].copy(), sent))
    position, velocity, torque = (np.array(column) for column in zip(*kept, strict=True))
    return RawLog(time=TIMESTEP * np.arange(len(position)), position=position, velocity=velocity, torque=torque)
