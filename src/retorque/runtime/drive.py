"""`retorque drive`: a robot under an adapter; it only watches unless it is told to act, and every way out stops it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import numpy as np

from retorque.control.direct_torque import DirectTorque
from retorque.control.joint_impedance import JointImpedance
from retorque.control.reference import Reference
from retorque.loop.learner import InlineLearner
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.make import compiled
from retorque.runtime.drive_motions import AsReported, check_start, make_motion
from retorque.runtime.drive_report import DriveReport, Watch
from retorque.runtime.drivers import DRIVERS
from retorque.runtime.drivers.driver import Driver, RobotStopped
from retorque.runtime.learning.learner_address import link_to
from retorque.runtime.learning.learner_process import LearnerSpec, ProcessLink
from retorque.runtime.learning.remote_learning import LearnerLink, RemoteLearning
from retorque.runtime.realtime import Pacer, RealtimeSettings, realtime
from retorque.runtime.recording.recorder import Recorder
from retorque.simulate.target import Target
from retorque.work.checks import check_between
from retorque.work.errors import RetorqueError, unknown
from retorque.work.files import check_file
from retorque.work.outcome import Outcome

STALE_AFTER = 0.08
"""A belief from elsewhere that has not been renewed for so long fades out: a death shows within 100 ms [s]."""
FIRST_REPORTS = 200
"""Reports that may be unusable before the first good one."""


@dataclass(kw_only=True)
class DriveSettings:
    """Drive a robot: watch it (default), send the nominal torque (--act --shadow), or correct it (--act)."""

    driver: str
    """franka, dynamixel, ur or ros2."""
    robot: str
    """A robot on board, or the path of a card, URDF or MJCF."""
    host: str = ""
    """Address of the robot (franka, ur), serial port (dynamixel), or DDS domain (ros2)."""
    wiring: Path | None = None
    """TOML file with joint order, signs, offsets, motors or topics, where the driver's defaults are not the robot's."""
    adapter: str = "default"
    """What corrects: a name of `retorque bench tracking --help`, or module:Class."""
    weights: Path | None = None
    """A file of weights instead of the adapter's own."""
    act: bool = False
    """Send torques. Without it nothing is sent: the adapter watches whoever drives the robot."""
    shadow: bool = False
    """With --act: send the nominal torque only; the correction is computed, scored and recorded."""
    motion: str = "hold"
    """hold (where it is), sines (about where it is), home-sines (about the card's home), or a CSV file of `excite`."""
    duration: float = 16.0
    """Length of the run [s]."""
    scale: float = 1.0
    """Of the sines' amplitude."""
    seed: int = 0
    """Of the sines, and of what the adapter draws."""
    start_tolerance: float = 0.1
    """How far from its start a motion may find a joint [rad]."""
    engine: str = "auto"
    """auto: the compiled core, where there is one for the adapter and a compiler; numpy: the reference."""
    learn: str = "auto"
    """Where `learn` runs: inline (within the tick), process (a second one), HOST:PORT or zenoh:tcp/HOST:PORT (a
    `retorque learner`); auto: inline in the compiled core, which takes 0.15 ms for it, else in a second process."""
    learnt: Path | None = None
    """Begin with what this file has learnt, where it is there, and write it anew at the end (`learn` inline only)."""
    key: str = ""
    """Secret shared with a learner on another machine."""
    priority: int = 0
    """SCHED_FIFO priority, 1 to 99; 0: the usual scheduling class."""
    core: int = -1
    """Processor core to stay on; -1: any."""
    record: Path | None = None
    """Record every tick into this MCAP file."""
    json: Path | None = None
    """Write the report here."""


@dataclass(kw_only=True)
class RecordSettings:
    """Record a robot that somebody else drives; nothing is sent to it."""

    driver: str
    """franka, dynamixel, ur or ros2."""
    robot: str
    """A robot on board, or the path of a card, URDF or MJCF."""
    out: Path
    """The MCAP file."""
    host: str = ""
    """Address of the robot (franka, ur), serial port (dynamixel), or DDS domain (ros2)."""
    wiring: Path | None = None
    """TOML file with joint order, signs, offsets, motors or topics."""
    duration: float = 60.0
    """[s]"""


def record(settings: RecordSettings) -> Outcome:
    """Run `retorque record`."""
    return drive(
        DriveSettings(
            driver=settings.driver,
            robot=settings.robot,
            host=settings.host,
            wiring=settings.wiring,
            adapter="direct",
            duration=settings.duration,
            record=settings.out,
        )
    )


