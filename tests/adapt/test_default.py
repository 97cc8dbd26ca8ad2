"""The adapter `default` where something touches, is picked up, or nothing is hidden; saved, loaded, at other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.default.adapter import (
    LATELY,
    OWN_ODDS,
    STRADDLE,
    SURPRISED,
    SUSPECT,
    TOUCHED,
    WALK_EVERY,
    YOUNG,
    Default,
)
from retorque.adapt.default.felt_torque import LEAD, FeltTorque
from retorque.adapt.default.ideal_mismatch import FLOOR, IdealMismatch
from retorque.adapt.default.onset import IDEAL_FOR, TURNS, WATCHED, Onset
from retorque.adapt.default.stillness import Stillness
from retorque.adapt.default.velocity_feedback import ACTS, ANEW, COUNTS
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


def both(world: str, duration: float, trials: int = 1, name: str = "panda") -> tuple[WorldRun, WorldRun, Adapter]:
    """The ideal robot and one with `default`, in a world cut short; and the adapter."""
    task = WorldTask(Robot.load(name), replace(WORLDS[world], duration=duration), trials, SEED)
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
    assert isinstance(task.touch, Lean) and adapter._walked[0] > 50
    jacobian = RigidBody(task.robot).jacobian(task.robot.end_effector, done.position[-1])[:, :3]
    true = np.einsum("tx,txn->tn", task.touch.at(7.0), jacobian)
    assert np.linalg.norm(adapter.belief.arrays["external"] - true) < 0.33 * np.linalg.norm(true)


def test_a_lean_that_a_payload_could_nearly_be_stays_a_lean_on_six_joints() -> None:
    _, _, adapter = both("lean", 6.0, 8, "z1")
    assert isinstance(adapter, Default)
    assert np.count_nonzero(adapter.disputed & ~adapter.changed(2.0)) >= 6  # straight up and down looks like one


def test_what_is_picked_up_is_carried_within_a_second() -> None:
    ideal, done, adapter = both("payload-cycles", 6.0)
    assert isinstance(adapter, Default) and not adapter.disputed.any()
    late = np.rad2deg(np.abs(done.position[-50:] - ideal.position[-50:])).max()
    assert late < 1.0
    assert joint_error(done, ideal)[0] < 1.5


def test_a_young_mismatch_is_weighed_in_windows_that_begin_after_it() -> None:
    adapter, equation = turned()
    expected, spread = adapter._filter.predict(equation.rows)
    left, far = equation.torque - equation.prior - expected, np.full(2, 10.0 * SUSPECT)
    adapter.disputed[:] = True
    with mock.patch.object(adapter, "_decide") as decide:
        for _ in range(6):
            adapter._weigh_dispute(equation, left, spread, far, equation.accepted)
    windows = [call.args[0].noise_factor > equation.noise_factor for call in decide.call_args_list]
    assert windows == [True] * 4 + [False] * 2  # shorter ones are noisier


def test_a_push_is_yielded_to_only_where_the_estimate_misses_something_too() -> None:
    adapter, _ = turned()
    clear, own = 2.0 * adapter.unit * np.ones((2, 6)), np.zeros((2, 6))
    adapter._held[:] = [False, True]
    adapter._answer(clear, own)
    np.testing.assert_array_equal(adapter._touching, [True, True])
    assert not adapter._pushed[0].any() and adapter._pushed[1].all()


def test_how_hard_something_pushes_is_what_network_and_residuals_say_on_average_at_first() -> None:
    adapter, _ = turned()
    says, feels = 2.0 * adapter.unit * np.ones((2, 6)), np.full((2, 6), 0.5)
    adapter.disputed[:] = True
    adapter._disputed_for[:] = [YOUNG[0], YOUNG[1]]
    with mock.patch.object(adapter._felt, "take", return_value=feels):
        adapter._answer(says, np.zeros((2, 6)))
    np.testing.assert_allclose(adapter._pushed, [0.5 * (says[0] + feels[0]), feels[1]])


def test_torques_that_grow_steadily_are_felt_without_a_lag() -> None:
    felt, slope = FeltTorque((2, 3), 0.005), np.array([10.0, -4.0, 0.0])
    sound, lost = np.array([True, True]), np.array([False, False])
    for k in range(200):
        now = felt.take(-np.broadcast_to(slope * 0.005 * k, (2, 3)), sound, lost)
    np.testing.assert_allclose(now[0], slope * (0.005 * 199 + LEAD), atol=1e-6)
    sound[1] = False
    for _ in range(10):  # what is not sound is not followed
        now = felt.take(np.full((2, 3), 50.0), sound, lost)
    assert np.all(now[0] < -40.0)
    np.testing.assert_allclose(now[1], slope * 0.005 * 199, atol=1e-6)
    for _ in range(40):  # and forgotten while nobody reports
        now = felt.take(np.full((2, 3), 50.0), sound, np.array([False, True]))
    assert np.all(np.abs(now[1]) < 0.02 * np.abs(slope) + 1e-9)


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
    other.load(tmp_path / "memory.safetensors", mid_run=True)
    np.testing.assert_array_equal(turn(one, robot, 300, 60), turn(other, robot, 300, 60))


def turned() -> tuple[Default, Equation]:
    """Two z1 that have turned for a while, and their newest equation."""
    robot = Robot.load("z1")
    adapter = make("default", robot, 2)
    assert isinstance(adapter, Default)
    turn(adapter, robot, 0, 300)
    return adapter, newest(adapter)


def newest(adapter: Default) -> Equation:
    return averaged_equation(adapter.history, adapter.model, adapter._samples, adapter._samples, adapter._stride)


def test_an_explanation_that_does_not_explain_the_present_is_refused() -> None:
    adapter, equation = turned()
    before, payload = adapter._filter.mean.copy(), adapter._explanations.payload
    payload.mean[:], payload.covariance[:] = 0.0, 0.0
    payload.mean[1, 0] = 3.0  # [kg]
    adapter.disputed[:] = True
    both_of_them, no_joint = np.ones(2, dtype=bool), np.zeros(2, dtype=bool)
    adapter._open(equation, both_of_them, no_joint, np.full(2, -1))
    np.testing.assert_array_equal(adapter.disputed, [False, True])
    np.testing.assert_array_equal(adapter.changed(0.1), [True, False])
    np.testing.assert_array_equal(adapter._refuted, [0.0, 1.0])
    np.testing.assert_array_equal(adapter._filter.mean[1], before[1])


def test_the_jump_of_a_correction_is_no_reason_to_doubt_it_again() -> None:
    adapter, equation = turned()
    expected, spread = adapter._filter.predict(equation.rows)
    adapter._own_since[:] = [0.5 * STRADDLE, 2.0 * STRADDLE]
    far = np.full(2, 10.0 * SUSPECT)
    with mock.patch.object(adapter, "_distance", side_effect=[far, far, far]):
        adapter._screen(equation, equation.torque - equation.prior - expected, spread)
    np.testing.assert_array_equal(adapter.disputed, [False, True])
    assert not equation.accepted.any()  # nor is anything learnt from it


def test_what_the_network_no_longer_sees_is_over_sooner_on_a_quick_robot() -> None:
    adapter = make("default", Robot.load("z1"), 2)
    assert isinstance(adapter, Default)
    adapter.disputed[:], adapter._stillness.fastest[:], adapter._disputed_for[:] = True, [0.05, 0.5], STRADDLE
    left, unusable = np.full(2, 0.5 * (SURPRISED + SUSPECT)), np.zeros(2, dtype=bool)
    for _ in range(50):
        adapter._weigh_dispute(mock.Mock(), np.zeros((2, 6)), np.zeros((2, 1, 6)), left, unusable)
    np.testing.assert_array_equal(adapter.disputed, [True, False])


def test_a_dispute_does_not_end_in_a_dip() -> None:
    adapter = make("default", Robot.load("z1"), 2)
    assert isinstance(adapter, Default)
    adapter.disputed[:], adapter._stillness.fastest[:], adapter._lately[:] = True, 0.5, 2.0 * SUSPECT
    adapter._disputed_for[:] = STRADDLE
    unusable = np.zeros(2, dtype=bool)
    for step in range(100):
        dip = step % 15 < 7  # 70 ms of every 150, more than `CALM`
        left = np.array([SURPRISED if dip else 10.0 * SUSPECT, 0.5 * LATELY])
        adapter._weigh_dispute(mock.Mock(), np.zeros((2, 6)), np.zeros((2, 1, 6)), left, unusable)
    np.testing.assert_array_equal(adapter.disputed, [True, False])


def screen(adapter: Default, *distances: list[float]) -> None:
    """Screen the newest equation again and again, as if it were so far from the estimate each time (trials,)."""
    equation = newest(adapter)
    expected, spread = adapter._filter.predict(equation.rows)
    for row in distances:
        now, equation.accepted[:] = np.array(row), True
        with (
            mock.patch.object(adapter, "_distance", side_effect=[now, now, now]),
            mock.patch.object(adapter, "_weigh_dispute"),
            mock.patch.object(adapter._stillness, "look"),
        ):
            adapter._screen(equation, equation.torque - equation.prior - expected, spread)


def touched(ticks: int) -> Default:
    """Of three Pandas that the network sees pushed, after so many ticks, nothing disputed."""
    robot = Robot.load("panda")
    adapter = make("default", robot, 3)
    assert isinstance(adapter, Default)
    turn(adapter, robot, 0, ticks)
    adapter.disputed[:], adapter._touching[:], adapter._own_since[:] = False, True, np.inf
    return adapter


def test_what_comes_slowly_is_watched_and_what_is_there_at_once_is_not() -> None:
    adapter = touched(300)
    adapter._onset._rising_for[:], adapter._stillness.fastest[:] = 0.0, [1.0, 1.0, 0.0]
    screen(adapter, [0.0, 30.0, 0.0], [0.0, 31.0, 0.0], [2.0, 33.0, 0.0], [400.0, 60.0, 20.0])  # the last: small
    np.testing.assert_array_equal(adapter.disputed, [True, True, True])
    np.testing.assert_array_equal(adapter._onset.watched, [0.0, WATCHED, WATCHED])


def test_what_was_learnt_under_a_touch_is_taken_back_where_it_explains_less() -> None:
    adapter, equation = turned()
    expected, spread = adapter._filter.predict(equation.rows)
    adapter.disputed[:] = adapter._under_touch[:] = True
    adapter._disputed_for[:], adapter._snapshots.means[0] = 2.0, 0.125
    now, before = np.array([SUSPECT + 11.0, SUSPECT + 9.0]), np.array([10.0, 10.0])
    with mock.patch.object(adapter, "_distance", side_effect=[now, before, before]):
        adapter._screen(equation, equation.torque - equation.prior - expected, spread)
    np.testing.assert_array_equal(adapter._under_touch, [False, True])
    assert np.all(adapter._filter.mean[0] == 0.125) and not np.any(adapter._filter.mean[1] == 0.125)


def test_touches_wander_each_in_its_own_time() -> None:
    adapter = touched(300)
    adapter.disputed[:], adapter._disputed_for[:] = True, 2.0 * TOUCHED
    adapter._stillness.still_for[:] = 0.0
    equation, walked = newest(adapter), []
    with mock.patch.object(adapter._filter, "walk", side_effect=lambda trials, *_: walked.append(trials.tolist())):
        for k in range(2 * WALK_EVERY):
            adapter._learn_touched(equation, np.array([0, 2] if k < 2 else [0, 1, 2]))
    assert walked == [[0, 2], [1], [0, 2]]


def test_velocity_is_counted_while_undecided_and_made_good_if_it_is_its_own() -> None:
    adapter = touched(300)

    def follow() -> list[float]:
        return adapter._believe().arrays["follow"][:, 0].tolist()

    still = adapter._stillness
    still.fastest[:], still.still_for[:], adapter._onset._rising_for[:] = 1.0, 0.0, 0.0
    assert follow() == [COUNTS] * 3
    screen(adapter, [400.0, 400.0, 400.0])
    assert follow() == [COUNTS] * 3
    adapter.disputed[0], adapter._own_since[0] = False, 0.0  # it was its own
    adapter.disputed[1], adapter._touching[1] = False, False  # it is over
    adapter._disputed_for[2] = 2.0  # it lasts
    screen(adapter, [0.0, 0.0, 400.0])
    assert follow() == [ACTS, ANEW, ANEW]
    screen(adapter, [0.0, 0.0, 400.0], [0.0, 0.0, 400.0], [0.0, 0.0, 400.0])
    assert follow() == [ACTS, ACTS, ANEW]


def test_a_push_in_the_first_moments_is_no_sign_of_a_hidden_robot() -> None:
    adapter = touched(60)
    adapter._snapshots.kept[:], adapter._evidence[:] = 0, 8.0
    adapter._onset._hidden_for[:] = [0.05, 0.2, 0.05]
    adapter._onset._ideal_for[:] = [0.1, 0.1, 0.0]  # the last never looked like the ideal robot
    screen(adapter, [400.0, 400.0, 400.0])
    np.testing.assert_array_equal(adapter._evidence, [-8.0, 8.0, 8.0])


def test_a_robot_that_has_looked_ideal_in_motion_and_no_more_does_is_touched() -> None:
    step = 0.01
    onset, ideal, hidden = Onset(4, step), np.full(4, -8.0), np.full(4, 8.0)
    moving = np.array([True, True, False, True])  # the third shows nothing of itself
    for k in range(round(1.2 * IDEAL_FOR / step)):
        late = np.where([False, False, False, k < 30], hidden, ideal)  # the last looked hidden a moment ago
        assert not onset.turns(late, moving).any()
    once = onset.turns(np.where([True, False, True, True], hidden, ideal), moving)
    np.testing.assert_array_equal(once, [True, False, False, False])
    for _ in range(3):  # a moment's doubt does not make it another robot
        onset.turns(ideal, moving)
    assert onset.turns(hidden, moving)[0]
    turned = [onset.turns(hidden, moving)[0] for _ in range(round(2.0 * TURNS / step))]
    assert turned[0] and not turned[-1]
    onset.turns(ideal, moving)
    assert not onset.turns(hidden, moving).any()


@pytest.mark.parametrize("seed", [1000, 1010])  # among the first are leans straight down, as a payload hangs
def test_a_small_lean_on_an_ideal_robot_is_not_learnt(seed: int) -> None:
    robot = Robot.load("z1")
    world = replace(WORLDS["lean-nothing"], duration=7.0)
    task = WorldTask(robot, world, 4, seed)
    made: list[Default] = []

    def supervised(truth: object) -> Adapter:
        made.append(Default(robot, 4, world.timestep, task.adapter_seed))
        return Supervisor(made[0])

    error = joint_error(task.adapted(supervised), task.ideal())
    assert made[0].disputed.all() and error.max() < 0.1


def test_what_an_ideal_robot_picks_up_is_carried_once_it_is_explained() -> None:
    world = replace(WORLDS["payload-cycles"], duration=7.0, hidden="nothing")
    task = WorldTask(Robot.load("z1"), world, 2, SEED)
    made: list[Default] = []

    def supervised(truth: object) -> Adapter:
        made.append(Default(task.robot, 2, world.timestep, task.adapter_seed))
        return Supervisor(made[0])

    done, ideal = task.adapted(supervised), task.ideal()
    assert made[0].changed(3.0).all() and not made[0]._looks_ideal.any()
    assert np.rad2deg(np.abs(done.position[-100:] - ideal.position[-100:])).max() < 0.2


def test_what_is_taken_back_was_no_sign_of_a_hidden_robot() -> None:
    adapter, equation = turned()
    adapter._evidence[:], adapter._snapshots.evidence[:] = -8.0, -8.0
    with mock.patch.object(adapter, "_distance", return_value=np.zeros(2)):
        adapter._open(equation, np.array([True, False]), np.zeros(2, dtype=bool), np.zeros(2, dtype=int))
    np.testing.assert_array_equal(adapter._evidence, [OWN_ODDS, -8.0])
    np.testing.assert_array_equal(adapter._snapshots.evidence[0], [OWN_ODDS, -8.0])
    adapter._own_since[:] = [2.0 * STRADDLE, np.inf]
    screen(adapter, [400.0, 0.0])
    assert adapter.disputed[0] and adapter._evidence[0] == -8.0


def test_how_far_the_ideal_robot_is_off_is_learnt_of_full_windows() -> None:
    found = IdealMismatch(np.array([1.0, 10.0]), 2, 0.01, 2.0)
    np.testing.assert_allclose(found.variance(2.0), np.tile((FLOOR * np.array([1.0, 10.0])) ** 2, (2, 1)))
    rng, both = np.random.default_rng(4), np.array([True, False])
    for k in range(400):
        shorter = 4.0 if k < 5 else 1.0
        left = np.sqrt(shorter) * 0.5 * rng.standard_normal((2, 2))
        left[1] = np.nan  # what is not used may be anything
        found.learn(left, 2.0 * shorter, both)
    np.testing.assert_allclose(np.sqrt(found.variance(2.0)[0]), 0.5, rtol=0.15)
    np.testing.assert_allclose(np.sqrt(found.variance(2.0)[1]), FLOOR * np.array([1.0, 10.0]))


def test_a_robot_that_only_trembles_stands_still() -> None:
    found, settled = Stillness(3, 6, 0.01), np.array([True, True, False])  # the last has only begun, and may stick
    tick, still = 0, np.zeros((41, 3, 6))
    for _ in range(60):
        velocity = still.copy()
        velocity[:, [0, 2], 1] = 0.2 * np.sin(2.0 * np.pi * 15.0 * 1e-3 * (tick + np.arange(41)))[:, None]
        velocity[:, 1, 1] = 0.1
        found.look(velocity, settled)
        tick += 10
    np.testing.assert_array_equal(found.rests, [True, False, False])
    assert found.still_for[1] == 0.0 and found.still_for[2] == 0.0


@pytest.mark.parametrize("rate", (500, 200))
def test_it_runs_at_other_rates(rate: int) -> None:
    robot = Robot.load("z1")
    adapter = make("default", robot, 1, timestep=1.0 / rate)
    found = turn(adapter, robot, 0, rate // 4, 1.0 / rate)
    assert np.isfinite(found).all()
    assert isinstance(adapter, Default) and adapter.answers > 10
