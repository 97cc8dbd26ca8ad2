"""The tracking experiment: what is hidden, what is asked for, and what happens while it runs."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.control.joint_impedance import JointImpedance
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask, fixed_base, gains
from retorque.work.errors import RetorqueError

PANDA, Z1 = Robot.load("panda"), Robot.load("z1")


def task(**settings) -> TrackingTask:
    return TrackingTask(Z1, TrackingSettings(**{"trials": 4, "duration": 2.0, **settings}))


def test_the_same_seed_is_the_same_world_and_another_is_another() -> None:
    one, same, other = task(seed=3), task(seed=3), task(seed=4)
    np.testing.assert_array_equal(one.parameters.flatten(), same.parameters.flatten())
    np.testing.assert_array_equal(one.reference.at(0.7).position, same.reference.at(0.7).position)
    assert np.abs(one.parameters.flatten() - other.parameters.flatten()).max() > 1e-3
    assert np.abs(one.reference.at(0.7).position - other.reference.at(0.7).position).max() > 1e-3


def test_noise_and_contact_change_nothing_else() -> None:
    """The same robots do the same motions, whatever is switched on."""
    plain, noisy, pushed = task(), task(noise=True), task(contact=True)
    for other in (noisy, pushed):
        np.testing.assert_array_equal(plain.parameters.flatten(), other.parameters.flatten())
        np.testing.assert_array_equal(plain.reference.at(0.5).position, other.reference.at(0.5).position)
    assert plain.pulses is None and pushed.pulses is not None
    assert np.all(plain.sensors.position_noise == 0.0) and np.all(noisy.sensors.position_noise > 0.0)


def test_nothing_hidden_is_the_ideal_robot() -> None:
    hidden = task(nothing_hidden=True).parameters
    np.testing.assert_array_equal(hidden.flatten(), Parameters.ideal(Z1, 4).flatten())


def test_robots_start_where_the_motion_does_and_at_rest() -> None:
    world = task(noise=True)
    for target in (world.target(threads=1), world.ideal(threads=1)):
        np.testing.assert_allclose(target.position, world.reference.at(0.0).position)
        assert np.all(target.velocity == 0.0)


def test_speeds_are_the_same_at_any_duration() -> None:
    """A shorter trial has fewer cycles, not faster ones."""
    short, long = (TrackingTask(Z1, TrackingSettings(trials=200, duration=d)).reference for d in (4.0, 16.0))
    rates = [2.0 * np.pi * r.cycles / r.duration for r in (short, long)]
    np.testing.assert_allclose(np.mean(rates[0]), np.mean(rates[1]), rtol=1e-9)


def test_the_payload_comes_in_the_middle() -> None:
    world = task(payload_step=1.5)
    target = world.target(threads=1)
    before = target.parameters.payload_mass.copy()
    events = world.events(target)
    for tick in (0, 500, 999):
        events(tick)
        np.testing.assert_array_equal(target.parameters.payload_mass, before)
    events(1000)
    np.testing.assert_allclose(target.parameters.payload_mass, before + 1.5)
    events(1001)
    np.testing.assert_allclose(target.parameters.payload_mass, before + 1.5)


def test_pulses_push_the_ideal_robot_as_well() -> None:
    world = task(contact=True)
    target = world.ideal(threads=1)
    push = world.pushes(target)
    pulses = world.pulses
    assert pulses is not None
    middle = float(pulses.start[0, 0] + 0.5 * pulses.duration[0, 0])
    push(round(middle / target.timestep))
    np.testing.assert_allclose(target._external, pulses.at(round(middle / 1e-3) * 1e-3))


def test_part_is_those_trials() -> None:
    whole = task(noise=True, contact=True)
    part = whole.part(slice(1, 3))
    assert part.settings.trials == 2
    np.testing.assert_array_equal(part.parameters.flatten(), whole.parameters.flatten()[1:3])
    np.testing.assert_array_equal(part.sensors.velocity_delay, whole.sensors.velocity_delay[1:3])
    assert part.pulses is not None and part.pulses.torque.shape[0] == 2
    assert whole.settings.trials == 4  # the whole is as it was


def test_controller_has_the_profiles_gains() -> None:
    controller = TrackingTask(PANDA, TrackingSettings(trials=1, duration=1.0)).controller()
    profile = profile_of(PANDA)
    assert isinstance(controller, JointImpedance)
    np.testing.assert_array_equal(controller.stiffness, profile.tracking_stiffness)
    np.testing.assert_array_equal(controller.damping, profile.tracking_damping)
    stiffness, damping = gains(Z1, profile_of(Z1))
    assert stiffness.shape == damping.shape == (6,) and np.all(damping > 0.0)


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(RetorqueError, match="at least 1 trial"):
        task(trials=0)
    with pytest.raises(RetorqueError, match="free base"):
        TrackingTask(Robot.load("g1"), TrackingSettings())
    with pytest.raises(RetorqueError, match="lugre"):
        task(effect="lugree").target()
    assert fixed_base(Z1) is Z1
