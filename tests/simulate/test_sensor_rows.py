"""Sensors and pulses of a batch: rows apart, seeds, and what a report may not share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.simulate.pulses import Pulses
from retorque.simulate.sensors import Sensors, SensorSettings
from retorque.simulate.servo import Servo

ARM = Robot.load("panda")
N = ARM.n


def delays(velocity: list[int], torque: list[int]) -> SensorSettings:
    none = np.zeros(len(velocity))
    return SensorSettings(
        position_noise=none, velocity_noise=none, velocity_delay=np.array(velocity), torque_delay=np.array(torque)
    )


@settings(max_examples=25, deadline=None)
@given(
    velocity=st.lists(st.integers(0, 7), min_size=2, max_size=4),
    torque=st.integers(0, 7),
    ticks=st.integers(10, 25),
)
def test_every_row_is_late_by_its_own_ticks(velocity: list[int], torque: int, ticks: int) -> None:
    rows = len(velocity)
    sensors = Sensors(delays(velocity, [torque] * rows), N, 0)
    for tick in range(ticks):
        true = np.full((rows, N), float(tick))
        state = sensors.read(tick * 1e-3, true, true, true)
    np.testing.assert_array_equal(state.position, ticks - 1.0)
    np.testing.assert_array_equal(state.velocity[:, 0], ticks - 1.0 - np.array(velocity))
    np.testing.assert_array_equal(state.torque, ticks - 1.0 - torque)


def test_a_late_velocity_was_there_before_the_first_tick_and_a_torque_was_not() -> None:
    sensors = Sensors(delays([3, 3], [3, 3]), N, 0)
    sensors.reset(np.full((2, N), 0.7))
    state = sensors.read(0.0, np.zeros((2, N)), np.zeros((2, N)), np.ones((2, N)))
    np.testing.assert_array_equal(state.velocity, 0.7)
    np.testing.assert_array_equal(state.torque, 0.0)


def test_one_robot_reads_as_the_row_of_a_batch() -> None:
    one = SensorSettings(
        position_noise=np.array(0.0), velocity_noise=np.array(0.0), velocity_delay=np.array(2), torque_delay=np.array(1)
    )
    alone, row = Sensors(one, N, 0), Sensors(delays([2], [1]), N, 0)
    rng = np.random.default_rng(0)
    for tick in range(8):
        q, v, u = rng.normal(size=(3, N))
        a, b = alone.read(tick * 1e-3, q, v, u), row.read(tick * 1e-3, q[None], v[None], u[None])
        for name in ("position", "velocity", "torque"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name)[0])


def test_a_number_repeats_its_noise_and_a_generator_goes_on() -> None:
    drawn = SensorSettings.sample(profile_of(ARM), 4, 1000)
    true = np.zeros((4, N))

    def first(sensors: Sensors) -> np.ndarray:
        sensors.reset(true)
        return sensors.read(0.0, true, true, true).position

    numbered, going = Sensors(drawn, N, 5), Sensors(drawn, N, np.random.default_rng(5))
    np.testing.assert_array_equal(first(numbered), first(numbered))
    assert not np.array_equal(first(going), first(going))
    assert not np.array_equal(first(numbered), first(Sensors(drawn, N, 6)))


def test_a_report_shares_no_memory_with_the_robot() -> None:
    sensors = Sensors(SensorSettings.perfect(()), N, 0)
    q, v, u = np.zeros((3, N))
    state = sensors.read(0.0, q, v, u)
    for array in (q, v, u):
        array[:] = np.nan
    assert all(np.all(np.isfinite(x)) for x in (state.position, state.velocity, state.torque))
    state.velocity[:] = np.nan
    assert np.all(np.isfinite(sensors.read(1e-3, *np.zeros((3, N))).velocity))


@pytest.mark.parametrize("name", ["panda", "z1", "leap_hand"])
def test_pulses_are_those_of_their_seed_within_their_time_and_share(name: str) -> None:
    robot = Robot.load(name)
    pulses, again, other = (Pulses.sample(robot, 5, 4.0, seed) for seed in (1000, 1000, 1001))
    np.testing.assert_array_equal(pulses.at(1.0), again.at(1.0))
    assert not np.array_equal(pulses.torque, other.torque)
    assert np.all(pulses.start >= 0.0) and np.all(pulses.start + pulses.duration <= 4.0)
    for outside in (-0.1, 0.0, 4.0, 9.0):
        np.testing.assert_allclose(pulses.at(outside), 0.0, atol=1e-12)
    limit = np.where(np.isfinite(robot.torque_limit), robot.torque_limit, 50.0)
    assert np.all(np.abs(pulses.torque) <= 1.5 * 0.15 * limit)
    path = np.array([pulses.at(t) for t in np.arange(0.0, 4.0, 1e-3)])
    assert np.max(np.abs(np.diff(path, axis=0)) / limit) < 5 * 0.225 * np.pi * 1e-3 / 0.08


def test_a_servo_pulls_within_its_limit_and_brakes_only_there() -> None:
    servo = Servo(stiffness=np.full(N, 100.0), damping=np.full(N, 5.0))
    limit = np.full(N, 20.0)
    error = np.linspace(-0.5, 0.5, N)
    torque, slope = servo.torque(error, 0.0, np.zeros(N), np.zeros(N), limit)
    np.testing.assert_allclose(torque, np.clip(100.0 * error, -20.0, 20.0))
    step = 1e-6
    fast = servo.torque(error, 0.0, np.zeros(N), np.full(N, step), limit)[0]
    np.testing.assert_allclose(slope, (torque - fast) / step, atol=1e-6)
    follow, _ = servo.torque(np.zeros(N), 0.3, np.zeros(N), np.full(N, 0.3), limit)
    np.testing.assert_array_equal(follow, 0.0)
