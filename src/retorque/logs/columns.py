"""Which column of a log is what: from a mapping file, from the header's names, or from the order of the columns."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError, unknown

Key = str | int
"""A column's name, or its number counted from 0."""

_STEMS = {
    "position": ("q", "pos", "position", "positions", "jointposition", "actualq", "angle"),
    "velocity": ("qd", "dq", "qdot", "vel", "velocity", "velocities", "jointvelocity", "actualqd"),
    "torque": ("tau", "torque", "torques", "effort", "tauj", "jointtorque"),
    "current": ("i", "current", "currents", "motorcurrent", "actualcurrent"),
}
_TIMES = ("t", "time", "times", "timestamp", "stamp", "seconds", "times")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """A mapping file's content.

    A signal is a list of names or numbers, "q{}" (q1 to qn), or "1:7" (numbers 1 to 6).
    """

    time: Key | None = None
    """Time [s]."""
    rate: float | None = None
    """Sampling rate [Hz], for a log without a time column."""
    position: tuple[Key, ...] | str | None = None
    """Joint positions [rad]."""
    velocity: tuple[Key, ...] | str | None = None
    """Joint velocities [rad/s]; positions are differentiated without them."""
    torque: tuple[Key, ...] | str | None = None
    """Joint torques [N·m]."""
    current: tuple[Key, ...] | str | None = None
    """Motor currents [A], with drive gains instead of torques."""
    drive_gains: tuple[float, ...] | None = None
    """Joint torque per motor current [N·m/A]."""
    degrees: bool = False
    """Positions and velocities are in degrees."""
    files: dict[str, str] | None = None
    """One file a signal in a folder, each with n values a row or one value a line: time, position, velocity, torque;
    or each with a clock of its own in its first column, or a column called time or t."""
    effort: tuple[Key, ...] | str | None = None
    """What drivers call effort: motor current [A] where there are drive gains, else joint torque [N·m]."""
    joints: tuple[str, ...] | None = None
    """The robot's joints that the log has; the others are locked where they stand at zero."""
    time_unit: str = "s"
    """s, ms, us or ns."""
    time_scale: float | None = None
    """Seconds in one unit of the clock, where it is none of these."""
    position_scale: tuple[float, ...] | float | None = None
    """Radians (or metres) in one unit of each joint's position; a negative one turns its sign."""
    position_offset: tuple[float, ...] | float | None = None
    """Added to each joint's position after that [rad or m]."""
    velocity_scale: tuple[float, ...] | float | None = None
    """The same of velocities; default: as positions."""
    effort_scale: tuple[float, ...] | float | None = None
    """N·m (or A, before drive gains) in one unit of each joint's effort."""
    coupling: tuple[tuple[float, ...], ...] | None = None
    """Matrix from motors to joints, where the log has motors: joint position = coupling x motor position."""


