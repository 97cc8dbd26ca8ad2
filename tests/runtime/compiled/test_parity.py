"""The compiled core against NumPy: torques and codes, clean and with everything that goes wrong on a robot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.loop.health import Health
from retorque.loop.supervisor import Supervisor, SupervisorSettings
from retorque.robots.library import names
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.parity import Recording, joined, record, replay, troubled
from retorque.work.errors import RetorqueError

ADAPTERS = ("direct", "recursive", "recursive-contact", "tam", "tam-recursive", "default")
FIXED = [name for name in names() if not Robot.load(name).floating]
SEEN = Health.RAMP | Health.BAD_STATE | Health.BAD_CLOCK | Health.GAP | Health.FROZEN | Health.SATURATED
SEEN |= Health.BAD_NOMINAL | Health.TORQUE_REPORT


@pytest.fixture(scope="module")
def run() -> Recording:
    """A clean run, then a troubled one."""
    robot = Robot.load("panda")
    clean = record(robot, 700, 0)
    return joined(clean, troubled(clean, robot, 1))


def check(
    robot: Robot, adapter: str, run: Recording, core: Path, tolerance: float = 1e-9, timestep: float = 1e-3
) -> None:
    reference = Supervisor(make(adapter, robot, 1, timestep=timestep))
    compiled = CompiledSupervisor(Supervisor(make(adapter, robot, 1, timestep=timestep)), core)
    expected, found = replay(reference, run), replay(compiled, run)
    assert np.abs(found.torque - expected.torque).max() <= tolerance
    assert (found.health == expected.health).all()
    assert compiled.counts == reference.counts
    assert np.allclose(compiled.correction, reference.correction, atol=tolerance)
    assert np.allclose(compiled.score.corrected, reference.score.corrected, atol=1e-9)
    assert np.allclose(compiled.score.without, reference.score.without, atol=1e-9)
    assert (compiled.score.samples == reference.score.samples).all()


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_torques_and_codes_are_numpys(core: Path, run: Recording, adapter: str) -> None:
    check(Robot.load("panda"), adapter, run, core)


def test_the_run_holds_what_goes_wrong(core: Path, run: Recording) -> None:
    answered = replay(CompiledSupervisor(Supervisor(make("recursive", Robot.load("panda"), 1)), core), run)
    assert np.bitwise_or.reduce(answered.health) & int(SEEN) == int(SEEN)
    assert np.isfinite(answered.torque).all()


@pytest.mark.parametrize("name", ["leap_hand", "rby1"])
def test_other_trees(core: Path, name: str) -> None:
    robot = Robot.load(name)
    check(robot, "recursive-contact", troubled(record(robot, 500, 1), robot, 2), core)


@pytest.mark.parametrize(
    ("adapter", "timestep"), [("recursive", 5e-4), ("recursive-contact", 2e-3), ("default", 2e-3), ("recursive", 0.01)]
)
def test_other_rates(core: Path, adapter: str, timestep: float) -> None:
    robot = Robot.load("z1")
    clean = record(robot, 250, 3, timestep=timestep)
    assert np.allclose(np.diff(clean.time), timestep) and np.isfinite(clean.report).all()
    check(robot, adapter, joined(clean, troubled(clean, robot, 4)), core, timestep=timestep)


@pytest.mark.parametrize("adapter", ["recursive", "tam"])
def test_bare_adapters(core: Path, run: Recording, adapter: str) -> None:
    robot = Robot.load("panda")
    with np.errstate(all="ignore"):
        expected = replay(make(adapter, robot, 1), run)
        found = replay(CompiledAdapter(make(adapter, robot, 1), core), run)
    usable = np.isfinite(expected.torque).all(axis=1)
    assert (np.isfinite(found.torque).all(axis=1) == usable).all()
    assert np.allclose(found.torque[usable], expected.torque[usable], rtol=1e-9, atol=1e-9)
    assert (found.health == expected.health).all()


def test_a_batch_is_so_many_robots(core: Path) -> None:
    robot = Robot.load("z1")
    runs = [record(robot, 300, seed) for seed in (0, 1)]
    both = CompiledSupervisor(Supervisor(make("recursive", robot, 2)), core)
    alone = [replay(CompiledSupervisor(Supervisor(make("recursive", robot, 1)), core), run) for run in runs]
    for tick in range(300):
        q, qd, torque = np.stack([run.report[tick] for run in runs], axis=1)
        state = State(float(runs[0].time[tick]), q, qd, torque)
        both.observe(state)
        if tick % both.learn_every == 0:
            belief = both.learn()
            if belief is not None:
                both.adopt(belief)
        sent = both.correct(state, np.stack([run.nominal[tick] for run in runs]))
        assert np.array_equal(sent, np.stack([one.torque[tick] for one in alone]))


def test_one_robot_without_a_batchs_axis(core: Path, run: Recording) -> None:
    robot = Robot.load("panda")
    single = CompiledSupervisor(Supervisor(make("recursive", robot)), core)
    state = State(0.0, *run.report[0])
    single.observe(state)
    assert single.correct(state, run.nominal[0]).shape == (7,)
    assert single.health.shape == () and single.correction.shape == single.gain.shape == (7,)


def test_torques_that_change_quickly_and_then_a_frozen_robot(core: Path) -> None:
    """A late report of a jumping torque is as good as any other, so that what repeats is found at the same tick."""
    robot, ticks = Robot.load("panda"), 1600
    rng, never = np.random.default_rng(0), np.zeros(1600, dtype=bool)
    time = 1e-3 * np.arange(ticks)
    nominal = 0.4 * robot.torque_limit * np.sign(np.sin(2.0 * np.pi * time / 8e-3 + np.arange(robot.n)[:, None])).T
    motion = robot.home + 1e-3 * rng.standard_normal((ticks, robot.n)).cumsum(axis=0) * 0.01
    report = np.stack([motion, np.gradient(motion, 1e-3, axis=0), np.roll(nominal, 5, axis=0)], axis=1)
    for start in range(1200, ticks, 97):
        report[start : start + 50, :2, 3] = report[start, :2, 3]
    run = Recording(time, report, nominal, never, never)
    check(robot, "direct", run, core)
    answered = replay(Supervisor(make("direct", robot, 1)), run)
    assert (answered.health[1100:1200] == 0).all()
    assert np.bitwise_or.reduce(answered.health[1200:]) & int(Health.FROZEN)


def test_a_gap_after_which_the_robot_is_elsewhere_under_another_torque(core: Path) -> None:
    robot = Robot.load("panda")
    whole = record(robot, 900, 5)
    run = Recording(*(np.concatenate([part[:400], part[600:]]) for part in vars(whole).values()))
    run.report[400, 2] += 0.3 * robot.torque_limit
    check(robot, "recursive", run, core)
    check(robot, "direct", run, core)
    answered = replay(Supervisor(make("direct", robot, 1)), run)
    assert answered.health[400] & int(Health.GAP)
    assert not np.bitwise_or.reduce(answered.health[400:]) & int(Health.TORQUE_REPORT | Health.RAMP)


def test_watching_while_somebody_else_drives(core: Path, run: Recording) -> None:
    robot, settings = Robot.load("panda"), SupervisorSettings(shadow=True, torque_from="other")
    reference, watcher = (Supervisor(make("recursive", robot, 1), settings) for _ in range(2))
    compiled = CompiledSupervisor(watcher, core)
    expected, found = replay(reference, run), replay(compiled, run)
    assert np.allclose(found.torque, expected.torque, atol=1e-9) and (found.health == expected.health).all()
    assert not np.bitwise_or.reduce(found.health[:700]) & int(Health.TORQUE_REPORT)
    assert np.allclose(compiled.score.corrected, reference.score.corrected, atol=1e-9)


def test_shadow_and_log(core: Path, run: Recording) -> None:
    robot, settings = Robot.load("panda"), SupervisorSettings(shadow=True, log_ticks=50, enable_ramp=0.0)
    reference, shadow = (Supervisor(make("recursive", robot, 1), settings) for _ in range(2))
    compiled = CompiledSupervisor(shadow, core)
    expected, found = replay(reference, run), replay(compiled, run)
    assert np.allclose(found.torque, expected.torque, atol=1e-9) and (found.health == expected.health).all()
    for own, other in zip(compiled.log()[1:], reference.log()[1:], strict=True):
        assert np.allclose(own, other, atol=1e-9)


def test_what_was_learnt_is_saved_and_goes_on(core: Path, run: Recording, tmp_path: Path) -> None:
    robot = Robot.load("panda")
    first, second, other = (CompiledSupervisor(Supervisor(make("recursive", robot, 1)), core) for _ in range(3))
    replay(first, Recording(*(part[:400] for part in vars(run).values())))
    first.save(tmp_path / "memory")
    second.load(tmp_path / "memory", mid_run=True)
    rest = Recording(*(part[400:650] for part in vars(run).values()))
    assert np.array_equal(replay(second, rest).torque, replay(first, rest).torque)
    assert not np.array_equal(replay(other, rest).torque, replay(first, rest).torque)
    with pytest.raises(RetorqueError, match="learnt with adapter"):
        CompiledAdapter(make("direct", robot, 1), core).load(tmp_path / "memory")


def test_a_foreign_belief_is_refused(core: Path, run: Recording) -> None:
    robot = Robot.load("panda")
    giver = CompiledAdapter(make("recursive", robot, 1), core)
    replay(giver, Recording(*(part[:100] for part in vars(run).values())))
    belief = giver.learn()
    assert belief is not None
    CompiledAdapter(make("recursive", robot, 1), core).adopt(belief)
    with pytest.raises(RetorqueError, match="cannot be adopted"):
        CompiledAdapter(make("recursive-contact", robot, 1), core).adopt(belief)
    with pytest.raises(RetorqueError, match="cannot be adopted"):
        CompiledAdapter(make("recursive", Robot.load("z1"), 1), core).adopt(belief)


@pytest.mark.slow
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", FIXED)
def test_every_arm_over_8000_ticks(core: Path, name: str, adapter: str) -> None:
    robot = Robot.load(name)
    if adapter == "tam" and robot.n > 8:
        pytest.skip("TAM serves arms of up to 8 joints")
    clean = record(robot, 8000, 0)
    tolerance = 1e-9 if adapter in ("direct", "recursive", "recursive-contact") else 1e-5
    check(robot, adapter, clean, core, tolerance)
    check(robot, adapter, troubled(clean, robot, 1), core, tolerance)
