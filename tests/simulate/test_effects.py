"""Effects that no parameter describes: each is stable, and each does something."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.effects import EFFECTS, Delay, Effect, LuGre, effect
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError


def _motion(robot: Robot, effects: list[Effect], ticks: int = 1000) -> np.ndarray:
    target = Target(robot, Parameters.ideal(robot, 1), effects=effects, threads=1)
    target.reset(robot.home)
    body, stiffness = RigidBody(robot), profile_of(robot).tracking_stiffness
    damping = critical_damping(robot, stiffness)
    path = []
    for tick in range(ticks):
        goal = robot.home + 0.3 * np.sin(2.0 * np.pi * tick * 1e-3)
        q, qd = target.position.copy(), target.velocity.copy()
        target.write(Command(torque=stiffness * (goal - q) - damping * qd + body.gravity(q)))
        path.append(target.position[0].copy())
    return np.array(path)


@pytest.mark.parametrize("robot", ("panda", "z1"))
@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_each_effect_is_stable_and_does_something(robot: str, name: str) -> None:
    arm = Robot.load(robot)
    plain, changed = _motion(arm, []), _motion(arm, [effect(name)])
    assert np.all(np.isfinite(changed))
    apart = np.abs(changed - plain).max()
    assert 1e-4 < apart < 0.5


def test_stick_slip_holds_against_a_torque_below_the_static_level() -> None:
    robot = Robot.load("panda")
    target = Target(robot, Parameters.ideal(robot, 2), effects=[LuGre()], threads=1)
    hold = RigidBody(robot).gravity(robot.home)
    push = np.zeros((2, robot.n))
    push[0, 0], push[1, 0] = 1.0, 4.0  # static level: 1.8 N·m
    for _ in range(500):
        target.write(Command(torque=hold + push))
    moved = np.abs(target.position[:, 0] - robot.home[0])
    assert moved[0] < 5e-3 < 0.05 < moved[1]


def test_delay_is_the_number_of_ticks_it_says() -> None:
    late = Delay(3)
    late.reset(np.zeros((1, 1)), np.zeros((1, 1)))
    sent = [float(late.command(np.full((1, 1), tick))[0, 0]) for tick in range(8)]
    assert sent == [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]


def test_an_unknown_effect_names_the_nearest() -> None:
    with pytest.raises(RetorqueError, match="did you mean 'ripple'"):
        effect("riple")
