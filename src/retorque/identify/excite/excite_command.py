"""The command `retorque excite`: an exciting motion as CSV and picture."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from retorque.identify.excite.excitation import Excitation
from retorque.identify.excite.excitation import excite as optimise
from retorque.identify.excite.play import samples, write_csv, write_plot
from retorque.robots.library import load as load_robot
from retorque.work.errors import RetorqueError
from retorque.work.files import check_folder
from retorque.work.jobs import progress
from retorque.work.outcome import Outcome


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
    criterion: Literal["logdet", "condition"] = "logdet"
    """logdet: most information over all; condition: the evenest."""
    speed: float = 0.5
    """Part of each joint's velocity limit to use."""
    acceleration: float = 4.0
    """Acceleration limit, as a multiple of the velocity in use, per second."""
    torque: float = 0.7
    """Part of each joint's torque limit to use."""
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
    wanted = Excitation(
        time=settings.time,
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
    rows = samples(found, robot, settings.rate)
    out.show(f"condition number of the base regressor {found.condition:.0f} (random: {found.condition_before:.0f})")
    out.show(f"log-determinant of the information {found.log_det:.1f} (random: {found.log_det_before:.1f})")
    out.show(f"largest torque {100 * found.torque_part:.0f} % of its limit (card's model, without friction)")
    near = f"{1000 * found.clearance:.0f} mm" if found.clearance < 1.0 else "never near"
    out.show(f"smallest distance between links that are not neighbours: {near}")
    out.later("motion", partial(write_csv, settings.out / f"{robot.name}_excitation.csv", rows))
    out.later("picture", partial(write_plot, settings.out / f"{robot.name}_excitation.png", rows, robot))
    return out