def read_map(path: str | Path) -> Columns:
    """The mapping in a TOML file."""
    try:
        content = tomllib.loads(Path(path).read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RetorqueError(f"the mapping file '{path}' cannot be read: {error}") from error
    known = {field.name for field in fields(Columns)}
    values: dict[str, Any] = {}
    for key, value in content.items():
        if key not in known:
            raise unknown("entry of a mapping file", key, known)
        values[key] = tuple(value) if isinstance(value, list) else value
    for key in ("position", "velocity", "torque", "current", "effort"):
        value = values.get(key)
        if value is not None and not isinstance(value, (str, tuple)):
            raise RetorqueError(f"'{key}' in '{path}' must be a list of columns or a string such as \"{key}{{}}\"")
    for key in ("files",):
        if key in values and not (
            isinstance(values[key], dict) and all(isinstance(x, str) for x in values[key].values())
        ):
            raise RetorqueError(f"[files] in '{path}' must name one file for each signal")
    if "rate" in values and not (isinstance(values["rate"], (int, float)) and values["rate"] > 0):
        raise RetorqueError(f"'rate' in '{path}' must be a number of samples a second above zero")
    if "effort" in values and ("torque" in values or "current" in values):
        raise RetorqueError(f"'{path}' names 'effort' beside 'torque' or 'current'; keep one of them")
    if "coupling" in values:
        values["coupling"] = tuple(tuple(row) if isinstance(row, list) else (row,) for row in values["coupling"])
    if not isinstance(values.get("degrees", False), bool):
        raise RetorqueError(f"'degrees' in '{path}' must be true or false")
    if "drive_gains" in values and not all(isinstance(x, (int, float)) for x in values["drive_gains"]):
        raise RetorqueError(f"'drive_gains' in '{path}' must be numbers [N·m/A]")
    return Columns(**values)


@dataclass(frozen=True, kw_only=True)
class Picked:
    """Column numbers of each signal in one file."""

    time: int | None
    position: tuple[int, ...]
    velocity: tuple[int, ...] | None
    effort: tuple[int, ...]
    is_current: bool


def pick(
    columns: Columns | None,
    names: tuple[str, ...] | None,
    width: int,
    robot: Robot,
    where: str,
    prefer_current: bool = False,
) -> Picked:
    """The columns of a file for a robot.

    Args:
        columns: a mapping, or None to go by names or by order (time, positions, velocities, torques or currents).
        names: the header, where there is one.
        width: number of columns.
        robot: its joints are counted and named.
        where: the file's name, for messages.
        prefer_current: drive gains are known, so the log is read as motor current where it can be.
    """
    if columns is not None and columns.effort is not None:
        given, columns = columns.effort, replace(columns, effort=None)
        columns = replace(columns, current=given) if prefer_current else replace(columns, torque=given)
    if columns is None or all(getattr(columns, key) is None for key in ("time", "position", "torque", "current")):
        columns = _guess(names, width, robot, where, columns, prefer_current)
    if columns.position is None:
        raise RetorqueError(f"the mapping names no 'position' columns; '{where}' has {_what(names, width)}")
    if (columns.torque is None) == (columns.current is None):
        raise RetorqueError("the mapping must name either 'torque' or 'current' columns")
    if columns.time is None and columns.rate is None:
        raise RetorqueError("the mapping must name the 'time' column or give the sampling 'rate' in Hz")
    effort = columns.torque if columns.torque is not None else columns.current
    assert effort is not None

    def many(value: tuple[Key, ...] | str, signal: str) -> tuple[int, ...]:
        found = tuple(_index(key, names, width, where) for key in _expand(value, robot.n))
        if len(found) != robot.n:
            raise RetorqueError(f"'{robot.name}' has {robot.n} joints, but '{signal}' names {len(found)} columns")
        return found

    return Picked(
        time=None if columns.time is None else _index(columns.time, names, width, where),
        position=many(columns.position, "position"),
        velocity=None if columns.velocity is None else many(columns.velocity, "velocity"),
        effort=many(effort, "torque" if columns.torque is not None else "current"),
        is_current=columns.torque is None,
    )


def _guess(
    names: tuple[str, ...] | None, width: int, robot: Robot, where: str, given: Columns | None, prefer_current: bool
) -> Columns:
    rate = given.rate if given else None
    if names is None:
        return _guess_order(width, robot, where, rate, prefer_current)
    twice = [name for name, count in Counter(map(_plain, names)).items() if count > 1 and name]
    if twice:
        raise RetorqueError(
            f"'{where}' has several columns called '{twice[0]}'; rename them, or number them in --columns"
        )
    plain = {_plain(name): name for name in names}
    found: dict[str, tuple[str, ...]] = {}
    called: dict[str, str] = {}
    for signal, stems in _STEMS.items():
        for stem in stems:
            keys = _numbered(plain, stem, robot)
            if keys:
                found[signal], called[signal] = keys, stem
                break
    time = next((plain[stem] for stem in _TIMES if stem in plain), None)
    missing = [] if "position" in found else ["position"]
    missing += [] if "torque" in found or "current" in found else ["torque or current"]
    if missing:
        prefixed = _prefixed(names, robot)
        if prefixed:
            several = f"the columns of {len(prefixed)} robots" if len(prefixed) > 1 else "columns with a robot's name"
            whose, signals = next(iter(prefixed.items()))
            typed = ", ".join(f'{signal} = "{pattern}"' for signal, pattern in signals.items())
            clock = f'time = "{time}", ' if time is not None else ""
            raise RetorqueError(
                f"'{where}' has {several} ({', '.join(prefixed)}); choose one in a mapping file (--columns), "
                f"for {whose}: {clock}{typed}"
            )
        raise RetorqueError(
            f"'{where}' has no columns for {' and '.join(missing)} of all {robot.n} joints; it has "
            f"{_what(names, width)}; name them in a mapping file (--columns)"
        )
    if time is None and not rate:
        raise RetorqueError(
            f"'{where}' has no column for time; it has {_what(names, width)}; name it, or give the sampling rate "
            "(rate = 500.0, in Hz), in a mapping file (--columns)"
        )
    if "torque" in found and "current" in found:
        del found["torque" if prefer_current else "current"]
    elif prefer_current and called.get("torque") == "effort":
        found["current"] = found.pop("torque")  # what drivers call effort is a current where there are drive gains
    if rate:
        time = None
    return Columns(
        time=time,
        rate=rate,
        position=found["position"],
        velocity=found.get("velocity"),
        torque=found.get("torque"),
        current=found.get("current"),
    )


def names_joint(names: tuple[str, ...], joint: str) -> bool:
    """Whether a header has a position of that joint."""
    plain = {_plain(name) for name in names}
    own = _plain(joint)
    return any(f"{stem}{own}" in plain or f"{own}{stem}" in plain for stem in _STEMS["position"]) or own in plain


def find_time(names: tuple[str, ...]) -> int | None:
    """The number of the column of times, if there is one."""
    plain = [_plain(name) for name in names]
    return next((plain.index(stem) for stem in _TIMES if stem in plain), None)


def find_signal(names: tuple[str, ...], signal: str, robot: Robot, where: str) -> tuple[int, ...]:
    """The numbers of a signal's columns, by the joints' names or counted."""
    plain = {_plain(name): name for name in names}
    stems = (*_STEMS.get(signal, ()), *(_STEMS["torque"] if signal in ("effort", "current") else ()), "")
    for stem in stems:
        keys = _numbered(plain, stem, robot)
        if keys:
            return tuple(names.index(key) for key in keys)
    raise RetorqueError(
        f"'{where}' has no columns for {signal} of all {robot.n} joints; it has {_what(names, len(names))}"
    )


def _prefixed(names: tuple[str, ...], robot: Robot) -> dict[str, dict[str, str]]:
    """What stands before the names of whole sets of signals, and each signal's pattern: "left_", "left_q{}"."""
    found: dict[str, dict[str, str]] = {}
    have = set(names)
    for name in names:
        for signal, stems in _STEMS.items():
            match = re.fullmatch(rf"(.*?[^A-Za-z])({'|'.join(stems)})_?1", name, flags=re.IGNORECASE)
            pattern = "" if match is None else f"{name[:-1]}{{}}"
            if match is not None and have.issuperset(_expand(pattern, robot.n)):
                found.setdefault(match[1], {})[signal] = pattern
    return {
        whose: signals
        for whose, signals in found.items()
        if "position" in signals and ("torque" in signals or "current" in signals)
    }


def _numbered(plain: dict[str, str], stem: str, robot: Robot) -> tuple[str, ...] | None:
    """Columns "stem1".."stemn", "stem0".."stem(n-1)" or stem beside each joint's name; not if there are more."""
    for first in (1, 0):
        keys = [f"{stem}{k + first}" for k in range(robot.n)]
        if all(key in plain for key in keys):
            if f"{stem}{robot.n + first}" in plain:
                more = sum(1 for key in plain if re.fullmatch(rf"{stem}\d+", key))
                raise RetorqueError(
                    f"the log has {more} '{stem}' columns and robot '{robot.name}' has {robot.n} joints"
                )
            return tuple(plain[key] for key in keys)
    for joined in (lambda joint: stem + joint, lambda joint: joint + stem):
        keys = [joined(_plain(joint)) for joint in robot.joint_names]
        if all(key in plain for key in keys):
            return tuple(plain[key] for key in keys)
    return None


def _guess_order(width: int, robot: Robot, where: str, rate: float | None, current: bool) -> Columns:
    n = robot.n
    if width < 1 + 3 * n or (width - 1) % n:
        raise RetorqueError(
            f"'{where}' has {width} columns and no header; without a mapping file (--columns) a log of "
            f"'{robot.name}' needs time, {n} positions, {n} velocities and {n} torques or currents in that order, then "
            f"nothing or further groups of {n}; is it a log of another robot?"
        )
    spans = [tuple(range(1 + k * n, 1 + (k + 1) * n)) for k in range(3)]
    return Columns(
        time=None if rate else 0,
        rate=rate,
        position=spans[0],
        velocity=spans[1],
        torque=None if current else spans[2],
        current=spans[2] if current else None,
    )


def _expand(value: tuple[Key, ...] | str, n: int) -> tuple[Key, ...]:
    if not isinstance(value, str):
        return value
    if "{}" in value:
        return tuple(value.replace("{}", str(k + 1)) for k in range(n))
    if match := re.fullmatch(r"(\d+):(\d+)", value):
        return tuple(range(int(match[1]), int(match[2])))
    return (value,)


def _index(key: Key, names: tuple[str, ...] | None, width: int, where: str) -> int:
    if isinstance(key, bool) or not isinstance(key, (int, str)):
        raise RetorqueError(f"a column is a name or a number, not {key!r}")
    if isinstance(key, int):
        if not 0 <= key < width:
            raise RetorqueError(f"'{where}' has no column number {key}; it has {width} columns, counted from 0")
        return key
    if names is None:
        raise RetorqueError(f"'{where}' has no header, so its columns are numbers from 0 to {width - 1}, not '{key}'")
    if names.count(key) > 1:
        raise RetorqueError(f"'{where}' has several columns called '{key}'; name it by its number, counted from 0")
    if key not in names:
        raise unknown(f"column of '{where}'", key, names)
    return names.index(key)


def _plain(name: str) -> str:
    return re.sub(r"\[.*?\]$|\(.*?\)$", "", name.strip().lower()).translate(str.maketrans("", "", " _-./[]()"))


def _what(names: tuple[str, ...] | None, width: int) -> str:
    return f"{width} columns without names" if names is None else f"columns {', '.join(names[:60])}"
