"""The oracle is the floor, and what it owes to knowing the simulator's own time step."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.adapt import ADAPTERS, make
from retorque.loop.adapter import Adapter
from retorque.loop.loop import Loop, run
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.simulate.target import Target
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.errors import RetorqueError

PANDA = Robot.load("panda")


class ContinuousOracle(Adapter):
    """The true parameters inverted as C.1 says, without knowing how the simulator integrates friction."""

    def __init__(self, target: Target):
        super().__init__(target.robot, target.trials)
        self._target, self._body = target, RigidBody(target.robot)

    def correct(self, state, nominal_torque):
        q, qd = state.position, state.velocity
        ideal = self._body.forward_dynamics(q, qd, nominal_torque)
        return inverse_torque_command(self._body, self._target.parameters, q, qd, ideal)


def _motion(task: TrackingTask, target: Target, adapter: Adapter) -> np.ndarray:
    """The first 4 s of a 16 s motion; a whole motion of 4 s would be faster and saturate the drives."""
    return run(Loop(target, task.reference, task.controller(), adapter), 4.0).position


def _rms(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.rad2deg(np.sqrt(np.mean((a - b) ** 2))))


@pytest.fixture(scope="module")
def world():
    task = TrackingTask(PANDA, TrackingSettings(trials=4, duration=16.0))
    return task, _motion(task, task.ideal(threads=1), make("direct", PANDA, 4))


def test_the_oracle_follows_the_ideal_robot(world) -> None:
    task, ideal = world
    target = task.target(threads=1)
    assert _rms(_motion(task, target, make("oracle", PANDA, 4, truth=lambda: target.parameters)), ideal) < 1e-9
    assert _rms(_motion(task, task.target(threads=1), make("direct", PANDA, 4)), ideal) > 1.0


def test_without_the_time_step_the_floor_is_small_but_not_nothing(world) -> None:
    """Would fail if the targets ignored their friction: then both oracles would be exact."""
    task, ideal = world
    target = task.target(threads=1)
    assert 1e-4 < _rms(_motion(task, target, ContinuousOracle(target)), ideal) < 0.02


def test_an_oracle_with_wrong_parameters_does_not_follow(world) -> None:
    task, ideal = world
    target = task.target(threads=1)
    heavier = target.parameters.with_payload(target.parameters.payload_mass + 0.5)
    assert _rms(_motion(task, target, make("oracle", PANDA, 4, truth=lambda: heavier)), ideal) > 0.3


def test_on_the_ideal_robot_the_oracle_changes_nothing() -> None:
    target = Target(PANDA, Parameters.ideal(PANDA, 3), threads=1)
    adapter = make("oracle", PANDA, 3, truth=lambda: target.parameters)
    state = target.reset(PANDA.home, np.random.default_rng(0).normal(0.0, 0.5, (3, 7)))
    nominal = np.random.default_rng(1).normal(0.0, 10.0, (3, 7))
    np.testing.assert_allclose(adapter.correct(state, nominal), nominal, atol=1e-9)


def test_names_are_checked() -> None:
    with pytest.raises(RetorqueError, match="did you mean 'oracle'"):
        make("orcale", PANDA)
    with pytest.raises(RetorqueError, match="true parameters"):
        make("oracle", PANDA)
    assert {"direct", "oracle"} <= set(ADAPTERS)
