"""What every driver promises, on one that only remembers what it was told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.drivers.driver import Driver
from retorque.work.errors import RetorqueError


class Remembering(Driver):
    """A robot on paper."""

    timestep = 1e-3
    torque_rate = 1000.0

    def __init__(self, robot: Robot):
        super().__init__(robot)
        self.sent: list[np.ndarray] = []
        self.position = np.array(robot.home)
        self.stops = 0

    def _begin(self, act: bool) -> None:
        pass

    def _report(self) -> State:
        return State(0.0, self.position, np.zeros(self.robot.n), np.zeros(self.robot.n))

    def _send(self, torque: np.ndarray) -> None:
        self.sent.append(torque)

    def _end(self) -> None:
        self.stops += 1


class Compensating(Remembering):
    """The same, adding gravity by itself."""

    adds_gravity = True


def test_nothing_is_sent_before_it_may_and_the_way_out_is_a_stop(panda: Robot) -> None:
    with Remembering(panda) as driver:
        driver.start(act=False)
        driver.read()
        driver.write(Command(torque=np.ones(7)))
        assert driver.sent == [] and not driver.acting
        driver.start(act=True)
        driver.write(Command(torque=np.ones(7)))
        assert len(driver.sent) == 1
    assert driver.stops == 1 and not driver.acting
    driver.write(Command(torque=np.ones(7)))
    assert len(driver.sent) == 1


def test_what_goes_out_is_finite_within_limits_and_slow(panda: Robot) -> None:
    driver = Remembering(panda)
    driver.start(act=True)
    driver.read()
    for told in (np.full(7, 1e3), np.full(7, -1e3), np.full(7, np.nan), np.full(7, np.inf), np.ones(3), None):
        for _ in range(120):
            driver.write(Command(torque=told))
    sent = np.array(driver.sent)
    assert np.isfinite(sent).all() and (np.abs(sent) <= panda.torque_limit).all()
    assert np.abs(np.diff(sent, axis=0)).max() <= 1.0 + 1e-9 and np.abs(sent[0]).max() <= 1.0 + 1e-9
    assert driver.refused == 4 * 120
    assert np.array_equal(sent[-1], sent[240 - 1])  # the last good one again


def test_gravity_is_the_drivers_affair(panda: Robot) -> None:
    driver = Compensating(panda)
    driver.start(act=True)
    gravity = RigidBody(panda).gravity(panda.home)
    assert driver.read().torque == pytest.approx(gravity)
    driver.write(Command(torque=gravity + 0.5))
    assert driver.sent[-1] == pytest.approx(np.full(7, 0.5))
    driver.position = np.full(7, np.nan)  # the last good position's gravity stands
    assert driver.read().torque == pytest.approx(gravity)
    driver.write(Command(torque=np.full(7, np.nan)))
    assert driver.sent[-1] == pytest.approx(np.full(7, 0.5))


def test_a_free_base_is_refused() -> None:
    with pytest.raises(RetorqueError, match="free base"):
        Remembering(Robot.load("g1"))


def test_a_robot_without_torque_limits_is_driven_all_the_same(panda: Robot) -> None:
    links = tuple(
        link if link.joint is None else replace(link, joint=replace(link.joint, torque_limit=np.inf))
        for link in panda.links
    )
    driver = Remembering(panda.with_links(links))
    driver.start(act=True)
    driver.write(Command(torque=np.full(7, 0.9)))
    assert driver.sent[-1] == pytest.approx(np.full(7, 0.9))
