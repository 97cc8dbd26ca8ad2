"""Velocity that is lacking is fed back where corrections are sent, and nowhere else."""

from __future__ import annotations

import numpy as np

from retorque.adapt import make
from retorque.adapt.default.adapter import Default
from retorque.adapt.default.velocity_feedback import ACTS, ANEW, COUNTS, MEMORY, MOST, STIFF, VelocityFeedback
from retorque.loop.loop import Loop, run
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask

Z1 = Robot.load("z1")
DT = 1e-3
UNIT = np.ones(6)
ALLOWED = np.full((1, 1), ACTS)
WANTED = np.array([[0.4, 0.0, -0.2, 0.0, 0.1, 0.0]])
"""An acceleration that the robot never shows [rad/s²]."""


def stuck(sent: np.ndarray, ticks: int, allowed: np.ndarray = ALLOWED) -> VelocityFeedback:
    """A robot that does not move, asked for 2 N·m more than its nominal torque, and reports what was sent."""
    feedback = VelocityFeedback(Z1, 1, DT, UNIT)
    nominal = RigidBody(Z1).gravity(Z1.home)[None]
    for tick in range(ticks):
        feedback.observe(State(tick * DT, Z1.home[None], np.zeros((1, 6)), nominal + sent), allowed)
        feedback.expect(WANTED, nominal, nominal + 2.0)
    return feedback


def test_what_is_lacking_is_fed_back_up_to_a_bound() -> None:
    little = stuck(np.full((1, 6), 2.0), 101).torque
    least = VelocityFeedback(Z1, 1, DT, UNIT).gain
    share = little[WANTED != 0.0] / (0.1 * least * WANTED)[WANTED != 0.0]  # a joint is soon known not to ring
    assert (share > 1.0).all() and (share < STIFF).all()
    much = stuck(np.full((1, 6), 2.0), round(8 * MEMORY / DT)).torque
    np.testing.assert_allclose(much, np.clip(STIFF * MEMORY * least * WANTED, -MOST, MOST), rtol=0.01)


def test_nothing_is_fed_back_where_corrections_are_not_sent() -> None:
    watched = stuck(np.zeros((1, 6)), 600)
    assert not watched.torque.any()
    half = np.array([[2.0, 2.0, 2.0, 0.0, 0.0, 0.0]])  # three joints are cut off
    torque = stuck(half, 400).torque[0]
    assert (torque[[0, 2]] != 0.0).all() and not torque[3:].any()


def test_nothing_is_fed_back_where_it_may_be_a_touch() -> None:
    assert not stuck(np.full((1, 6), 2.0), 400, allowed=np.full((1, 1), ANEW)).torque.any()


def test_what_was_only_counted_is_made_good_later() -> None:
    sent, counts = np.full((1, 6), 2.0), np.full((1, 1), COUNTS)
    counted, nominal = stuck(sent, 100, counts), RigidBody(Z1).gravity(Z1.home)[None]
    assert not counted.torque.any()
    counted.observe(State(0.1, Z1.home[None], np.zeros((1, 6)), nominal + sent), ALLOWED)
    np.testing.assert_array_equal(counted.torque, stuck(sent, 101).torque)


def test_reports_that_are_not_finite_change_nothing_for_long() -> None:
    feedback = stuck(np.full((1, 6), 2.0), 100)
    nominal = RigidBody(Z1).gravity(Z1.home)[None]
    for tick in range(100, 120):
        bad = np.full((1, 6), np.nan)
        feedback.observe(State(tick * DT, bad, bad, bad), ALLOWED)
        feedback.expect(bad, nominal, nominal + 2.0)
        assert not feedback.torque.any()
    feedback.observe(State(0.12, Z1.home[None], np.zeros((1, 6)), nominal + 2.0), ALLOWED)
    assert np.isfinite(feedback.torque).all()


def test_a_robot_that_is_watched_is_corrected_as_if_without_feedback() -> None:
    """In shadow mode the corrections are scored: a velocity that nobody made up for must not be among them."""
    task = TrackingTask(Robot.load("panda"), TrackingSettings(trials=2, seed=1000, duration=2.0, noise=True))
    adapter = make("default", task.robot, 2)
    assert isinstance(adapter, Default)
    shadow = Supervisor(adapter, SupervisorSettings(shadow=True))
    loop = Loop(task.target(threads=1), task.reference, task.controller(), shadow)
    largest = np.zeros((2, 7))
    for _ in range(2000):
        loop.tick()
        if loop.plant.read().time > 0.5:
            largest = np.maximum(largest, np.abs(adapter._feedback.torque) / adapter.unit)
    assert np.median(largest) < 0.1


def test_a_gap_begins_anew() -> None:
    adapter = make("default", Z1, 1)
    assert isinstance(adapter, Default)
    sent = nominal = np.zeros((1, 6))
    for tick in [*range(50), 80]:
        state = State(tick * DT, Z1.home[None], np.zeros((1, 6)), sent)
        adapter.observe(state)
        if tick == 49:
            assert adapter._feedback.torque.any()
        sent = adapter.correct(state, nominal)
    assert not adapter._feedback.torque.any()


def test_it_follows_the_ideal_robot_more_closely_than_without() -> None:
    task = TrackingTask(Robot.load("panda"), TrackingSettings(trials=3, seed=1001, duration=4.0, noise=True))
    ideal = run(Loop(task.ideal(threads=1), task.reference, task.controller()), 4.0)
    errors = []
    for gain in (None, 0.0):
        adapter = make("default", task.robot, 3)
        assert isinstance(adapter, Default)
        if gain is not None:
            adapter._feedback.gain = adapter._feedback.gain * gain
        done = run(Loop(task.target(threads=1), task.reference, task.controller(), Supervisor(adapter)), 4.0)
        errors.append(np.sqrt(np.mean((done.position - ideal.position)[-200:] ** 2)))
    assert errors[0] < 0.75 * errors[1]
