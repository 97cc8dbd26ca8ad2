"""Noise, delays and pulses."""

from __future__ import annotations

import numpy as np

from retorque.physics.default_profile import profile_of
from retorque.robots.robot import Robot
from retorque.simulate.pulses import Pulses
from retorque.simulate.sensors import Sensors, SensorSettings

PANDA = Robot.load("panda")


def test_noise_has_the_level_it_says() -> None:
    settings = SensorSettings(
        position_noise=np.array([1e-3, 0.0]),
        velocity_noise=np.array([1e-2, 2e-2]),
        velocity_delay=np.zeros(2, dtype=int),
        torque_delay=np.zeros(2, dtype=int),
    )
    sensors = Sensors(settings, 7, seed=0)
    zero = np.zeros((2, 7))
    states = [sensors.read(0.0, zero, zero, zero) for _ in range(3000)]
    position, velocity = np.stack([s.position for s in states]), np.stack([s.velocity for s in states])
    np.testing.assert_allclose(position.std(axis=(0, 2)), [1e-3, 0.0], rtol=0.03)
    np.testing.assert_allclose(velocity.std(axis=(0, 2)), [1e-2, 2e-2], rtol=0.03)
    assert np.abs(velocity.mean(axis=(0, 2))).max() < 5e-4


def test_delays_are_whole_ticks_a_trial() -> None:
    delays = np.array([0, 1, 3])
    settings = SensorSettings(
        position_noise=np.zeros(3), velocity_noise=np.zeros(3), velocity_delay=delays, torque_delay=delays[::-1].copy()
    )
    sensors = Sensors(settings, 2, seed=0)
    for tick in range(1, 20):
        now = np.full((3, 2), float(tick))
        state = sensors.read(0.0, now, now, now)
        np.testing.assert_array_equal(state.position, now)
        np.testing.assert_array_equal(state.velocity[:, 0], np.maximum(tick - delays, 0))
        np.testing.assert_array_equal(state.torque[:, 0], np.maximum(tick - delays[::-1], 0))


def test_a_report_does_not_change_afterwards_and_reset_repeats_the_noise() -> None:
    sensors = Sensors(SensorSettings.sample(profile_of(PANDA), 4, 0), 7, seed=5)
    zero = np.zeros((4, 7))
    first = sensors.read(0.0, zero, zero, zero)
    kept = first.velocity.copy()
    for _ in range(10):
        sensors.read(0.0, zero, zero + 1.0, zero)
    np.testing.assert_array_equal(first.velocity, kept)
    sensors.reset(zero)
    np.testing.assert_array_equal(sensors.read(0.0, zero, zero, zero).velocity, kept)


def test_pulses_are_smooth_finite_in_time_and_of_the_size_asked_for() -> None:
    pulses = Pulses.sample(PANDA, 100, 16.0, 0)
    assert pulses.start.shape == (100, 5)
    assert np.all((pulses.duration >= 0.08) & (pulses.duration <= 0.8))
    assert np.all((pulses.start >= 0.0) & (pulses.start + pulses.duration <= 16.0))
    share = pulses.torque / PANDA.torque_limit
    np.testing.assert_allclose(share.std(axis=(0, 1)), 0.15, rtol=0.1)
    times = np.arange(0.0, 4.0, 1e-3)
    values = np.stack([pulses.at(t) for t in times])
    assert np.abs(np.diff(values, axis=0)).max() < 0.2 * np.abs(values).max()
    one = Pulses(start=np.array([[1.0]]), duration=np.array([[0.5]]), torque=np.full((1, 1, 7), 3.0))
    np.testing.assert_allclose(one.at(1.25), 3.0)
    assert not one.at(0.999).any() and not one.at(1.501).any()
