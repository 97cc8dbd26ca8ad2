"""How the commands read logs: the options they share, and what these mean."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from retorque.identify.drive.choose_drive import SIGMOID, START
from retorque.identify.regression.choose import choose_friction
from retorque.logs.columns import Columns, names_joint, read_map
from retorque.logs.cutoff import choose_cutoff
from retorque.logs.log import Log
from retorque.logs.motion import MotionSource
from retorque.logs.signal import Filter
from retorque.logs.table import open_table
from retorque.physics.friction import Friction, preset
from retorque.robots.library import load_as_found
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole
from retorque.work.outcome import Outcome


@dataclass(kw_only=True)
class LogOptions:
    """How logs are read."""

    robot: str
    """A robot on board, or the path of a card, URDF or MJCF."""
    columns: Path | None = None
    """Mapping file (TOML): time, position, velocity, torque or current as column names or numbers counted from 0; or
    [files], one file a signal in a folder. Without it: the header's names, or the order time, positions, velocities,
    torques (currents where drive gains are given)."""
    joints: tuple[str, ...] = ()
    """Joints of a URDF or MJCF file that the log has; the others are locked at zero. Default: those that its columns
    name, or all."""
    rows: str = ":"
    """Rows of each log to use, A:B, counted from 0, B not included."""
    drive_gains: tuple[str, ...] = ()
    """Joint torque per motor current [N·m/A], one for each joint, where the log has currents."""
    cutoff: float | None = None
    """Cut-off of the zero-phase filter [Hz]; default: from the spectra of the first log, well above its motion."""
    decimate: int = 0
    """Keep one sample in this many; 0 keeps ten for each period of the cut-off frequency."""
    friction: str = "presliding"
    """none, sign (equation 13), coulomb-viscous, saturating, stribeck, asymmetric, presliding, full; sigmoid: with dead
    zones, biases and gains of the drives (identify only); auto: whichever predicts held-out parts of the log best."""
    json: Path | None = None
    """Write the result here."""


AnyOptions = TypeVar("AnyOptions", bound=LogOptions)


def robot_of(settings: LogOptions, path: Path, out: Outcome) -> Robot:
    """The robot of the options; of a file's joints only those that the log has."""
    mapping = None if settings.columns is None else read_map(settings.columns)
    joints: tuple[str, ...] | None = tuple(settings.joints) or (mapping.joints if mapping is not None else None)
    robot = load_as_found(settings.robot, joints)
    if joints is None and not _on_board(settings.robot):
        had = _joints_of(path, mapping, robot)
        if had and len(had) < robot.n:
            robot = load_as_found(settings.robot, had)
    if robot.notes and not _on_board(settings.robot):
        out.show(f"{robot.name}: {robot.notes}", style="yellow", markup=False)
    if joints is not None and robot.joint_names != tuple(joints):
        raise RetorqueError(
            f"name the joints in the order of the robot's tree: {', '.join(robot.joint_names)} (the log's columns too)"
        )
    return robot


def _on_board(name: str) -> bool:
    return not Path(name).expanduser().is_file()


def _joints_of(path: Path, mapping: Columns | None, robot: Robot) -> tuple[str, ...]:
    """The robot's joints whose positions the log names."""
    file = path / mapping.files["position"] if mapping is not None and mapping.files else path
    if (mapping is not None and mapping.position is not None) or not file.exists() or file.is_dir():
        return ()
    names = open_table(file).names or ()
    return tuple(joint for joint in robot.joint_names if names_joint(names, joint))


def open_log(settings: LogOptions, robot: Robot, paths: tuple[Path, ...], rows: str) -> Log:
    """The log that the options describe."""
    return Log(
        paths=paths,
        robot=robot,
        columns=None if settings.columns is None else read_map(settings.columns),
        rows=parse_rows(rows),
        drive_gains=parse_gains(settings.drive_gains),
        filter=Filter(cutoff=settings.cutoff or Filter().cutoff, decimate=settings.decimate),
    )


def with_cutoff(settings: AnyOptions, robot: Robot, path: Path, rows: str, out: Outcome) -> AnyOptions:
    """The settings with a cut-off: the one that was asked for, or one from a log's spectra, which is said."""
    if settings.cutoff is not None:
        return settings
    log = open_log(settings, robot, (path,), rows)
    cutoff = choose_cutoff(log.raw(path))
    out.show(f"filter: {cutoff:g} Hz, from the spectra of the motion (--cutoff changes it)", style="dim")
    return dataclasses.replace(settings, cutoff=cutoff)


def parse_rows(text: str) -> slice:
    """A:B, either side open."""
    match = re.fullmatch(r"\s*(\d*)\s*:\s*(\d*)\s*", text)
    if not match:
        raise RetorqueError(f"rows are written A:B, such as 355:5090, not '{text}'")
    start, stop = (int(part) if part else None for part in match.groups())
    if start is not None and stop is not None and stop <= start:
        raise RetorqueError(f"rows {text} hold nothing: the second number must be larger")
    return slice(start, stop)


def parse_gains(texts: tuple[str, ...]) -> np.ndarray | None:
    """Numbers separated by blanks or commas."""
    parts = [part for text in texts for part in re.split(r"[,\s]+", text) if part]
    if not parts:
        return None
    try:
        return np.array([float(part) for part in parts])
    except ValueError as error:
        raise RetorqueError(f"drive gains are numbers [N·m/A], not '{' '.join(texts)}'") from error


def choose(name: str, data: MotionSource, robot: Robot, out: Outcome) -> tuple[Friction, dict[str, list[float]]]:
    """The friction model of that name; for "auto" also every candidate's cross-validated RMSE."""
    if name != "auto":
        return preset(START if name == SIGMOID else name), {}
    best, compared = choose_friction(data, robot)
    out.show(f"friction model: {best} (predicts held-out parts of the training log best)")
    return preset(best), compared


def plain(settings: Any) -> dict[str, Any]:
    """Settings as JSON knows them."""

    def one(value: Any) -> Any:
        if isinstance(value, Path):
            return str(value)
        return [one(item) for item in value] if isinstance(value, tuple) else value

    return {field.name: one(getattr(settings, field.name)) for field in dataclasses.fields(settings)}


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write a result whole."""
    return write_whole(path, json.dumps(content, indent=2, allow_nan=False) + "\n")
