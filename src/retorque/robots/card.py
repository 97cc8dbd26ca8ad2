"""A robot's card: one TOML file that holds the tree, the limits, the frames and where the numbers come from."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from retorque.robots import validate
from retorque.robots.card_losses import loss_lines, read_losses
from retorque.robots.profile import Profile
from retorque.robots.robot import Frame, Geom, Joint, Kind, Link, Robot, Shape
from retorque.robots.toml_text import quoted
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

UNITS = "m, rad, kg, kg·m², N·m, s (along prismatic joints m, N and kg)"
"""The one system of units a card may have; each card says it."""
AXIS_TOLERANCE = 1e-6
"""How far from one an axis' or quaternion's length may be before it counts as a mistake."""
KINDS: dict[str, Kind] = {"revolute": "revolute", "prismatic": "prismatic", "free": "free"}
SHAPES: dict[str, Shape] = {"box": "box", "sphere": "sphere", "capsule": "capsule", "cylinder": "cylinder"}
PROFILE_PAIRS = {f.name for f in fields(Profile) if str(f.type).startswith("tuple")}
PROFILE_ARRAYS = {f.name for f in fields(Profile) if str(f.type).startswith("Array")}


def read_card(path: str | Path) -> Robot:
    """Read and check a card; anything wrong raises a sentence that names the file, the link and what to do."""
    path = Path(path)
    where = path.name
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RetorqueError(f"there is no card '{path}'; give the path of a TOML file") from None
    except (ValueError, OSError) as error:  # broken TOML and broken UTF-8 are both ValueErrors
        raise RetorqueError(f"{where}: this is not a TOML file that can be read ({error}); correct it") from None
    top = _Table(data, where, "the card")
    if top.text("units", required=True) != UNITS:
        raise RetorqueError(f'{where}: the card\'s units must be units = "{UNITS}"; convert the numbers')
    name = top.text("name", required=True)
    links = tuple(_link(table) for table in top.tables("link"))
    joints = sum(link.joint is not None and link.joint.kind != "free" for link in links)
    profile, frames = top.table("profile"), top.table("frames")
    mount = top.table("payload_mount")
    end = _frame(top.table("end_effector", required=True))
    robot = Robot(
        name=name,
        title=top.text("title") or name,
        source=top.text("source", required=True),
        notes=top.text("notes"),
        gravity=top.vector("gravity", 3, (0.0, 0.0, -9.81)),
        hardware_adds_gravity=top.flag("hardware_adds_gravity"),
        home=np.array(top.vector("home", None)),
        links=links,
        end_effector=end,
        payload_mount=end if mount is None else _frame(mount),
        frames={} if frames is None else {key: _frame(frames.table(key)) for key in frames.data},
        end_effectors=top.texts("end_effectors"),
        profile=None if profile is None else _profile(profile, joints),
        **read_losses(top, links),
    )
    top.nothing_else()
    return validate.check(robot, where)


class _Table:
    """A TOML table that knows where it stands, what has been taken from it, and how to complain."""

    def __init__(self, data: Any, where: str, what: str) -> None:
        if not isinstance(data, dict):
            raise RetorqueError(f"{where}: {what} must be a table, not {data!r}")
        self.data: Mapping[str, Any] = data
        self.where = where
        self.what = what
        self.taken: set[str] = set()

    def _get(self, key: str, required: bool, unit: str = "") -> Any:
        self.taken.add(key)
        if required and key not in self.data:
            raise RetorqueError(f"{self.where}: {self.what} has no '{key}'; add it{unit}")
        return self.data.get(key)

    def text(self, key: str, required: bool = False) -> str:
        value = self._get(key, required)
        if value is not None and (not isinstance(value, str) or (required and not value)):
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} must be a text, not {value!r}")
        return value or ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._get(key, False)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} must be a list of texts, not {value!r}")
        return tuple(value or ())

    def flag(self, key: str) -> bool:
        value = self._get(key, False)
        if value is not None and not isinstance(value, bool):
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} must be true or false, not {value!r}")
        return bool(value)

    def number(self, key: str, default: float | None = None) -> float:
        value = self._get(key, default is None)
        if value is None:
            assert default is not None
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} must be a number, not {value!r}")
        return float(value)

    def vector(self, key: str, length: int | None, default: tuple[float, ...] | None = None) -> Any:
        value = self._get(key, default is None)
        if value is None:
            return default
        good = isinstance(value, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in value)
        if not good or (length is not None and len(value) != length):
            count = "a list of" if length is None else str(length)
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} must be {count} numbers, not {value!r}")
        return tuple(float(x) for x in value)

    def unit_vector(self, key: str, length: int, default: tuple[float, ...]) -> Any:
        value = self.vector(key, length, default)
        size = math.sqrt(sum(x * x for x in value))
        if not abs(size - 1.0) <= AXIS_TOLERANCE:
            raise RetorqueError(f"{self.where}: '{key}' of {self.what} has length {size:.6g}; scale it to length 1")
        return value if abs(size - 1.0) < 1e-12 else tuple(x / size for x in value)

    def table(self, key: str, required: bool = False) -> Any:
        value = self._get(key, required)
        what = key if self.what == "the card" else f"the {key} of {self.what}"
        return None if value is None else _Table(value, self.where, what)

    def tables(self, key: str, required: bool = True) -> list[_Table]:
        value = self._get(key, required)
        if value is None:
            return []
        if not isinstance(value, list) or not value:
            raise RetorqueError(f"{self.where}: {self.what} needs at least one [[{key}]] table")
        found = []
        for number, item in enumerate(value, start=1):
            name = item.get("name", number) if isinstance(item, dict) else number
            owner = "" if self.what == "the card" else f" of {self.what}"
            found.append(_Table(item, self.where, f"{key} '{name}'{owner}"))
        return found

    def nothing_else(self) -> None:
        strange = sorted(set(self.data) - self.taken)
        if strange:
            raise RetorqueError(
                f"{self.where}: {self.what} has the unknown key '{strange[0]}'; remove it or use one of: "
                + ", ".join(sorted(self.taken))
            )


def _link(table: _Table) -> Link:
    joint = table.table("joint")
    link = Link(
        name=table.text("name", required=True),
        parent=table.text("parent", required=True),
        joint=None if joint is None else _joint(joint),
        position=table.vector("position", 3, (0.0, 0.0, 0.0)),
        quaternion=table.unit_vector("quaternion", 4, (1.0, 0.0, 0.0, 0.0)),
        mass=table.number("mass"),
        centre=table.vector("centre", 3, (0.0, 0.0, 0.0)),
        inertia=table.vector("inertia", 6, (0.0,) * 6),
        geoms=tuple(_geom(geom) for geom in table.tables("geom", required=False)),
    )
    table.nothing_else()
    return link


def _geom(table: _Table) -> Geom:
    shape = table.text("shape", required=True)
    if shape not in SHAPES:
        raise RetorqueError(f"{table.where}: 'shape' of {table.what} is '{shape}'; use {', '.join(SHAPES)}")
    geom = Geom(
        shape=SHAPES[shape],
        size=table.vector("size", None),
        position=table.vector("position", 3, (0.0, 0.0, 0.0)),
        quaternion=table.unit_vector("quaternion", 4, (1.0, 0.0, 0.0, 0.0)),
        friction=table.number("friction", 1.0),
    )
    table.nothing_else()
    return geom


def _joint(table: _Table) -> Joint:
    kind = table.text("kind") or "revolute"
    if kind not in KINDS:
        raise RetorqueError(f"{table.where}: 'kind' of {table.what} is '{kind}'; use revolute, prismatic or free")
    joint = Joint(
        name=table.text("name", required=True),
        kind=KINDS[kind],
        axis=table.unit_vector("axis", 3, (0.0, 0.0, 1.0)),
        lower=table.number("lower", -math.inf),
        upper=table.number("upper", math.inf),
        velocity_limit=table.number("velocity_limit", math.inf),
        torque_limit=table.number("torque_limit", math.inf),
        armature=table.number("armature", 0.0),
        motor=table.text("motor"),
    )
    table.nothing_else()
    return joint


def _frame(table: _Table) -> Frame:
    frame = Frame(
        link=table.text("link", required=True),
        position=table.vector("position", 3, (0.0, 0.0, 0.0)),
        quaternion=table.unit_vector("quaternion", 4, (1.0, 0.0, 0.0, 0.0)),
    )
    table.nothing_else()
    return frame


def _profile(table: _Table, joints: int) -> Profile:
    values: dict[str, Any] = {}
    for f in fields(Profile):
        needed = f.default is MISSING and "None" not in str(f.type)
        if not needed and f.name not in table.data:
            table.taken.add(f.name)
            if f.default is MISSING:
                values[f.name] = None
        elif f.name in PROFILE_ARRAYS:
            values[f.name] = np.array(table.vector(f.name, joints))
        elif f.name in PROFILE_PAIRS:
            values[f.name] = table.vector(f.name, 2)
        else:
            number = table.number(f.name)
            values[f.name] = int(number) if str(f.type) == "int" else number
        numbers = np.asarray(values.get(f.name) if values.get(f.name) is not None else 0.0, dtype=float)
        if not np.all(np.isfinite(numbers)) or np.any(numbers < 0.0):
            raise RetorqueError(f"{table.where}: '{f.name}' of {table.what} must be finite and not negative")
        if f.name in PROFILE_PAIRS and f.name in values and values[f.name][0] > values[f.name][1]:
            raise RetorqueError(f"{table.where}: '{f.name}' of {table.what} must be [low, high] with low <= high")
    table.nothing_else()
    profile = Profile(**values)
    if np.any(profile.armature_min > profile.armature_max):
        raise RetorqueError(f"{table.where}: 'armature_min' of {table.what} exceeds 'armature_max'; exchange them")
    return profile


def write_card(robot: Robot, path: str | Path) -> Path:
    """Write a robot as a card, whole or not at all; numbers keep every digit."""
    return write_whole(path, card_text(robot))


def card_text(robot: Robot) -> str:
    """The card of a robot as a TOML text."""
    lines = [
        f"name = {quoted(robot.name)}",
        f"title = {quoted(robot.title)}",
        f"units = {quoted(UNITS)}",
        f"source = {quoted(robot.source)}",
        f"notes = {quoted(robot.notes)}",
        f"gravity = {_list(robot.gravity)}",
        f"hardware_adds_gravity = {str(robot.hardware_adds_gravity).lower()}",
        f"home = {_list(robot.home)}",
        *([f"end_effectors = [{', '.join(map(quoted, robot.end_effectors))}]"] if robot.end_effectors else []),
        *_frame_lines("end_effector", robot.end_effector),
        *_frame_lines("payload_mount", robot.payload_mount),
    ]
    for name, frame in robot.frames.items():
        lines += _frame_lines(f"frames.{quoted(name)}", frame)
    for link in robot.links:
        lines += _link_lines(link)
    lines += loss_lines(robot)
    if robot.profile is not None:
        lines += _profile_lines(robot.profile)
    return "\n".join(lines) + "\n"


def _frame_lines(title: str, frame: Frame) -> list[str]:
    pose = [f"position = {_list(frame.position)}", f"quaternion = {_list(frame.quaternion)}"]
    return ["", f"[{title}]", f"link = {quoted(frame.link)}", *pose]


def _link_lines(link: Link) -> list[str]:
    lines = [
        "",
        "[[link]]",
        f"name = {quoted(link.name)}",
        f"parent = {quoted(link.parent)}",
        f"position = {_list(link.position)}",
        f"quaternion = {_list(link.quaternion)}",
        f"mass = {float(link.mass)!r}",
        f"centre = {_list(link.centre)}",
        f"inertia = {_list(link.inertia)}  # xx, yy, zz, xy, xz, yz about the centre",
    ]
    return [*lines, *_joint_lines(link.joint), *(line for geom in link.geoms for line in _geom_lines(geom))]


def _geom_lines(geom: Geom) -> list[str]:
    lines = [
        "[[link.geom]]",
        f"shape = {quoted(geom.shape)}",
        f"size = {_list(geom.size)}",
        f"position = {_list(geom.position)}",
    ]
    if geom.quaternion != Geom.quaternion:
        lines.append(f"quaternion = {_list(geom.quaternion)}")
    if geom.friction != Geom.friction:
        lines.append(f"friction = {float(geom.friction)!r}")
    return lines


def _joint_lines(joint: Joint | None) -> list[str]:
    if joint is None:
        return []
    lines = ["[link.joint]", f"name = {quoted(joint.name)}", f"kind = {quoted(joint.kind)}"]
    if joint.kind == "free":
        return lines
    lines.append(f"axis = {_list(joint.axis)}")
    for key in ("lower", "upper", "velocity_limit", "torque_limit"):
        value = float(getattr(joint, key))
        if math.isfinite(value):
            lines.append(f"{key} = {value!r}")
    lines.append(f"armature = {float(joint.armature)!r}")
    if joint.motor:
        lines.append(f"motor = {quoted(joint.motor)}")
    return lines


def _profile_lines(profile: Profile) -> list[str]:
    lines = ["", "[profile]"]
    for f in fields(Profile):
        value = getattr(profile, f.name)
        if value is None or (f.default is not MISSING and value == f.default):
            continue
        lines.append(f"{f.name} = {_list(value) if np.ndim(value) else repr(value)}")
    return lines


def _list(values: Iterable[float]) -> str:
    return "[" + ", ".join(repr(float(value) + 0.0) for value in values) + "]"
