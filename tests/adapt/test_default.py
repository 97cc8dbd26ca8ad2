"""The adapter `default` where something touches, is picked up, or nothing is hidden; saved, loaded, at other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.default.adapter import CALM, Default
from retorque.adapt.default.felt_torque import LEAD, FeltTorque
from retorque.adapt.recursive.equation import Equation, averaged_equation
from retorque.loop.adapter import Adapter
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.worlds import WORLDS
from retorque.tasks.worlds.touches import Lean
from retorque.tasks.worlds.world_task import WorldRun, WorldTask, joint_error

SEED = 1000


def both(world: str, duration: float, trials: int = 1) -> tuple[WorldRun, WorldRun, Adapter]:
    """The ideal robot and one with `default`, in a world cut short; and the adapter."""
    task = WorldTask(Robot.load("panda"), replace(WORLDS[world], duration=duration), trials, SEED)
    kept: list[Adapter] = []

    def module(truth) -> Adapter:
        kept.append(make("default", task.robot, trials, seed=task.adapter_seed))
        return Supervisor(kept[0], SupervisorSettings(enable_ramp=0.0))

    return task.ideal(), task.adapted(module), kept[0]


def test_against_a_wall_it_presses_as_the_ideal_robot_does() -> None:
    ideal, done, adapter = both("wall", 9.0)
    assert isinstance(adapter, Default) and adapter.disputed.all()
    assert ideal.end_force is not None and done.end_force is not None
    assert ideal.end_force[0] > 1.0
    assert done.end_force[0] < 1.5 * ideal.end_force[0] + 2.0


def test_it_gives_way_to_a_lean_as_the_ideal_robot_does() -> None:
    ideal, done, adapter = both("lean", 7.0)
    assert isinstance(adapter, Default) and adapter.disputed.all()
    yielded = np.rad2deg(np.abs(ideal.position[-1] - ideal.position[390])).max()
    assert yielded > 3.0
    assert joint_error(done, ideal)[0] < 0.6
    # It learns on under the touch, and what it feels must not have become its own: the true force, to a third.
    task = WorldTask(Robot.load("panda"), replace(WORLDS["lean"], duration=7.0), 1, SEED)
    assert isinstance(task.touch, Lean) and adapter._under_touch.all()
    jacobian = RigidBody(task.robot).jacobian(task.robot.end_effector, done.position[-1])[:, :3]
    true = np.einsum("tx,txn->tn", task.touch.at(7.0), jacobian)
    assert np.linalg.norm(adapter.belief.arrays["external"] - true) < 0.33 * np.linalg.norm(true)


def test_what_is_picked_up_is_carried_within_a_second() -> None:
    ideal, done, adapter = both("payload-cycles", 6.0)
    assert isinstance(adapter, Default) and not adapter.disputed.any()
    late = np.rad2deg(np.abs(done.position[-50:] - ideal.position[-50:])).max()
    assert late < 1.0
    assert joint_error(done, ideal)[0] < 1.5


def screened(adapter: Default, *, touching: bool) -> Equation:
    """The newest equation of motion, shown to the adapter again."""
    adapter._touching[:] = touching
    equation = averaged_equation(
        adapter.history, adapter.model, adapter.history.count, adapter._samples, adapter._stride
    )
    expected, spread = adapter._filter.predict(equation.rows)
    adapter._screen(equation, equation.torque - equation.prior - expected, spread)
    return equation


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the adapter knows of a robot that has moved for 1.2 s, nothing being disputed."""
    _, _, adapter = both("usual", 1.2)
    assert isinstance(adapter, Default) and not adapter.disputed.any()
    adapter.save(tmp_path_factory.mktemp("default") / "memory.safetensors")
    return next(tmp_path_factory.getbasetemp().glob("default*/memory.safetensors"))


@pytest.fixture
def moved(memory: Path) -> Default:
    """An adapter that knows it."""
    adapter = make("default", Robot.load("panda"), 1)
    adapter.load(memory)
    assert isinstance(adapter, Default)
    return adapter


def test_a_surprise_that_an_older_estimate_does_not_share_is_learnt_from(moved: Default) -> None:
    moved._filter.mean += 3.0
    moved._filter.root[:] *= 0.01  # the newest estimate is wrong, and sure of itself
    assert screened(moved, touching=False).accepted.all() and not moved.disputed.any()
    assert not screened(moved, touching=True).accepted.any() and moved.disputed.all()  # unless a push is seen as well


