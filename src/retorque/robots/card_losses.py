"""The sections [friction], [drive] and [uncertainty] of a card, read and written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retorque.robots.losses import Drive, JointFriction, Uncertainty, unit_of
from retorque.robots.toml_text import quoted
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

if TYPE_CHECKING:
    from retorque.robots.card import _Table
    from retorque.robots.robot import Link, Robot

PAIRS = {"gain": 1.0, "bias": 0.0, "dead_zone": 0.0}
"""The tables of [drive], and what is meant where one is missing."""


def read_losses(top: _Table, links: Sequence[Link]) -> dict[str, Any]:
    """The robot's fields `friction`, `drive` and `uncertainty`, as far as the card has them."""
    moving = [link for link in links if link.joint is not None]
    joints = [link.joint.name for link in moving if link.joint is not None and link.joint.kind != "free"]
    friction, drive, uncertainty = (top.table(key) for key in ("friction", "drive", "uncertainty"))
    return {
        "friction": None if friction is None else _friction(friction, joints),
        "drive": None if drive is None else _drive(drive, joints),
        "uncertainty": None if uncertainty is None else _uncertainty(uncertainty, [x.name for x in moving], joints),
    }


def _rows(table: _Table, key: str, names: Sequence[str], width: int) -> Array:
    """A table with a list of numbers for each name, (names, width)."""
    inner = table.table(key, required=True)
    rows = np.array([inner.vector(name, width) for name in names], dtype=float).reshape(len(names), width)
    inner.nothing_else()
    return rows


def _friction(table: _Table, joints: Sequence[str]) -> JointFriction:
    terms = table.data.get("terms")
    units = table.data.get("units")
    table.taken |= {"terms", "units"}
    if not isinstance(terms, list) or not all(isinstance(term, str) and term for term in terms):
        raise RetorqueError(f"{table.where}: 'terms' of {table.what} must be a list of names, not {terms!r}")
    wanted = [unit_of(term) for term in terms]
    if units != wanted:
        raise RetorqueError(f"{table.where}: 'units' of {table.what} must be {wanted}; convert the numbers")
    family: Any = table.text("family", required=True)
    found = JointFriction(
        family=family,
        terms=tuple(terms),
        coefficients=_rows(table, "coefficients", joints, len(terms)),
        deviation=_rows(table, "deviation", joints, len(terms)) if "deviation" in table.data else None,
        limit=table.number("limit", JointFriction.limit),
    )
    table.nothing_else()
    return found


def _drive(table: _Table, joints: Sequence[str]) -> Drive:
    found = {}
    for key, usual in PAIRS.items():
        found[key] = _rows(table, key, joints, 2) if key in table.data else np.full((len(joints), 2), usual)
    table.taken |= set(PAIRS)
    table.nothing_else()
    return Drive(**found)


def _uncertainty(table: _Table, links: Sequence[str], joints: Sequence[str]) -> Uncertainty:
    found = Uncertainty(
        inertial=_rows(table, "links", links, 10),
        armature=np.array(table.vector("armature", len(joints))),
    )
    table.nothing_else()
    return found


def loss_lines(robot: Robot) -> list[str]:
    """The lines of those sections that a robot has."""
    joints, lines = robot.joint_names, []
    if robot.friction is not None:
        f = robot.friction
        lines += ["", "[friction]", f"family = {quoted(f.family)}"]
        lines.append(f"limit = {float(f.limit)!r}  # Coulomb friction is proportional to velocity below this [rad/s]")
        lines += [f"terms = [{', '.join(map(quoted, f.terms))}]", f"units = [{', '.join(map(quoted, f.units))}]"]
        lines += _table_lines("friction.coefficients", joints, f.coefficients)
        if f.deviation is not None:
            lines += _table_lines("friction.deviation", joints, f.deviation)
    if robot.drive is not None:
        lines += ["", "[drive]  # for the two directions: gain of the command; bias, dead zone [N·m]"]
        for key in PAIRS:
            lines += _table_lines(f"drive.{key}", joints, getattr(robot.drive, key))
    if robot.uncertainty is not None:
        u = robot.uncertainty
        lines += ["", "[uncertainty]  # standard deviations", f"armature = {_list(u.armature)}"]
        lines += _table_lines("uncertainty.links", [link.name for link in robot.moving_links], u.inertial)
    return lines


def _table_lines(title: str, names: Sequence[str], rows: Array) -> list[str]:
    return [f"[{title}]", *(f"{quoted(name)} = {_list(row)}" for name, row in zip(names, rows, strict=True))]


def _list(values: Array) -> str:
    return "[" + ", ".join(repr(float(value) + 0.0) for value in values) + "]"
