"""`retorque robots`: what is on board."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from retorque.cli.verb import Verb

if TYPE_CHECKING:  # help must not wait for these
    import numpy as np
    from rich.table import Table

ROBOTS = Verb(
    summary="what is on board: degrees of freedom, limits, source of the numbers",
    example="retorque robots",
    module="cli.robots",
    settings="RobotsSettings",
    function="robots",
)


@dataclass(frozen=True, kw_only=True)
class RobotsSettings:
    """`retorque robots` takes no options."""


def robots(settings: RobotsSettings) -> Table:
    """The robots on board, as a table."""
    from rich.table import Table

    from retorque.robots import load, names

    table = Table("name", "robot", "joints", "torque", "velocity", "source", title="Robots on board")
    for name in names():
        robot = load(name)
        joints = f"{robot.n} + free base" if robot.floating else str(robot.n)
        torque, velocity = _span(robot.torque_limit, "N·m"), _span(robot.velocity_limit, "rad/s")
        table.add_row(name, robot.title, joints, torque, velocity, robot.source)
    return table


def _span(values: np.ndarray, unit: str) -> str:
    known = values[abs(values) < float("inf")]
    return f"{known.min():.3g} .. {known.max():.3g} {unit}" if len(known) else "unknown"
