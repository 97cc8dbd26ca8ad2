"""The promise not to press harder, as a unit: when it holds, how far it lets a correction grow, and whose."""

from __future__ import annotations

import numpy as np
import pytest
from walls import ARMS

from retorque.loop.guard.contact_force import ContactForce, default_force
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot

ARM = Robot.load("panda")
MOST = 60.0
PERIOD = 0.01


def report(robot: Robot, trials: tuple[int, ...] = (), speed: float = 0.0) -> np.ndarray:
    """(3, ..., n) at home, moving so fast."""
    out = np.zeros((3, *trials, robot.n))
    out[0], out[1] = robot.home, speed
    return out


def windows(made: ContactForce, seen: np.ndarray, correction: np.ndarray, left: float = 0.0, count: int = 40) -> None:
    good = np.ones(correction.shape[:-1], dtype=bool)
    for _ in range(count):
        made.window(np.full(correction.shape, left), correction, seen, good)


def held(robot: Robot) -> ContactForce:
    """Of a robot that rests, as if something held it."""
    made = ContactForce(robot, (robot.n,), PERIOD, MOST)
    windows(made, report(robot), np.zeros(robot.n))
    return made


@pytest.mark.parametrize("name", ARMS)
def test_a_growth_at_the_hand_is_cut_to_the_promise(name: str) -> None:
    robot = Robot.load(name)
    made, body = held(robot), RigidBody(robot)
    assert made.engaged
    jacobian = body.jacobian(robot.end_effector, robot.home)[:3]
    rng = np.random.default_rng(0)
    for direction in rng.standard_normal((6, 3)):
        push = jacobian.T @ (10.0 * MOST * direction / np.linalg.norm(direction))
        cut = made.limited(push)
        force = np.linalg.lstsq(jacobian.T, cut, rcond=0.05)[0]  # without directions that the arm cannot push in
        assert np.linalg.norm(force) < MOST
        assert not made.kept(push) and np.linalg.norm(cut) < np.linalg.norm(push)


def test_small_growth_is_left_as_it_is() -> None:
    made, body = held(ARM), RigidBody(ARM)
    small = body.jacobian(ARM.end_effector, ARM.home)[:3].T @ np.array([0.1 * MOST, 0.0, 0.0])
    assert made.limited(small) is small
    assert made.kept(small) and made.kept(np.zeros(ARM.n))


@pytest.mark.parametrize("speed", [0.0, 0.3])
def test_the_quick_look_says_what_the_slow_one_does(speed: float) -> None:
    made, rng = ContactForce(ARM, (3, ARM.n), PERIOD, MOST), np.random.default_rng(1)
    windows(made, report(ARM, (3,), speed), np.zeros((3, ARM.n)), left=40.0)
    left, good = np.repeat([[40.0], [0.0], [40.0]], ARM.n, axis=1), np.ones(3, dtype=bool)
    for _ in range(60):  # the second robot is free again
        made.window(left, np.zeros((3, ARM.n)), report(ARM, (3,), 0.3), good)
    assert made.engaged.tolist() == [True, False, True]
    kept = []
    for size in np.geomspace(0.1, 100.0, 60):
        correction = size * rng.standard_normal((3, ARM.n))
        kept.append(made.kept(correction))
        assert kept[-1] == (made.limited(correction) is correction)
    assert any(kept) and not all(kept)
    correction[[0, 2]] = 0.0
    assert made.kept(correction)  # the free robot's own is none of its business


def test_a_free_robot_is_limited_in_nothing() -> None:
    made = ContactForce(ARM, (ARM.n,), PERIOD, MOST)
    huge = np.full(ARM.n, 1e3)
    windows(made, report(ARM, speed=0.5), huge)
    assert not made.active and made.kept(huge) and made.limited(huge) is huge


