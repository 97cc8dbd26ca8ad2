"""What a drive was like: errors, scores, codes and times."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from retorque.loop.loop import Tick
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.learning.remote_learning import RemoteLearning
from retorque.runtime.realtime import Pacer
from retorque.runtime.recording.recorder import Recorder
from retorque.work.array import Array
from retorque.work.errors import RetorqueError
from retorque.work.files import versions, write_whole


class Watch:
    """Keeps what the report needs, in memory that was taken before the run.

    Args:
        robot: the ideal robot.
        ticks: most ticks that will come.
        timestep: control period [s].
    """

    def __init__(self, robot: Robot, ticks: int, timestep: float):
        self.timestep, self.ticks = timestep, 0
        self.time = np.zeros(ticks)
        self.position = np.zeros((ticks, robot.n))
        self.spent = np.zeros((3, ticks))  # the whole tick; processor time of the driver and of the client [s]
        self.error: Array | None = None
        """(ticks, n) against the ideal robot, where a motion was followed [rad]."""

    def add(self, tick: Tick, spent: tuple[float, float, float]) -> None:
        """Take a tick, and the time of all of it, of the driver and of the maker's client [s]."""
        k = self.ticks
        self.time[k], self.position[k] = tick.state.time, tick.state.position
        self.spent[:, k] = spent
        self.ticks += 1

    def compare(self, ideal: Array) -> None:
        """Set the error against where the ideal robot would have been, (ticks, n) [rad]."""
        steps = np.rint((self.time[: self.ticks] - self.time[0]) / self.timestep).astype(int)
        steps = np.clip(steps, 0, len(ideal) - 1)  # reports that were lost are ticks that the ideal robot made
        self.error = self.position[: self.ticks] - ideal[steps] if self.ticks else None


@dataclass(frozen=True, kw_only=True)
class DriveReport:
    """What happened."""

    settings: dict[str, Any]
    joints: tuple[str, ...]
    ticks: int
    ended: str
    """done, by hand, or the sentence that says why the robot stopped."""
    driver: str
    """What the driver has been tried on."""
    error_deg: dict[str, float] | None
    """RMS joint error against the ideal robot's motion: all, and the last second [deg]; None where nobody moved it."""
    without: tuple[float, ...]
    """Of each joint, RMS torque that went missing [N·m]."""
    corrected: tuple[float, ...]
    """Of each joint, what the correction leaves of it [N·m]."""
    health: dict[str, int]
    """How often each code was seen."""
    beliefs: int
    refused: dict[str, int]
    """Beliefs that were not taken, by reason."""
    missed: int
    """Reports that were lost before they came here."""
    microseconds: dict[str, float]
    """p50 and p99 of the whole tick (with the wait for the robot), and of the processor time that the driver itself
    and the maker's client took [us]; a driver that does not measure its client counts it as its own."""
    words: tuple[str, ...]
    """What else is worth a line."""

    @classmethod
    def of(
        cls,
        settings: Any,
        driver: Any,
        supervisor: Supervisor | CompiledSupervisor,
        beliefs: int,
        watch: Watch,
        pacer: Pacer | None,
        recorder: Recorder | None,
        granted: list[str],
        ended: str,
    ) -> DriveReport:
        """The report of a run."""
        ticks, dt = watch.ticks, watch.timestep
        steps = np.diff(watch.time[:ticks])
        missed = int(np.sum(np.maximum(0, np.rint(steps[np.isfinite(steps)] / dt) - 1))) if ticks > 1 else 0
        words = [f"the tick ran in {supervisor.engine}", *granted]
        if pacer is not None:
            words.append(pacer.words())
        if recorder is not None:
            recorder.close()
            words.append(
                f"recorded into {recorder.path}; {recorder.lost} ticks lost, writer started again {recorder.restarts} x"
                + (f"; {recorder.failure}" if recorder.failure else "")
            )
        if driver.refused:
            words.append(f"{driver.refused} commands were not finite and were not sent")
        adapter = supervisor.adapter
        return cls(
            settings={name: _plain(value) for name, value in dataclasses.asdict(settings).items() if name != "key"},
            joints=supervisor.robot.joint_names,
            ticks=ticks,
            ended=ended,
            driver=driver.met_hardware,
            error_deg=_errors(watch),
            without=tuple(np.asarray(supervisor.score.without).tolist()),
            corrected=tuple(np.asarray(supervisor.score.corrected).tolist()),
            health={str(flag.name): count for flag, count in supervisor.counts.items() if count},
            beliefs=beliefs,
            refused=dict(adapter.refused) if isinstance(adapter, RemoteLearning) else {},
            missed=missed,
            microseconds=_times(watch),
            words=tuple(words),
        )

    @property
    def failed(self) -> bool:
        """Whether the robot stopped by itself."""
        return self.ended not in ("done", "by hand")

    def complain(self) -> Path:
        """Raise why the robot stopped."""
        raise RetorqueError(self.ended)

    def table(self) -> Table:
        """Missing torque, joint by joint."""
        table = Table("joint", "missing torque", "left by the correction", title="Torque that went missing, RMS [N·m]")
        for name, without, corrected in zip(self.joints, self.without, self.corrected, strict=True):
            table.add_row(name, f"{without:.3f}", f"{corrected:.3f}")
        return table

    def notes(self) -> list[str]:
        """Everything else, a line each."""
        us = self.microseconds
        lines = [f"{self.ticks} ticks; ended: {self.ended}; this driver {self.driver}"]
        if self.error_deg is not None:
            lines.append(
                f"error against the ideal robot: {self.error_deg['all']:.3f} deg, in the last second "
                f"{self.error_deg['last_second']:.3f} deg"
            )
        lines.append(f"codes: {', '.join(f'{k.lower()} {v}' for k, v in self.health.items()) or 'none'}")
        refused = ", ".join(f"{count} {reason}" for reason, count in self.refused.items()) or "none"
        lines.append(f"beliefs: {self.beliefs} adopted, refused: {refused}; reports lost: {self.missed}")
        if us:
            lines.append(
                f"tick {us['tick_p50']:.0f} us (p50), {us['tick_p99']:.0f} (p99), wait included; the driver's own "
                f"{us['driver_p50']:.0f} us (p50), {us['driver_p99']:.0f} (p99), the maker's client "
                f"{us['client_p50']:.0f} us (p50)"
            )
        return [*lines, *self.words]

    def save(self, path: Path) -> Path:
        """Write it as JSON."""
        content = {"report": dataclasses.asdict(self), "versions": versions()}
        return write_whole(path, json.dumps(content, indent=2) + "\n")


def _errors(watch: Watch) -> dict[str, float] | None:
    if watch.error is None:
        return None
    last = round(1.0 / watch.timestep)
    good = watch.error[np.isfinite(watch.error).all(axis=1)]
    degrees = np.rad2deg(good)
    return {
        "all": float(np.sqrt(np.mean(degrees**2))) if len(degrees) else 0.0,
        "last_second": float(np.sqrt(np.mean(degrees[-last:] ** 2))) if len(degrees) else 0.0,
    }


def _times(watch: Watch) -> dict[str, float]:
    if not watch.ticks:
        return {}
    spent = 1e6 * watch.spent[:, : watch.ticks]
    names = ("tick", "driver", "client")
    return {
        f"{name}_p{p}": float(np.percentile(values, p))
        for name, values in zip(names, spent, strict=True)
        for p in (50, 99)
    }


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
