"""`retorque replay`: what an adapter would have done on a recorded run, scored as in shadow mode."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tyro
from rich.table import Table

from retorque.adapt import make
from retorque.control.action import TorqueAction
from retorque.control.direct_torque import DirectTorque
from retorque.logs.formats.mcap_log import RobotRecording, read_recording
from retorque.loop.loop import Loop
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.command import Command
from retorque.robots.library import load
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import check_file, check_folder, versions, write_whole
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome


@dataclass(kw_only=True)
class ReplaySettings:
    """Let an adapter watch a recording, or turn it into other formats."""

    recording: tyro.conf.Positional[Path]
    """MCAP file of `retorque drive --record` or `retorque record`."""
    robot: str = ""
    """A robot on board, or the path of a card, URDF or MJCF; default: the one that the recording names."""
    adapter: str = "default"
    """What would have corrected."""
    weights: Path | None = None
    """A file of weights instead of the adapter's own."""
    seed: int = 0
    """Of whatever the adapter draws at random."""
    parquet: Path | None = None
    """Write the ticks as a Parquet file."""
    ros2: Path | None = None
    """Write the ticks as a ROS 2 bag (a folder that is not there yet)."""
    json: Path | None = None
    """Write the scores here."""


class RecordedPlant:
    """A robot that reports what it once reported, and does not listen.

    Args:
        recording: as it was read.
    """

    takes: Literal["torque", "position"] = "torque"

    def __init__(self, recording: RobotRecording):
        self.timestep = recording.timestep
        ticks = recording.ticks
        self._time = ticks["time"]
        self._signals = tuple(np.ascontiguousarray(ticks[name]) for name in ("position", "velocity", "torque"))
        self.tick = -1
        """Number of the report that was read last."""

    def read(self) -> State:
        """The next report."""
        self.tick += 1
        position, velocity, torque = (signal[self.tick] for signal in self._signals)
        return State(float(self._time[self.tick]), position, velocity, torque)

    def write(self, command: Command) -> None:
        """It has happened already."""


class RecordedNominal:
    """The nominal torques of a recording, tick by tick.

    Args:
        recording: as it was read.
        plant: says which tick it is.
    """

    period = 0.0

    def __init__(self, recording: RobotRecording, plant: RecordedPlant):
        self._plant, self._nominal = plant, np.ascontiguousarray(recording.ticks["nominal"])

    def reset(self, state: State) -> None:
        """Nothing to begin."""

    def act(self, state: State) -> TorqueAction:
        """What the controller had asked for."""
        return TorqueAction(self._nominal[self._plant.tick])


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """What the adapter would have done."""

    recording: str
    robot: str
    adapter: str
    joints: tuple[str, ...]
    ticks: int
    lost: int
    """Ticks that the recording lacks."""
    whole: bool
    without: tuple[float, ...]
    """Of each joint, RMS torque that went missing [N·m]."""
    corrected: tuple[float, ...]
    """Of each joint, what the correction leaves of it [N·m]."""
    correction: tuple[float, ...]
    """Of each joint, RMS of the correction [N·m]."""
    recorded: tuple[float, ...]
    """The same of the correction that was recorded."""
    health: dict[str, int]

    def table(self) -> Table:
        """Joint by joint."""
        table = Table("joint", "missing", "left", "correction", "recorded", title="RMS torques [N·m]")
        for row in zip(self.joints, self.without, self.corrected, self.correction, self.recorded, strict=True):
            table.add_row(row[0], *(f"{value:.3f}" for value in row[1:]))
        return table

    def save(self, path: Path) -> Path:
        """Write it as JSON."""
        content = {"report": dataclasses.asdict(self), "versions": versions()}
        return write_whole(path, json.dumps(content, indent=2) + "\n")


def replay(settings: ReplaySettings) -> Outcome:
    """Run `retorque replay`."""
    if settings.parquet is not None:
        check_file(settings.parquet)
    if settings.ros2 is not None:
        check_folder(settings.ros2)
        if settings.ros2.exists():
            raise RetorqueError(f"'{settings.ros2}' is there already; name a folder for the bag that is not")
    recording = read_recording(settings.recording)
    robot = load(settings.robot or recording.robot)
    recording.check(robot)
    if not len(recording.ticks):
        raise RetorqueError(f"'{settings.recording}' holds no ticks; record a longer run")
    report, _ = replay_recording(recording, robot, settings.adapter, settings.weights, settings.seed)
    out = Outcome()
    out.show(report.table())
    codes = ", ".join(f"{name.lower()} {count}" for name, count in report.health.items()) or "none"
    state = "whole" if report.whole else "not whole: it breaks off or is damaged, and all that can be read was used"
    out.show(f"{report.ticks} ticks, {report.lost} lost; the file is {state}; codes: {codes}", markup=False)
    if settings.json is not None:
        out.later("scores", partial(report.save, settings.json))
    if settings.parquet is not None or settings.ros2 is not None:
        from retorque.runtime.recording.recording_export import write_bag, write_parquet

        if settings.parquet is not None:
            out.later("Parquet", partial(write_parquet, recording, settings.parquet))
        if settings.ros2 is not None:
            out.later("ROS 2 bag", partial(write_bag, recording, settings.ros2))
    return out


def replay_recording(
    recording: RobotRecording, robot: Robot, adapter: str, weights: Path | None = None, seed: int = 0
) -> tuple[ReplayReport, Array]:
    """Let an adapter watch a recording; its scores, and the correction at each tick, (ticks, n) [N·m]."""
    plant = RecordedPlant(recording)
    made = make(adapter, robot, timestep=recording.timestep, seed=seed, weights=weights)
    watcher = Supervisor(made, SupervisorSettings(shadow=True, torque_from="other"))
    loop = Loop(plant, RecordedNominal(recording, plant), DirectTorque(), watcher)
    count = len(recording.ticks)
    correction = np.zeros((count, robot.n))
    with progress() as bar:
        task = bar.add_task("replay", total=count)
        for k in range(count):
            loop.tick()
            correction[k] = watcher.correction
            if k % 1000 == 999:
                bar.update(task, completed=k)
    report = ReplayReport(
        recording=str(recording.path),
        robot=robot.name,
        adapter=adapter,
        joints=robot.joint_names,
        ticks=count,
        lost=recording.lost,
        whole=recording.whole,
        without=tuple(np.asarray(watcher.score.without).tolist()),
        corrected=tuple(np.asarray(watcher.score.corrected).tolist()),
        correction=_rms(correction),
        recorded=_rms(recording.ticks["correction"]),
        health={str(flag.name): seen for flag, seen in watcher.counts.items() if seen},
    )
    return report, correction


def _rms(values: Any) -> tuple[float, ...]:
    return tuple(np.sqrt(np.nanmean(np.square(values), axis=0)).tolist())