def test_what_a_free_robot_was_corrected_by_is_no_growth() -> None:
    """A learnt payload's torque is kept when the robot comes to rest."""
    made = ContactForce(ARM, (ARM.n,), PERIOD, MOST)
    learnt = np.linspace(5.0, 40.0, ARM.n)
    windows(made, report(ARM, speed=0.5), learnt, count=600)
    windows(made, report(ARM), learnt, count=100)
    assert made.active
    np.testing.assert_allclose(made.limited(learnt), learnt, atol=1e-6)


def test_torque_that_moves_nothing_engages_although_the_robot_moves() -> None:
    made = ContactForce(ARM, (ARM.n,), PERIOD, MOST)
    windows(made, report(ARM, speed=0.5), np.zeros(ARM.n), left=10.0)
    assert made.engaged
    bad = ContactForce(ARM, (ARM.n,), PERIOD, MOST)
    windows(bad, report(ARM, speed=0.5), np.zeros(ARM.n))
    for _ in range(40):
        bad.window(np.full(ARM.n, 10.0), np.zeros(ARM.n), report(ARM, speed=0.5), np.array(False))
    assert not bad.engaged  # windows that do not count say nothing


def test_robots_of_a_batch_are_promised_each_for_itself() -> None:
    made = ContactForce(ARM, (2, ARM.n), PERIOD, MOST)
    seen = report(ARM, (2,))
    seen[1, 1] = 0.5  # the second one moves
    windows(made, seen, np.zeros((2, ARM.n)))
    np.testing.assert_array_equal(made.engaged, [True, False])
    push = RigidBody(ARM).jacobian(ARM.end_effector, ARM.home)[:3].T @ np.array([0.0, 0.0, 500.0])
    cut = made.limited(np.stack([push, push]))
    np.testing.assert_array_equal(cut[1], push)
    np.testing.assert_allclose(cut[0], held(ARM).limited(push), atol=1e-9)


def test_without_a_promise_nothing_is_ever_cut_and_reset_lets_go() -> None:
    endless = ContactForce(ARM, (ARM.n,), PERIOD, np.inf)
    windows(endless, report(ARM), np.zeros(ARM.n), left=50.0)
    huge = np.full(ARM.n, 1e4)
    assert not endless.active and endless.limited(huge) is huge
    made = held(ARM)
    made.reset()
    assert not made.active and made.kept(huge)


@pytest.mark.parametrize("name", ARMS)
def test_the_default_promise_is_a_force_that_a_person_can_stand(name: str) -> None:
    assert 5.0 < default_force(Robot.load(name)) < 150.0


def test_a_load_that_was_carried_before_is_carried_in_other_poses_too() -> None:
    """An arm whose nominal torque is left over while it moves on is no arm that presses."""
    robot = Robot.load("iiwa14")
    made, body = ContactForce(robot, (robot.n,), PERIOD, MOST), RigidBody(robot)
    good, moving = np.array(True), np.full(robot.n, 0.3)

    def weight(position: np.ndarray) -> np.ndarray:
        return -3.0 * np.asarray(robot.gravity) @ body.jacobian(robot.end_effector, position)[:3]  # of three kilograms

    def at(angle: float) -> np.ndarray:
        return np.concatenate([[0.0, angle], np.zeros(robot.n - 2)])

    for angle in np.linspace(0.2, 0.6, 300):
        made.window(np.zeros(robot.n), weight(at(angle)), np.stack([at(angle), moving, moving]), good)
    assert not made.engaged
    for angle in np.linspace(0.6, -0.9, 200):
        made.window(np.full(robot.n, 40.0), weight(at(angle)), np.stack([at(angle), moving, moving]), good)
    assert made.engaged
    change = weight(at(-0.9)) - weight(at(0.6))
    assert np.abs(change).max() > 35.0  # [N·m]
    assert made.kept(weight(at(-0.9)))
    assert not made.kept(weight(at(0.6)) - change)  # what would be no load of three kilograms is still cut
