"""Robots on their feet: a free base, a floor, box feet and position servos."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import Base
from retorque.simulate.scene import Floor, Scene
from retorque.simulate.servo import Servo
from retorque.simulate.target import Target

LEGS = ("hip", "knee", "ankle")


def _standing(name: str, height: float, stiffness: np.ndarray, damping: float) -> Target:
    robot = Robot.load(name)
    servo = Servo(stiffness=stiffness, damping=np.full(robot.n, damping))
    target = Target(robot, Parameters.ideal(robot), scene=Scene(objects=[Floor()]), servo=servo, threads=1)
    target.reset(robot.home, base=Base(np.array([0.0, 0.0, height, 1.0, 0.0, 0.0, 0.0]), np.zeros(6)))
    return target


def _servo_gains(robot: Robot) -> np.ndarray:
    """ToddlerBot's own: 2100 and 1500 units, 150 of them a N·m/rad."""
    return np.array([14.0 if any(leg in name for leg in LEGS) else 10.0 for name in robot.joint_names])


@pytest.mark.parametrize("name", ("toddlerbot", "toddlerbot_2xm", "g1"))
def test_stands_for_three_seconds_on_its_feet(name: str) -> None:
    robot = Robot.load(name)
    small = name != "g1"
    gains = _servo_gains(robot) if small else np.full(robot.n, 500.0)
    target = _standing(name, 0.309 if small else 0.792, gains, 0.1 if small else 10.0)
    start = 0.309 if small else 0.792
    for _ in range(3000):
        target.write(Command(position=robot.home))
    state = target.read()
    assert state.base is not None and not target.diverged
    assert abs(state.base.pose[2] - start) < 0.01 * start
    assert 2.0 * np.linalg.norm(state.base.pose[4:6]) < 0.05  # roll and pitch [rad]
    weight = 9.81 * sum(link.mass for link in robot.links)
    feet = [name for name in (link.name for link in robot.links) if name.endswith("ankle_roll_link")]
    carried = sum(target.contact_force(foot, by="floor")[2] for foot in feet)
    assert carried == pytest.approx(weight, rel=0.02)
    assert target.contact_force("floor")[2] == pytest.approx(-carried, rel=1e-9)  # nothing else touches the floor


def test_a_push_at_the_hand_reaches_the_feet_and_a_strong_one_fells_it() -> None:
    robot = Robot.load("toddlerbot")
    fallen = []
    for force in (3.0, 20.0):
        target = _standing("toddlerbot", 0.309, _servo_gains(robot), 0.1)
        target.push_frame("right_hand_centre", np.array([-force, 0.0, 0.0]))
        for _ in range(1500):
            target.write(Command(position=robot.home))
        state = target.read()
        assert state.base is not None
        fallen.append(bool(state.base.pose[2] < 0.25))
        if not fallen[-1]:
            assert target.contact_force("robot", by="floor")[0] == pytest.approx(force, abs=1.0)
    assert fallen == [False, True]
