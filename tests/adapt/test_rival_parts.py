"""Rivals and particles against closed forms: what is lacking, how fast it is found, where it is bounded."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from retorque.adapt import make
from retorque.adapt.ideal_velocity import IdealVelocity, joint_inertia
from retorque.adapt.particle.adapter import Particle, ParticleSettings
from retorque.adapt.particle.one_step import OneStep, Window
from retorque.adapt.rivals.integral import Integral, IntegralSettings
from retorque.adapt.rivals.observer import Observer, ObserverSettings
from retorque.physics.actuator import DEAD_ZONE_SLOPE
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State

DT = 1e-3
Z1 = Robot.load("z1")
BODY = RigidBody(Z1)


def standing(trials: int = 1, time: float = 0.0, speed: float = 0.0) -> State:
    still = np.zeros((trials, 6))
    return State(time, Z1.home + still, speed + still, BODY.gravity(Z1.home) + still)


def test_nothing_is_lacking_where_the_robot_is_ideal() -> None:
    """Reports of the ideal robot, integrated as the tick integrates: whatever it is told to do, it does."""
    rng = np.random.default_rng(0)
    ideal = IdealVelocity(Z1, 2, DT, memory=1.0)
    q, qd = Z1.home + 0.1 * rng.standard_normal((2, 6)), np.zeros((2, 6))
    for tick in range(200):
        state = State(tick * DT, q, qd, np.zeros((2, 6)))
        assert np.max(np.abs(ideal.observe(state))) < 1e-12
        torque = BODY.inverse_dynamics(q, qd, 2.0 * np.sin(0.05 * tick) * np.ones((2, 6)))
        qd = qd + DT * ideal.command(state, torque)
        q = q + DT * qd


def test_what_is_lacking_grows_with_the_acceleration_and_is_forgotten_with_the_memory() -> None:
    ideal = IdealVelocity(Z1, 1, DT, memory=0.2)
    ideal.observe(standing())
    wanted = np.array([0.5, 0.0, -0.3, 0.0, 0.2, 0.0])
    torque = BODY.inverse_dynamics(Z1.home[None], np.zeros((1, 6)), wanted[None])
    missing = np.zeros((1, 6))
    for tick in range(1, 2001):
        ideal.command(standing(), torque)
        missing = ideal.observe(standing(time=tick * DT))
        if tick == 1:
            np.testing.assert_allclose(missing[0], DT * wanted, atol=1e-12)
    np.testing.assert_allclose(missing[0], 0.2 * wanted, rtol=1e-2, atol=1e-9)  # acceleration times memory
    kept = ideal.hold(missing, np.full(6, 0.01))
    np.testing.assert_allclose(kept[0], np.clip(missing[0], -0.01, 0.01))
    assert np.all(np.abs(ideal.velocity[0]) <= 0.01 + 1e-12)  # no more than that is stored up


def test_a_report_that_is_not_finite_lacks_nothing_and_stays_in_its_trial() -> None:
    ideal = IdealVelocity(Z1, 2, DT, memory=1.0)
    ideal.observe(standing(2))
    for tick in range(1, 40):
        bad = standing(2, tick * DT)
        bad.velocity[0, 3] = np.nan
        missing = ideal.observe(bad)
        assert not missing[0].any() and np.all(np.isfinite(missing))
        with np.errstate(invalid="ignore"):
            ideal.command(bad, bad.torque)
    assert np.max(np.abs(ideal.observe(standing(2, 0.04)))) < 1e-3


@pytest.mark.parametrize("name", ("panda", "z1", "ur10e", "piper"))
def test_a_joints_inertia_is_the_mass_matrix_with_the_middle_rotor(name: str) -> None:
    robot = Robot.load(name)
    profile = profile_of(robot)
    middle = 0.5 * (profile.armature_min + profile.armature_max)
    matrix = RigidBody(robot, armature=middle).mass_matrix(robot.home)
    np.testing.assert_allclose(joint_inertia(robot), np.diagonal(matrix), atol=1e-9)


def test_the_integral_grows_evenly_up_to_its_bound_and_not_beyond() -> None:
    s = IntegralSettings(proportional=0.0 + 1e-9, integral=800.0, memory=1e9, share=0.1)
    adapter = Integral(Z1, 1, DT, settings=s)
    bound = s.share * np.minimum(Z1.torque_limit, 1e3)
    wanted = np.full(6, 0.1)
    torque = BODY.inverse_dynamics(Z1.home[None], np.zeros((1, 6)), wanted[None])
    added = []
    for tick in range(3000):
        adapter.observe(standing(time=tick * DT))
        added.append(adapter.correct(standing(), torque)[0] - torque[0])
    growth = 0.5 * 800.0 * joint_inertia(Z1) * wanted * (100 * DT) ** 2  # twice integrated over a tenth of a second
    np.testing.assert_allclose(added[100], growth, rtol=0.03)
    np.testing.assert_allclose(added[-1], bound, rtol=1e-9)
    assert np.all(np.abs(added) <= bound + 1e-12)


@pytest.mark.parametrize("bandwidth", (20.0, 100.0))
def test_the_observer_finds_a_push_as_fast_as_its_bandwidth(bandwidth: float) -> None:
    """A robot that is held still by a push: r = d (1 - (1 - k dt)^ticks)."""
    adapter = Observer(Z1, 1, DT, settings=ObserverSettings(bandwidth=bandwidth, share=1.0))
    push = np.array([1.0, -2.0, 0.5, 0.2, -0.1, 0.05])
    found = []
    for tick in range(120):
        state = standing(time=tick * DT)
        state.torque -= push
        adapter.observe(state)
        found.append(adapter.disturbance[0].copy())
    wanted = push * (1.0 - (1.0 - bandwidth * DT) ** np.arange(120))[:, None]
    np.testing.assert_allclose(found, wanted, atol=1e-9)
    np.testing.assert_allclose(adapter.correct(standing(), np.zeros((1, 6)))[0], -found[-1])


@pytest.mark.parametrize("name", ("observer", "integral", "adaptive"))
def test_on_the_ideal_robot_nothing_is_added(name: str) -> None:
    adapter = make(name, Z1, 1)
    q, qd, largest = Z1.home[None] + 0.0, np.zeros((1, 6)), 0.0
    torque = BODY.gravity(q)
    for tick in range(150):
        state = State(tick * DT, q, qd, torque)
        adapter.observe(state)
        torque = BODY.inverse_dynamics(q, qd, 0.5 * np.cos(0.02 * tick) * np.ones((1, 6)))
        largest = max(largest, float(np.max(np.abs(adapter.correct(state, torque) - torque))))
        qd = qd + DT * BODY.forward_dynamics(q, qd, torque)
        q = q + DT * qd
    assert largest < 0.05 * float(np.max(np.abs(torque)))


def predicted_change(p: Parameters, q: np.ndarray, qd: np.ndarray, command: np.ndarray) -> np.ndarray:
    """The integrator's step, with losses implicit, written down once more from the parameters' definitions."""
    pick = lambda pair, sign: np.where(sign >= 0.0, pair[..., 0], pair[..., 1])  # noqa: E731
    loaded = RigidBody(Z1, inertial=p.total_inertial(Z1), armature=p.armature)
    width = pick(p.dead_zone, command)
    scaled = pick(p.torque_scale, command) * command
    driven = np.where(
        np.abs(scaled) <= width, DEAD_ZONE_SLOPE * scaled, scaled - np.sign(command) * (1.0 - DEAD_ZONE_SLOPE) * width
    )
    viscous, amplitude = pick(p.viscous, qd), pick(p.friction_amplitude, qd)
    slope, shift = pick(p.friction_slope, qd), pick(p.friction_shift, qd)
    value = expit(slope * (qd + shift))
    loss = viscous * qd + amplitude * (value - expit(slope * shift))
    force = driven + pick(p.torque_bias, qd) - loss - loaded.bias(q, qd)
    implicit = np.diag(viscous + amplitude * slope * value * (1.0 - value))
    return DT * np.linalg.solve(loaded.mass_matrix(q) + DT * implicit, force)


def test_a_particles_prediction_is_the_step_written_out() -> None:
    filter = Particle(Z1, 1, settings=ParticleSettings(particles=8))
    candidates = filter.selection.apply(
        np.random.default_rng(0).uniform(filter.selection.lower, filter.selection.upper, (8, filter.selection.size))
    )
    rng = np.random.default_rng(1)
    q, qd = Z1.home + 0.2 * rng.standard_normal((5, 6)), 0.5 * rng.standard_normal((5, 6))
    command, measured = 4.0 * rng.standard_normal((5, 6)), 0.01 * rng.standard_normal((5, 6))
    error = OneStep(Z1, DT).error(Window(q, qd, command, measured), candidates)
    for t in range(5):
        for k in range(8):
            wanted = predicted_change(candidates[k], q[t], qd[t], command[t]) - measured[t]
            np.testing.assert_allclose(error[:, t, k], wanted, atol=5e-6)


def test_particles_come_to_predict_a_robot_that_they_do_not_know() -> None:
    """One-step data of a hidden candidate: their mean predicts its steps better than the middle of the ranges."""
    s = ParticleSettings(particles=256, temperature=0.05, relative=True)
    filter = Particle(Z1, 1, seed=3, settings=s)
    low, high = filter.selection.lower, filter.selection.upper
    rng = np.random.default_rng(6)
    true = filter.selection.apply(rng.uniform(low, high, (1, len(low))))
    step = OneStep(Z1, DT)
    q, qd, command = Z1.home[None] + 0.0, np.zeros((1, 6)), BODY.gravity(Z1.home[None])
    for tick in range(700):
        filter.observe(State(tick * DT, q, qd, command))
        if tick % 50 == 49:
            belief = filter.learn()
            assert belief is not None
            filter.adopt(belief)
        pull = 3.0 * (Z1.home - q) - 0.5 * qd + 6.0 * np.sin(0.03 * tick + np.arange(6.0))
        command = BODY.gravity(q) + pull + rng.standard_normal((1, 6))
        qd = qd + step.error(Window(q, qd, command, np.zeros((1, 6))), true)[:, 0, 0]
        q = q + DT * qd
    position, velocity, torque = filter.history.last(s.window)[:, :, 0]
    seen = Window(position[:-1], velocity[:-1], torque[1:], np.diff(velocity, axis=0))
    middle = filter.selection.apply(0.5 * (low + high)[None])
    after, before = (np.std(step.error(seen, p)) for p in (filter.estimate, middle))
    assert after < 0.75 * before
    assert 1.0 <= filter.effective_sample_size[0] <= 256.0 and filter.resamplings[0] > 5