def test_a_surprise_that_an_older_estimate_shares_is_disputed(moved: Default) -> None:
    moved._filter.mean += 3.0
    moved._filter.root[:] *= 0.01
    moved._old_means[:], moved._old_roots[:] = moved._filter.mean, moved._filter.root
    moved._stale[:] = 0.0
    assert not screened(moved, touching=False).accepted.any() and moved.disputed.all()


def test_how_far_old_estimates_miss_is_learnt_while_all_is_well(moved: Default) -> None:
    equation, missed, spread = screened(moved, touching=False), np.full((1, 7), 5.0), np.zeros((1, moved.model.size, 7))
    newest = moved._distance(missed, spread, 1.0)
    for _ in range(400):
        moved._learn_stale(missed, spread, equation, np.array([True]))
    assert moved._distance(missed, spread, 1.0, old=True)[0] < 10.0
    np.testing.assert_array_equal(moved._distance(missed, spread, 1.0), newest)  # which is not forgiven
    assert newest[0] > 45.0


@pytest.mark.parametrize("stands", [False, True])
def test_a_false_alarm_costs_nothing_that_was_learnt(moved: Default, stands: bool) -> None:
    moved._fresh_mean[:], moved._fresh_root[:] = moved._filter.mean, moved._filter.root
    moved._filter.mean[:] = 0.0
    moved.disputed[:], moved._disputed_for[:] = True, 0.2
    moved._calm_for[:], moved._unseen_for[:] = CALM, 1.0
    moved._rest[:] = 1.0 if stands else 0.0
    held = moved._filter.mean.copy()
    screened(moved, touching=False)
    assert not moved.disputed.any()
    np.testing.assert_array_equal(moved._filter.mean, held if stands else moved._fresh_mean)


def test_torques_that_grow_steadily_are_felt_without_a_lag() -> None:
    felt, slope = FeltTorque((2, 3), 0.005), np.array([10.0, -4.0, 0.0])
    sound = np.array([True, True])
    for k in range(200):
        now = felt.take(-np.broadcast_to(slope * 0.005 * k, (2, 3)), sound)
    np.testing.assert_allclose(now[0], slope * (0.005 * 199 + LEAD), atol=1e-6)
    sound[1] = False
    for _ in range(10):  # what is not sound is not followed
        now = felt.take(np.full((2, 3), 50.0), sound)
    assert np.all(now[0] < -40.0)
    np.testing.assert_allclose(now[1], slope * 0.005 * 199, atol=1e-6)


def report(robot: Robot, time: float, trials: int) -> State:
    rate = np.linspace(1.0, 3.0, robot.n)
    one = np.stack(
        [robot.home + 0.2 * np.sin(rate * time), 0.2 * rate * np.cos(rate * time), 3.0 * np.sin(rate * time)]
    )
    return State(time, *np.repeat(one[:, None], trials, axis=1))


def turn(adapter: Adapter, robot: Robot, first: int, count: int, timestep: float = 1e-3) -> np.ndarray:
    for tick in range(first, first + count):
        state = report(robot, tick * timestep, adapter.trials)
        adapter.observe(state)
        belief = adapter.learn()
        if belief is not None:
            adapter.adopt(belief)
    return adapter.correct(state, np.zeros((adapter.trials, robot.n)))


def test_what_was_learnt_goes_on_in_another_process_to_the_bit(tmp_path: Path) -> None:
    robot = Robot.load("z1")
    one, other = (make("default", robot, 2) for _ in range(2))
    turn(one, robot, 0, 300)
    one.save(tmp_path / "memory.safetensors")
    other.load(tmp_path / "memory.safetensors")
    np.testing.assert_array_equal(turn(one, robot, 300, 60), turn(other, robot, 300, 60))


@pytest.mark.parametrize("rate", (500, 200))
def test_it_runs_at_other_rates(rate: int) -> None:
    robot = Robot.load("z1")
    adapter = make("default", robot, 1, timestep=1.0 / rate)
    found = turn(adapter, robot, 0, rate // 4, 1.0 / rate)
    assert np.isfinite(found).all()
    assert isinstance(adapter, Default) and adapter.answers > 10