def drive(settings: DriveSettings) -> Outcome:
    """Run `retorque drive`."""
    report = run_drive(settings)
    out = Outcome()
    out.show(report.table())
    for line in report.notes():
        out.show(line, markup=False)
    if settings.json is not None:
        path = settings.json
        out.later("result", lambda: report.save(path))
    if report.failed:
        out.later("stopped", report.complain)
    return out


def run_drive(settings: DriveSettings) -> DriveReport:
    """Drive a robot as the settings say; what happened."""
    check_between("--duration", settings.duration, 0.1, 86_400.0, "s")
    check_between("--scale", settings.scale, 0.0, 2.0)
    if settings.learnt is not None:
        check_file(settings.learnt)
    card = load(settings.robot)
    with ExitStack() as stack:
        told = stack.enter_context(stop_signals())
        driver = stack.enter_context(make_driver(settings, card))
        robot = driver.robot  # the card, and what the driver knows about its motors
        spec = LearnerSpec(
            adapter=settings.adapter,
            timestep=driver.timestep,
            seed=settings.seed,
            weights=None if settings.weights is None else str(settings.weights),
        )
        supervisor = _supervisor(settings, spec, robot, stack)
        if settings.learnt is not None:
            _begin_with(supervisor, settings.learnt)
        recorder = None
        if settings.record is not None:
            about = {"driver": settings.driver, "adapter": settings.adapter, "acting": settings.act}
            recorder = stack.enter_context(Recorder(settings.record, robot, driver.timestep, about))
        stack.callback(driver.stop)  # before the recorder and the learner are waited for
        report = _run(settings, robot, driver, supervisor, recorder, told)
        if settings.learnt is not None and not report.failed:
            supervisor.save(settings.learnt)
        return report


def make_driver(settings: DriveSettings, robot: Robot) -> Driver:
    """The driver of that name."""
    if settings.driver not in DRIVERS:
        raise unknown("driver", settings.driver, DRIVERS)
    module, _, name = DRIVERS[settings.driver][0].partition(":")
    found = getattr(import_module(module), name)
    given: dict[str, Any] = {} if settings.wiring is None else {"wiring": settings.wiring}
    return found(robot, settings.host, **given)


def _supervisor(
    settings: DriveSettings, spec: LearnerSpec, robot: Robot, stack: ExitStack
) -> Supervisor | CompiledSupervisor:
    adapter = spec.make(robot)
    shadow = settings.shadow or not settings.act
    source: Literal["report", "other"] = "report" if settings.act else "other"
    if settings.engine not in ("auto", "numpy"):
        raise unknown("engine", settings.engine, ("auto", "numpy"))
    if settings.learn in ("auto", "inline") or not adapter.learn_every:
        made = Supervisor(adapter, SupervisorSettings(shadow=shadow, torque_from=source))
        fast = compiled(made) if settings.engine == "auto" else made
        if isinstance(fast, CompiledSupervisor):
            return fast
        if settings.learn == "inline" or not adapter.learn_every:
            return made
    link: LearnerLink
    if settings.learn in ("auto", "process"):
        link = ProcessLink(spec, robot)
    else:
        link = link_to(adapter, settings.learn, settings.key.encode())
    remote = RemoteLearning(adapter, link)
    stack.callback(remote.close)
    return Supervisor(remote, SupervisorSettings(shadow=shadow, stale_after=STALE_AFTER, torque_from=source))


def _begin_with(supervisor: Supervisor | CompiledSupervisor, learnt: Path) -> None:
    """Take over what an earlier run has learnt; refused where this one could not write it down again."""
    if isinstance(supervisor, Supervisor) and isinstance(supervisor.adapter, RemoteLearning):
        raise RetorqueError("--learnt needs --learn inline: elsewhere, what was learnt lies at the other end")
    if learnt.exists():
        supervisor.load(learnt)


