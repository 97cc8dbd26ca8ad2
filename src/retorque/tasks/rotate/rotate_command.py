"""`retorque comply rotate`: an object in a hand, or a ball on the floor, moved by force and velocity at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from retorque.tasks.comply.method_controller import METHODS
from retorque.tasks.rotate.object_turns import ObjectTurns
from retorque.tasks.rotate.turning_scenes import SCENES, turning_scene
from retorque.work.checks import MOST_SEED, check_between
from retorque.work.errors import unknown
from retorque.work.files import check_file
from retorque.work.outcome import Outcome


@dataclass(frozen=True, kw_only=True)
class RotateSettings:
    """Settings of `retorque comply rotate`."""

    robot: str = "leap_hand"
    """leap_hand: an object between three fingertips; toddlerbot_2xm: a ball on the floor before its knees."""
    what: str = ""
    """sphere, cube or cylinder in the hand; left, right or both hands on the ball; default: the first."""
    method: str = "retorque"
    """retorque, public-code, without f_ext or position."""
    cycles: int = 3
    """How often every motion is made."""
    trials: int = 1
    """Objects; the picture shows the first."""
    seed: int = 0
    """Of objects and hidden friction."""
    render: Path | None = None
    """Write a picture (PNG): the object's way and the forces on it."""


def rotate(settings: RotateSettings) -> Outcome:
    """Move and turn it; table and picture."""
    if settings.method not in METHODS:
        raise unknown("method", settings.method, METHODS)
    check_between("--trials", settings.trials, 1, 200)
    check_between("--cycles", settings.cycles, 1, 100)
    check_between("--seed", settings.seed, 0, MOST_SEED)
    if settings.render is not None:
        check_file(settings.render)
    if settings.robot not in SCENES:
        raise unknown("robot that turns things", settings.robot, SCENES)
    what = settings.what or SCENES[settings.robot][0]
    turns = turning_scene(settings.robot, what, settings.trials, settings.seed, settings.cycles).run(settings.method)
    outcome = Outcome()
    outcome.show(_table(turns, f"comply rotate: {settings.robot}, {what}, {settings.method}"))
    if settings.render is not None:
        from retorque.tasks.rotate.turns_picture import picture

        file = settings.render
        outcome.later("picture", lambda: picture(turns, file))
    return outcome


def _table(turns: ObjectTurns, title: str) -> Table:
    table = Table(title=title)
    table.add_column("stroke")
    table.add_column("mean over trials", justify="right")
    strokes = turns.schedule.strokes
    for number, ways in enumerate(turns.strokes()):
        linear = any(strokes[number % len(strokes)].axis[:3])
        value = f"{100.0 * ways.mean():.2f} cm" if linear else f"{np.rad2deg(ways.mean()):.1f} deg"
        table.add_row(f"{number + 1}: {'move' if linear else 'turn'}", value)
    table.add_row("lost", f"{int(turns.lost.sum())} of {len(turns.lost)}")
    return table
