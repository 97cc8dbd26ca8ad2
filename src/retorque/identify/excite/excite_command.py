"""The command `retorque excite`: an exciting motion as CSV, picture and files for controllers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.identify.excite.cell import Cell, read_cell
from retorque.identify.excite.collision import Clearance
from retorque.identify.excite.controller_files import ENDINGS, WRITERS
from retorque.identify.excite.excitation import Excitation
from retorque.identify.excite.excitation import excite as optimise
from retorque.identify.excite.play import samples, write_csv, write_plot
from retorque.robots.library import load as load_robot
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome

NEAR = 0.1
"""Distances that are worth telling [m]."""


@dataclass(kw_only=True)
class ExciteSettings:
    """Design the motion whose log tells most about a robot.

    Example: retorque excite --robot panda --time 20 --harmonics 5 --out excitation
    """

    robot: str
    """A robot on board, or the path of a card, URDF or MJCF."""
    time: float = 20.0
    """Length of the exciting motion [s]."""
    harmonics: int = 5
    """Sines and cosines of each joint."""
    criterion: Literal["logdet", "condition", "both"] = "logdet"
    """logdet: most information over all; condition: the evenest; both: a compromise."""
    speed: float = 0.5
    """Part of each joint's velocity limit to use."""
    acceleration: float = 4.0
    """Acceleration limit, as a multiple of the velocity in use, per second."""
    torque: float = 0.7
    """Part of each joint's torque limit to use."""
    cell: Path | None = None
    """TOML file of what stands around the robot: floor, [[wall]], [[thing]], [tool], [limits] (docs)."""
    floor: float | None = None
    """Height of the floor over the base's origin [m]; nan: none. Default: the cell's, or the base's own plane."""
    clearance: float = 0.02
    """Distance to aim for between links that are not neighbours, and to the cell; half of it is kept [m]."""
    controllers: tuple[Literal["urscript", "franka", "ros"], ...] = ()
    """Also write the motion as these play it: URScript (servoj), JSON at 1 kHz (libfranka), JointTrajectory (ROS)."""
    period: float = 10.0
    """Length of one period, about [s]."""
    rate: float = 500.0
    """Rows a second in the CSV [Hz]."""
    starts: int = 2
    """Random first shapes to optimise."""
    iterations: int = 25
    """Steps of the optimiser for each."""
    seed: int = 0
    """Seed of the random first shapes."""
    out: Path = Path("excitation")
    """Folder for the CSV and the picture."""


def excite(settings: ExciteSettings) -> Outcome:
    """Run `retorque excite`."""
    out = Outcome()
    robot = load_robot(settings.robot)
    check_folder(settings.out)
    if not 1.0 <= settings.rate <= 10_000.0:
        raise RetorqueError(f"the rate must be between 1 and 10000 Hz, got {settings.rate}")
    cell = cell_of(settings, robot, out)
    wanted = Excitation(
        time=settings.time,
        period=settings.period,
        cell=cell,
        clearance=settings.clearance,
        harmonics=settings.harmonics,
        criterion=settings.criterion,
        speed=settings.speed,
        acceleration=settings.acceleration,
        torque=settings.torque,
        seed=settings.seed,
        starts=settings.starts,
        iterations=settings.iterations,
    )
    with progress() as bar:
        bar.add_task("optimising", total=None)
        found = optimise(robot, wanted)
    limited = cell.limited(robot)
    rows = samples(found, limited, settings.rate, acceleration=cell.accelerations(robot))
    out.show(f"condition number of the base regressor {found.condition:.1f} (random: {found.condition_before:.1f})")
    out.show(f"log-determinant of the information {found.log_det:.1f} (random: {found.log_det_before:.1f})")
    out.show(f"largest torque {100 * found.torque_part:.0f} % of its limit (card's model, without friction)")
    # every row that will be played, not only the samples that were optimised
    distance, pair = Clearance(limited, NEAR, cell).nearest(rows[1][:: max(1, int(settings.rate / 50.0))])
    if distance <= 0.0:
        raise RetorqueError(f"the motion would bring {' and '.join(pair)} together; try another --seed or --clearance")
    near = f"{1000 * distance:.0f} mm ({' and '.join(pair)})" if pair[0] else f"never below {1000 * NEAR:.0f} mm"
    out.show(f"smallest distance between links that are not neighbours, and to the cell: {near}", markup=False)
    out.later("motion", partial(write_csv, settings.out / f"{robot.name}_excitation.csv", rows))
    out.later("picture", partial(write_plot, settings.out / f"{robot.name}_excitation.png", rows, robot))
    for name in settings.controllers:
        path = settings.out / f"{robot.name}_excitation.{ENDINGS[name]}"
        out.later(f"motion for {name}", partial(WRITERS[name], path, rows, robot))
    return out


def cell_of(settings: ExciteSettings, robot: Robot, out: Outcome) -> Cell:
    """The cell of the options; a floor in the base's plane where nothing else is said and home is above it."""
    cell = Cell() if settings.cell is None else read_cell(settings.cell)
    if settings.floor is not None:
        return cell if np.isnan(settings.floor) else cell.with_floor(settings.floor)
    if any(wall.name == "floor" for wall in cell.walls):
        return cell
    with_floor = cell.with_floor(0.0)
    try:
        Clearance(robot, NEAR, with_floor)
    except RetorqueError:
        out.show("home reaches below the base's plane: no floor is taken there; give --floor HEIGHT", style="yellow")
        return cell
    out.show(
        "a floor in the base's plane is kept clear of (--floor changes it, --floor nan leaves it out)", style="dim"
    )
    return with_floor
