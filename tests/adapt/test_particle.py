"""The particle filter: its predictions are the simulator's, it learns, and it leaves out what it cannot use."""

import numpy as np
import pytest

from retorque.adapt.direct import Direct
from retorque.adapt.particle.adapter import Particle, ParticleSettings, SharpParticle
from retorque.adapt.particle.one_step import OneStep, Window
from retorque.loop.health import Health
from retorque.loop.learner import InlineLearner
from retorque.loop.loop import Loop, run
from retorque.physics.parameters import Parameters
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.errors import RetorqueError


@pytest.mark.parametrize("name", ["panda", "z1"])
def test_predictions_are_the_simulators_steps(name):
    robot = Robot.load(name)
    particle = Particle(robot, 1, settings=ParticleSettings(particles=64))
    candidates = particle._candidates(particle._unit[0])
    target = Target(robot, Parameters.unflatten(robot, candidates.flatten().astype(float)), threads=1)
    rng = np.random.default_rng(3)
    q = robot.home + rng.uniform(-0.3, 0.3, (4, robot.n))
    qd = rng.uniform(-1.0, 1.0, (4, robot.n)) * 10.0 ** rng.uniform(-3.0, 0.0, (4, 1))
    command = rng.uniform(-0.3, 0.3, (4, robot.n)) * robot.torque_limit
    predicted = OneStep(robot, 1e-3).error(Window(q, qd, command, np.zeros_like(q)), candidates)
    for k in range(4):
        target.reset(q[k], qd[k])
        target.write(Command(torque=np.broadcast_to(command[k], (64, robot.n))))
        np.testing.assert_allclose(predicted[:, k].T, target.velocity - qd[k], atol=3e-6)


def test_it_brings_the_robot_closer_to_the_model():
    task = TrackingTask(Robot.load("panda"), TrackingSettings(trials=2, seed=1001, duration=6.0))
    ideal = run(Loop(task.ideal(threads=1), task.reference, task.controller()), 6.0).position

    def error(adapter):
        moved = run(Loop(task.target(threads=1), task.reference, task.controller(), adapter), 6.0).position
        return np.sqrt(np.mean((moved - ideal) ** 2))

    direct = error(Direct(task.robot, 2))
    published, sharp = Particle(task.robot, 2, seed=1), SharpParticle(task.robot, 2, seed=1)
    assert error(published) < 0.8 * direct
    assert error(sharp) < 0.5 * direct
    # The published likelihood is almost flat; the sharp one resamples at nearly every update.
    assert np.all(published.resamplings < 10) and np.all(sharp.resamplings > 50)
    assert np.all((sharp.effective_sample_size >= 1.0) & (sharp.effective_sample_size <= 512.0))
    assert sharp.update_milliseconds > 0.0
    chosen = sharp.selection
    estimate = chosen.to_vector(sharp.estimate)
    assert np.all(estimate >= chosen.lower - 1e-5) and np.all(estimate <= chosen.upper + 1e-5)


def _feed(particle, ticks, spoil=None):
    robot, rng, learner = particle.robot, np.random.default_rng(0), InlineLearner(particle)
    for k in range(ticks):
        shape = (particle.trials, robot.n)
        state = State(k * 1e-3, robot.home + np.zeros(shape), 0.1 * rng.standard_normal(shape), np.zeros(shape))
        if spoil is not None:
            spoil(k, state)
        particle.observe(state)
        learner.turn()


def test_same_seed_same_estimate_and_reset_forgets():
    robot = Robot.load("z1")
    one, two = (SharpParticle(robot, 1, seed=4, settings=ParticleSettings(particles=32)) for _ in range(2))
    fresh = one.estimate.flatten()
    _feed(one, 201)
    _feed(two, 201)
    np.testing.assert_array_equal(one.estimate.flatten(), two.estimate.flatten())
    assert not np.allclose(one.estimate.flatten(), fresh)
    one.reset()
    np.testing.assert_array_equal(one.estimate.flatten(), fresh)


def test_samples_that_are_not_finite_are_left_out_and_coded():
    robot = Robot.load("z1")
    particle = SharpParticle(robot, 2, seed=4, settings=ParticleSettings(particles=32))
    fresh = particle.estimate.flatten()

    def spoil(k, state):
        state.velocity[1, k % robot.n] = np.nan

    _feed(particle, 201, spoil)
    assert particle.health[0] == Health.OK and particle.health[1] == Health.SKIPPED
    np.testing.assert_array_equal(particle.estimate.flatten()[1], fresh[1])
    assert not np.allclose(particle.estimate.flatten()[0], fresh[0])


def test_samples_after_a_gap_in_time_are_left_out():
    robot = Robot.load("z1")
    particle = SharpParticle(robot, 1, seed=4, settings=ParticleSettings(particles=32))

    def spoil(k, state):
        state.time *= 7.0

    _feed(particle, 201, spoil)
    assert particle.health[0] == Health.SKIPPED
    assert particle.resamplings[0] == 0


def test_settings_that_make_no_filter_are_refused():
    with pytest.raises(RetorqueError, match="particle filter"):
        Particle(Robot.load("z1"), 1, settings=ParticleSettings(particles=1))
