"""Fingers of a gripper: they open and close as told, no faster and no harder than they can."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.scene import Box, Finger, Object, Scene
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError


def finger(name: str, side: float, **changes: object) -> Finger:
    made = {"name": name, "mount": "end_effector", "position": (0.0, side * 0.005, 0.2), "size": (0.005, 0.005, 0.02)}
    return Finger(**{**made, "axis": (0.0, side, 0.0), **changes})  # type: ignore[arg-type]


PAIR = (finger("left", 1.0), finger("right", -1.0))


def gripper(slider: Robot, *things: Object, trials: int = 1) -> Target:
    return Target(slider, Parameters.ideal(slider, trials), scene=Scene(objects=(*PAIR, *things)), threads=1)


def ticks(target: Target, count: int, gripper: np.ndarray | None = None) -> np.ndarray:
    """Go on; where the left and right fingers are then (trials, 2)."""
    for _ in range(count):
        target.write(Command(torque=np.zeros(target.position.shape), gripper=gripper))
    found = []
    for trial in range(target.trials):
        _, data = target.snapshot(trial)
        found.append([data.body(name).xpos[1] for name in ("left", "right")])
    return np.array(found)


def test_fingers_begin_open_close_as_fast_as_they_can_and_open_again(slider: Robot) -> None:
    target = gripper(slider, trials=3)
    np.testing.assert_allclose(ticks(target, 100), [[0.045, -0.045]] * 3, atol=1e-4)
    told = np.array([0.0, 0.03, np.nan])  # the last is not heard
    left = ticks(target, 400, told)[:, 0]
    assert left[0] == pytest.approx(0.045 - 0.4 * 0.05, abs=2e-3) and left[2] == pytest.approx(0.045, abs=1e-4)
    np.testing.assert_allclose(ticks(target, 1000, told), [[0.005, -0.005], [0.02, -0.02], [0.045, -0.045]], atol=5e-4)
    np.testing.assert_allclose(ticks(target, 1500, np.full(3, 7.0)), [[0.045, -0.045]] * 3, atol=1e-3)
    target.reset(slider.home)
    np.testing.assert_allclose(ticks(target, 1), [[0.045, -0.045]] * 3, atol=1e-6)


def test_a_box_between_the_fingers_is_held_and_stops_them(slider: Robot) -> None:
    box = Box(name="box", size=(0.01, 0.02, 0.01), mass=0.1, position=(0.0, 0.0, 0.2), friction=1.0)
    target = gripper(slider, box)
    target.grip(0.0)
    at = None
    for _ in range(300):  # something holds the box until the fingers are there
        target.place("box", np.array([0.0, 0.0, 0.2, 1.0, 0.0, 0.0, 0.0]))
        at = ticks(target, 2)
    at = ticks(target, 500)
    assert target.objects is not None and abs(target.objects[0, 0, 2] - 0.2) < 5e-3
    assert 0.020 < at[0, 0] < 0.026  # 5 mm beyond the box's side, a little pressed in


@pytest.mark.parametrize(
    "made, sentence",
    [
        (finger("left", 1.0, mount=""), "mounted on"),
        (finger("left", 1.0, axis=(0.0, 0.0, 0.0)), "needs an axis"),
        (finger("left", 1.0, speed=0.0), "above zero"),
        (finger("left", 1.0, opens=float("nan")), "above zero"),
    ],
)
def test_impossible_fingers_are_refused(made: Finger, sentence: str, slider: Robot) -> None:
    with pytest.raises(RetorqueError, match=sentence):
        Scene(objects=(made,)).check(slider)


def test_a_gripper_that_is_not_there_cannot_be_told(slider: Robot) -> None:
    target = Target(slider, Parameters.ideal(slider, 1), scene=Scene(objects=(Box(name="b", size=(0.1, 0.1, 0.1)),)))
    with pytest.raises(RetorqueError, match="no finger"):
        target.write(Command(torque=np.zeros((1, 1)), gripper=np.zeros(1)))
