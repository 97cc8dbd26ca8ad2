"""The rivals: each removes a constant loss, is saved and goes on, serves one robot or many, at any rate."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import ADAPTERS, make
from retorque.adapt.rivals.observer import Observer, ObserverSettings
from retorque.control.joint_impedance import JointImpedance
from retorque.loop.adapter import Adapter
from retorque.physics.default_profile import critical_damping, profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.rigid_body import RigidBody
from retorque.robots.command import Command
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.work.errors import RetorqueError

ROBOT = Robot.load("panda")
RIVALS = ("observer", "adaptive", "integral")


class Bench:
    """A robot that follows slow sines under impedance, with a bias of -2 N·m and viscous friction on every joint."""

    def __init__(self, adapter: Adapter | None, timestep: float = 1e-3, hidden: bool = True):
        parameters = Parameters.ideal(ROBOT, 1)
        if hidden:
            parameters = replace(
                parameters, torque_bias=np.full((1, ROBOT.n, 2), -0.8), viscous=np.full((1, ROBOT.n, 2), 1.0)
            )
        self.target = Target(ROBOT, parameters, timestep=timestep, threads=1)
        stiffness = profile_of(ROBOT).tracking_stiffness
        self.controller = JointImpedance(ROBOT, stiffness, critical_damping(ROBOT, stiffness))
        self.adapter, self.tick, self.timestep = adapter, 0, timestep

    def step(self) -> np.ndarray:
        """One tick; the position error to the reference (n,)."""
        from retorque.control.action import JointAction

        time = self.tick * self.timestep
        rate = 1.0 + 0.2 * np.arange(ROBOT.n)
        q = ROBOT.home + 0.2 * (1.0 - np.cos(rate * time))
        action = JointAction(q[None], (0.2 * rate * np.sin(rate * time))[None])
        state = self.target.read()
        torque = self.controller.command(state, action).torque
        assert torque is not None
        if self.adapter is not None:
            self.adapter.observe(state)
            if self.adapter.learn_every and self.tick % self.adapter.learn_every == 0:
                belief = self.adapter.learn()
                if belief is not None:
                    self.adapter.adopt(belief)
            torque = self.adapter.correct(state, torque)
        self.target.write(Command(torque=torque))
        self.tick += 1
        return (self.target.position - q)[0]

    def error(self, duration: float, after: float = 0.0) -> float:
        """RMS of the error over a run [rad]."""
        errors = [self.step() for _ in range(round(duration / self.timestep))]
        return float(np.sqrt(np.mean(np.square(errors[round(after / self.timestep) :]))))


@pytest.mark.parametrize("name", RIVALS)
def test_each_follows_the_ideal_robot_far_better_than_nothing(name: str) -> None:
    alone, ideal = Bench(None).error(3.0, 1.0), Bench(None, hidden=False).error(3.0, 1.0)
    corrected = Bench(make(name, ROBOT, 1)).error(3.0, 1.0)
    assert corrected - ideal < 0.2 * (alone - ideal)


@pytest.mark.parametrize("name", RIVALS)
def test_other_rates(name: str) -> None:
    for timestep in (2e-3, 5e-3):
        alone = Bench(None, timestep).error(2.0, 1.0)
        adapter = make(name, ROBOT, 1, timestep=timestep)
        assert Bench(adapter, timestep).error(2.0, 1.0) < 0.6 * alone


@pytest.mark.parametrize("name", RIVALS)
def test_saved_and_loaded_it_goes_on_bit_for_bit(name: str, tmp_path: Path) -> None:
    bench = Bench(make(name, ROBOT, 1))
    bench.error(0.4)
    assert bench.adapter is not None
    bench.adapter.save(tmp_path / "memory")
    other = make(name, ROBOT, 1)
    other.load(tmp_path / "memory", mid_run=True)
    state = bench.target.read()
    nominal = RigidBody(ROBOT).gravity(state.position)
    for adapter in (bench.adapter, other):
        adapter.observe(state)
    np.testing.assert_array_equal(bench.adapter.correct(state, nominal), other.correct(state, nominal))


@pytest.mark.parametrize("name", RIVALS)
def test_reset_forgets_and_carry_does_not(name: str) -> None:
    bench = Bench(make(name, ROBOT, 1))
    bench.error(0.5)
    adapter = bench.adapter
    assert adapter is not None
    state = bench.target.read()
    nominal = RigidBody(ROBOT).gravity(state.position)
    before = np.abs(adapter.correct(state, nominal) - nominal).max()
    adapter.carry()
    assert np.abs(adapter.correct(state, nominal) - nominal).max() > 0.3 * before
    adapter.reset()
    state.velocity[:] = 0.0
    assert np.abs(adapter.correct(state, nominal) - nominal).max() < 0.35 * before


@pytest.mark.parametrize("name", RIVALS)
def test_missing_reports_and_one_robot_without_a_trials_axis(name: str) -> None:
    one, batch = make(name, ROBOT), make(name, ROBOT, 2)
    target = Target(ROBOT, Parameters.sample(ROBOT, profile_of(ROBOT), 2, 5), threads=1)
    for tick in range(120):
        state = target.read()
        if 50 <= tick < 60:
            state.position[1] = np.nan
        flat = replace(state, position=state.position[0], velocity=state.velocity[0], torque=state.torque[0])
        held = np.where(np.isfinite(state.position), state.position, ROBOT.home)
        nominal = RigidBody(ROBOT).gravity(held)
        for adapter, report in ((one, flat), (batch, state)):
            adapter.observe(report)
            if adapter.learn_every and tick % adapter.learn_every == 0:
                belief = adapter.learn()
                if belief is not None:
                    adapter.adopt(belief)
        alone = one.correct(flat, nominal[0])
        both = batch.correct(replace(state, position=held), nominal)
        assert alone.shape == (ROBOT.n,) and np.isfinite(both).all()
        np.testing.assert_allclose(alone, both[0], atol=1e-9)
        target.write(Command(torque=both))


def test_the_observer_finds_a_constant_push_exactly() -> None:
    """On the ideal robot in motion the momentum observer's estimate is the push, whatever the motion."""
    observer = Observer(ROBOT, 1, settings=ObserverSettings(bandwidth=50.0))
    target = Target(ROBOT, Parameters.ideal(ROBOT, 1), threads=1)
    push = np.linspace(-2.0, 2.0, ROBOT.n)
    target.push(push[None])
    body = RigidBody(ROBOT)
    for tick in range(600):
        state = target.read()
        observer.observe(state)
        swing = 3.0 * np.sin(0.01 * tick + np.arange(ROBOT.n))
        target.write(Command(torque=body.bias(state.position, state.velocity) + swing - 4.0 * state.velocity - push))
    np.testing.assert_allclose(observer.disturbance[0], push, atol=0.15)


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(RetorqueError, match="bandwidth"):
        make("observer", ROBOT, 1, settings={"bandwidth": 2000.0})


def test_each_says_when_it_is_dangerous() -> None:
    assert all("dangerous" in ADAPTERS[name][1] for name in RIVALS)
