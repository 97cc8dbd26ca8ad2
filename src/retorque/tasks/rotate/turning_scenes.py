"""The scenes of `retorque comply rotate` and `retorque bench rotate`, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from retorque.tasks.rotate.ball_turning import BallTurning, BallTurningSettings
from retorque.tasks.rotate.hand_turning import HandTurning, HandTurningSettings
from retorque.tasks.rotate.object_turns import ObjectTurns
from retorque.work.errors import unknown

SCENES = {
    "leap_hand": ("sphere", "cube", "cylinder"),
    "toddlerbot_2xm": ("left", "right", "both"),
}
"""Objects in the hand, or hands on the ball, by robot."""


class TurningScene(Protocol):
    """An object, and a robot that turns it."""

    def run(self, method: str, progress: Callable[[int], None] | None = None) -> ObjectTurns:
        """Turn it with a method of `METHODS`."""


def turning_scene(robot: str, what: str, trials: int, seed: int, cycles: int = 3) -> TurningScene:
    """The scene of a robot: an object in a hand, or hands on a ball."""
    if robot not in SCENES:
        raise unknown("robot that turns things", robot, SCENES)
    if what not in SCENES[robot]:
        raise unknown("thing to turn" if robot == "leap_hand" else "choice of hands", what, SCENES[robot])
    if robot == "leap_hand":
        return HandTurning(HandTurningSettings(thing=what, trials=trials, seed=seed, cycles=cycles))
    return BallTurning(BallTurningSettings(hands=what, trials=trials, seed=seed, cycles=cycles))
