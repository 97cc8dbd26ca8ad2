"""What was learnt in one engine goes on in the other: the same numbers, and a file that both read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque import JointImpedance, Loop, Parameters, Target, WindowedSines, make_adapter, profile_of
from retorque.adapt import make
from retorque.adapt.recursive.adapter import Recursive
from retorque.loop.adapter import Adapter
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.compiled.adapter import CompiledAdapter
from retorque.runtime.compiled.compiled_supervisor import CompiledSupervisor
from retorque.runtime.compiled.parity import Recording, record, replay
from retorque.work.errors import RetorqueError

ROBOT = Robot.load("panda")


@pytest.fixture(scope="module")
def run() -> Recording:
    return record(ROBOT, 700, 4)


def numbers(adapter: Adapter) -> dict[str, np.ndarray]:
    """What an estimate has learnt."""
    assert isinstance(adapter, Recursive)
    rest = adapter._disturbance
    learnt = {"mean": adapter._filter.mean, "root": adapter._filter.root, "noise": adapter._noise}
    return {**learnt, "evidence": adapter._evidence, "torque": rest.torque, "total": rest.total}


@pytest.mark.parametrize("name", ["recursive", "recursive-contact", "tam-recursive", "default"])
def test_from_numpy_to_c_and_back(core: Path, run: Recording, name: str, tmp_path: Path) -> None:
    first, other = make(name, ROBOT, 1), make(name, ROBOT, 1)
    replay(first, run)
    first.save(tmp_path / "numpy")
    model = make(name, ROBOT, 1)
    compiled = CompiledAdapter(model, core)
    compiled.load(tmp_path / "numpy")
    compiled.save(tmp_path / "c")
    other.load(tmp_path / "c")
    learnt, fresh = numbers(first), numbers(make(name, ROBOT, 1))
    for part, found in numbers(other).items():
        np.testing.assert_array_equal(found, learnt[part], err_msg=part)
    assert any(not np.array_equal(found, fresh[part]) for part, found in learnt.items())
    for part, untouched in numbers(model).items():
        np.testing.assert_array_equal(untouched, fresh[part], err_msg=part)


def test_a_robot_goes_on_as_well_in_the_other_engine(core: Path, run: Recording, tmp_path: Path) -> None:
    learner = CompiledSupervisor(Supervisor(make("recursive", ROBOT, 1)), core)
    replay(learner, run)
    learner.save(tmp_path / "c")
    numpy, compiled = make("recursive", ROBOT, 1), CompiledAdapter(make("recursive", ROBOT, 1), core)
    numpy.load(tmp_path / "c")
    numpy.save(tmp_path / "numpy")
    compiled.load(tmp_path / "numpy")
    state = State(0.0, *run.report[-1][:, None])
    sent = numpy.correct(state, run.nominal[-1:])
    assert np.abs(sent - run.nominal[-1]).max() > 0.1  # it corrects from the first tick on
    np.testing.assert_allclose(compiled.correct(state, run.nominal[-1:]), sent, atol=1e-9)
    part = Recording(*(rows[:60] for rows in vars(run).values()))
    np.testing.assert_allclose(replay(compiled, part).torque, replay(numpy, part).torque, atol=1e-9)


def test_the_same_core_goes_on_within_a_stride(core: Path, run: Recording, tmp_path: Path) -> None:
    """A break between two updates does not shift the updates after it."""
    first, second = (CompiledAdapter(make("recursive", ROBOT, 1), core) for _ in range(2))
    replay(first, Recording(*(rows[:207] for rows in vars(run).values())))
    first.save(tmp_path / "memory")
    second.load(tmp_path / "memory", mid_run=True)
    rest = Recording(*(rows[207:] for rows in vars(run).values()))
    np.testing.assert_array_equal(replay(second, rest).torque, replay(first, rest).torque)


def test_what_is_not_learnt_for_long_is_not_carried(core: Path, run: Recording, tmp_path: Path) -> None:
    tam = make("tam", ROBOT, 1)
    tam.save(tmp_path / "numpy")
    compiled = CompiledAdapter(make("tam", ROBOT, 1), core)
    with pytest.raises(RetorqueError, match="saved by another engine"):
        compiled.load(tmp_path / "numpy")
    compiled.save(tmp_path / "c")
    with pytest.raises(RetorqueError, match="learn anew"):
        tam.load(tmp_path / "c")
    with pytest.raises(RetorqueError, match="trials"):
        CompiledAdapter(make("tam", ROBOT, 2), core).load(tmp_path / "c")


def tracked(adapter: Adapter | None, parameters: Parameters, motion: int, seconds: float) -> np.ndarray:
    """(ticks, n) where a Panda with these parameters goes that begins at home, at time zero [deg]."""
    profile = profile_of(ROBOT)
    sines = WindowedSines.sample(ROBOT.home, profile.tracking_amplitude, (), duration=16.0, seed=motion)
    impedance = JointImpedance(ROBOT, profile.tracking_stiffness, profile.tracking_damping)
    loop = Loop(Target(ROBOT, parameters), sines, impedance, adapter)
    return np.rad2deg([loop.tick().state.position.copy() for _ in range(round(seconds / 1e-3))])


@pytest.mark.parametrize("name", ["recursive", "default"])
def test_another_day_it_begins_with_what_it_had_learnt(core: Path, name: str, tmp_path: Path) -> None:
    """The clock begins anew, and so does the robot, at another place than where it was saved."""
    parameters = Parameters.sample(ROBOT, profile_of(ROBOT), (), seed=1000)
    ideal = tracked(None, Parameters.ideal(ROBOT), 2, 1.5)

    def error(adapter: Adapter) -> float:
        return float(np.sqrt(np.mean(np.square(tracked(adapter, parameters, 2, 1.5) - ideal))))

    def fresh() -> Adapter:
        return CompiledSupervisor(Supervisor(make_adapter(name, ROBOT)), core)

    cold, first, later = fresh(), fresh(), fresh()
    tracked(first, parameters, 1, 3.0)
    first.save(tmp_path / "learnt")
    later.load(tmp_path / "learnt")
    numpy = Supervisor(make_adapter(name, ROBOT))
    numpy.load(tmp_path / "learnt")
    found = error(later)
    assert found < 0.9 * error(cold)
    assert error(numpy) == pytest.approx(found, rel=0.05)
    first.resume()
    assert error(first) == pytest.approx(found, rel=1e-6)
