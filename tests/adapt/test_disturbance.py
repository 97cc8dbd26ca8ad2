"""A disturbance that lasts is followed; one that the correction itself shakes up is let go."""

from __future__ import annotations

import numpy as np

from retorque.adapt import make
from retorque.adapt.recursive.disturbance import Disturbance
from retorque.control.joint_impedance import JointImpedance
from retorque.control.windowed_sines import WindowedSines
from retorque.loop.loop import Loop
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.robots.robot import Robot
from retorque.simulate.stand_in import StandIn


def disturbance() -> Disturbance:
    return Disturbance(np.ones(2), 1, 0.01, 4, 0.3, 0.15, 1.0, 0.012)


def test_what_lasts_is_followed_and_what_alternates_is_not() -> None:
    """Every fourth residual agrees in both joints; in the second each is the opposite of the one before."""
    found = disturbance()
    for k in range(100):
        found.learn(np.array([[1.0, 1.0 - 2.0 * (k % 2)]]), np.array([True]))
    assert found.torque[0, 0] > 0.9
    assert abs(found.torque[0, 1]) < 0.05 and found.lasting[0, 1] == 0.0
    for _ in range(200):
        found.learn(np.array([[1.0, 1.0]]), np.array([True]))
    assert found.torque[0, 1] > 0.8  # and it is followed again once it lasts


def test_trials_that_are_not_used_learn_nothing() -> None:
    found = disturbance()
    for _ in range(50):
        found.learn(np.ones((1, 2)), np.array([False]))
    assert np.all(found.torque == 0.0) and np.allclose(found.lasting, 0.09)


def test_a_flexible_joint_is_not_shaken_at_the_rate_of_the_updates() -> None:
    """Its rotor swings at 50 Hz, half the rate of the updates: the correction used to drive it until it ran away."""
    panda, trials = Robot.load("panda"), 2
    profile = profile_of(panda)
    arm = StandIn(panda, trials, seed=1, noise_seed=1)
    reference = WindowedSines.sample(panda.home, profile.tracking_amplitude, trials, 8.0, 77_001, cycles=(1.5, 3.5))
    stiffness = profile.tracking_stiffness
    damping = critical_damping(panda, stiffness) if profile.tracking_damping is None else profile.tracking_damping
    arm.reset(reference.at(0.0).position)
    loop = Loop(arm, reference, JointImpedance(panda, stiffness, damping), make("recursive", panda, trials))
    velocity = np.array([loop.tick().state.velocity for _ in range(900)])
    assert np.max(np.abs(np.diff(velocity[600:], axis=0))) < 0.1  # [rad/s]; 2 before