def _run(
    settings: DriveSettings,
    robot: Robot,
    driver: Driver,
    supervisor: Supervisor | CompiledSupervisor,
    recorder: Recorder | None,
    told: Callable[[], bool],
) -> DriveReport:
    driver.start(act=False)
    first = _first_report(driver)
    motion: Reference | None = None
    if settings.act:
        motion = make_motion(settings.motion, robot, first.position, settings.duration, settings.seed, settings.scale)
        check_start(motion, first.position, robot, settings.start_tolerance)
    plant, learner = TimedPlant(driver), InlineLearner(supervisor)
    if motion is None:
        loop = Loop(plant, AsReported(), DirectTorque(), supervisor, learner=learner)
    else:
        loop = Loop(plant, motion, _impedance(robot), supervisor, learner=learner)
    ticks = round(settings.duration / driver.timestep)
    watch = Watch(robot, ticks, driver.timestep)
    pacer = None if driver.keeps_time else Pacer(driver.timestep)
    ended: Literal["done", "by hand"] | str = "done"
    with realtime(RealtimeSettings(priority=settings.priority, core=settings.core)) as granted:
        try:
            if settings.act:
                driver.start(act=True)
            for _ in range(ticks):
                if pacer is not None:
                    pacer.wait()
                begin = time.perf_counter()
                done = loop.tick()
                watch.add(done, (time.perf_counter() - begin, plant.spent, plant.client))
                if recorder is not None:
                    recorder.add(done, int(supervisor.health), learner.beliefs, supervisor.correction)
                if told():
                    ended = "by hand"
                    break
        except RobotStopped as error:
            ended = str(error)
        except KeyboardInterrupt:
            ended = "by hand"
        finally:
            driver.stop()
    if motion is not None:
        watch.compare(_ideal_run(robot, driver.timestep, motion, watch))
    return DriveReport.of(settings, driver, supervisor, learner.beliefs, watch, pacer, recorder, granted, ended)


def _first_report(driver: Driver) -> State:
    """A report that can be used: finite, and from the robot of this card."""
    for _ in range(FIRST_REPORTS):
        state = driver.read()
        if np.isfinite(state.position).all() and np.isfinite(state.velocity).all():
            break
        time.sleep(driver.timestep)
    else:
        raise RobotStopped(f"the robot reports nothing usable ({FIRST_REPORTS} reports); check its encoders and wiring")
    robot = driver.robot
    outside = (state.position < robot.lower - 0.3) | (state.position > robot.upper + 0.3)
    if outside.any():
        k = int(np.argmax(outside))
        raise RobotStopped(
            f"{robot.joint_names[k]} is reported at {state.position[k]:.2f} rad, outside its limits "
            f"{robot.lower[k]:.2f} .. {robot.upper[k]:.2f}; is this another robot, or another joint order or zero?"
        )
    return state


def _impedance(robot: Robot) -> JointImpedance:
    profile = profile_of(robot)
    stiffness = profile.tracking_stiffness
    damping = profile.tracking_damping
    return JointImpedance(robot, stiffness, critical_damping(robot, stiffness) if damping is None else damping)


def _ideal_run(robot: Robot, timestep: float, motion: Reference, watch: Watch) -> np.ndarray:
    """Where the ideal robot would have been at each tick, (ticks, n) [rad]."""
    ideal = Target(robot, Parameters.ideal(robot), timestep=timestep, threads=1)
    ideal.reset(watch.position[0])
    loop = Loop(ideal, motion, _impedance(robot))
    position = np.zeros((watch.ticks, robot.n))
    for k in range(watch.ticks):
        position[k] = loop.tick().state.position
    return position


class TimedPlant:
    """A driver that says how much processor time its last tick took, in `spent` and, of the maker's client, `client`.

    Args:
        plant: the driver.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, plant: Driver):
        self.plant, self.timestep = plant, plant.timestep
        self.spent = self.client = self._before = 0.0

    def read(self) -> State:
        """The report."""
        begin = time.thread_time()
        state = self.plant.read()
        self.spent = time.thread_time() - begin
        return state

    def write(self, command: Command) -> None:
        """Send."""
        begin = time.thread_time()
        self.plant.write(command)
        self.client = self.plant.client_time - self._before
        self._before = self.plant.client_time
        self.spent += time.thread_time() - begin - self.client


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """Let SIGINT, SIGTERM and SIGHUP end a loop in order: whether one has come."""
    heard = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield heard.is_set
        return

    def note(number: int, frame: FrameType | None) -> None:
        if heard.is_set():
            raise KeyboardInterrupt  # a second one waits for nothing
        heard.set()

    before = {name: signal.signal(name, note) for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield heard.is_set
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


__all__ = ["DriveSettings", "drive", "make_driver", "run_drive", "stop_signals"]
