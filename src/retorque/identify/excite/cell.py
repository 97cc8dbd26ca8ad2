"""The cell that a robot stands in: floor, walls, things in the way, the tool in its hand, and limits of its own."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from retorque.robots.robot import Geom, Robot
from retorque.work.errors import RetorqueError, unknown

SHAPES = {"box": 3, "sphere": 1, "capsule": 2, "cylinder": 2}
"""Numbers that the size of each shape has."""


@dataclass(frozen=True, kw_only=True)
class HalfSpace:
    """A plane that nothing may pass: points with normal · point < offset are behind it."""

    name: str
    normal: tuple[float, float, float]
    """Unit vector into the cell, in the base's axes."""
    offset: float
    """Of the plane along the normal, from the base's origin [m]."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What surrounds a robot, in the axes of its base, and what it may do there."""

    walls: tuple[HalfSpace, ...] = ()
    """Floor, walls and ceiling."""
    things: tuple[tuple[str, Geom], ...] = ()
    """Named shapes that stand still: a table, a fixture, a cabinet."""
    tool: Geom | None = None
    """In the end-effector's axes; only its shape, its mass is what is identified."""
    lower: tuple[float, ...] = ()
    """Position limits of the joints, narrower than the card's [rad]; one number serves all."""
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    """[rad/s]"""
    acceleration: tuple[float, ...] = ()
    """[rad/s²]"""
    torque: tuple[float, ...] = ()
    """[N·m]"""

    def with_floor(self, height: float) -> Cell:
        """The same with a floor at a height over the base's origin [m]."""
        return replace(self, walls=(*self.walls, HalfSpace(name="floor", normal=(0.0, 0.0, 1.0), offset=height)))

    def limited(self, robot: Robot) -> Robot:
        """The robot with the cell's limits where they are narrower than its own."""
        lower, upper, velocity, torque = (
            np.broadcast_to(limit or fallback, (robot.n,)) if len(limit) in (0, 1, robot.n) else _wrong(robot, limit)
            for limit, fallback in (
                (self.lower, (-np.inf,)), (self.upper, (np.inf,)), (self.velocity, (np.inf,)), (self.torque, (np.inf,)),
            )
        )  # fmt: skip
        links, index = [], 0
        for link in robot.links:
            if link.joint is not None:
                joint = replace(
                    link.joint,
                    lower=max(link.joint.lower, float(lower[index])),
                    upper=min(link.joint.upper, float(upper[index])),
                    velocity_limit=min(link.joint.velocity_limit, float(velocity[index])),
                    torque_limit=min(link.joint.torque_limit, float(torque[index])),
                )
                link, index = replace(link, joint=joint), index + 1
            links.append(link)
        home = np.asarray(robot.home)
        if np.any(home < lower) or np.any(home > upper):
            raise RetorqueError(f"the home of '{robot.name}' lies outside of the cell's position limits; widen them")
        return robot.with_links(tuple(links))

    def accelerations(self, robot: Robot) -> np.ndarray:
        """(n,) largest accelerations [rad/s²]; infinite where the cell says nothing."""
        limit = self.acceleration or (np.inf,)
        return np.broadcast_to(limit, (robot.n,)) if len(limit) in (1, robot.n) else _wrong(robot, limit)


def _wrong(robot: Robot, limit: tuple[float, ...]) -> np.ndarray:
    raise RetorqueError(f"the cell's limits are one number or one a joint ({robot.n} of '{robot.name}'), not {limit}")


def read_cell(path: Path) -> Cell:
    """A cell from a TOML file: `floor = 0.0`, `[[wall]]`, `[[thing]]`, `[tool]` and `[limits]`."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RetorqueError(f"cannot read the cell '{path}': {error}") from error
    allowed = ("floor", "wall", "thing", "tool", "limits")
    for key in content:
        if key not in allowed:
            raise unknown("entry of a cell", key, allowed)
    limits = content.get("limits", {})
    names = ("lower", "upper", "velocity", "acceleration", "torque")
    for key in limits:
        if key not in names:
            raise unknown("limit of a cell", key, names)
    cell = Cell(
        walls=tuple(_wall(entry, k) for k, entry in enumerate(content.get("wall", ()))),
        things=tuple(
            (str(entry.get("name", f"thing {k + 1}")), _geom(entry)) for k, entry in enumerate(content.get("thing", ()))
        ),
        tool=_geom(content["tool"]) if "tool" in content else None,
        **{key: _numbers(value, f"limits.{key}") for key, value in limits.items()},
    )
    return cell.with_floor(float(content["floor"])) if "floor" in content else cell


def _wall(entry: dict[str, Any], index: int) -> HalfSpace:
    normal = np.array(_numbers(entry.get("normal", ()), "a wall's normal", 3))
    length = float(np.linalg.norm(normal))
    if not length > 0.0 or not isinstance(entry.get("offset"), int | float):
        raise RetorqueError("a [[wall]] needs a normal (3 numbers, into the cell) and an offset along it [m]")
    x, y, z = (float(value) for value in normal / length)
    return HalfSpace(name=str(entry.get("name", f"wall {index + 1}")), normal=(x, y, z), offset=float(entry["offset"]))


def _geom(entry: dict[str, Any]) -> Geom:
    shape = entry.get("shape")
    if shape not in SHAPES:
        raise unknown("shape", str(shape), SHAPES)
    known = {field.name for field in fields(Geom)} | {"name"}
    for key in entry:
        if key not in known:
            raise unknown("entry of a shape", key, known)
    size = _numbers(entry.get("size", ()), f"the size of a {shape}", SHAPES[shape])
    if min(size) <= 0.0:
        raise RetorqueError(f"the size of a {shape} must be above zero [m], not {list(size)}")
    x, y, z = _numbers(entry.get("position", (0.0, 0.0, 0.0)), "a position", 3)
    a, b, c, d = _numbers(entry.get("quaternion", (1.0, 0.0, 0.0, 0.0)), "a quaternion", 4)
    return Geom(shape=shape, size=size, position=(x, y, z), quaternion=(a, b, c, d))


def _numbers(value: Any, what: str, count: int | None = None) -> tuple[float, ...]:
    listed = [value] if isinstance(value, int | float) else list(value)
    if not all(isinstance(v, int | float) and np.isfinite(v) for v in listed) or count not in (None, len(listed)):
        wanted = "numbers" if count is None else f"{count} numbers"
        raise RetorqueError(f"{what} must be {wanted}, not {value}")
    return tuple(float(v) for v in listed)
