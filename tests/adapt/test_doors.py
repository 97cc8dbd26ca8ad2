"""The user's doors of an adapter: made by name with weights and settings, saved, and gone on with elsewhere."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from retorque import (
    JointImpedance,
    Loop,
    Parameters,
    RetorqueError,
    Robot,
    SensorSettings,
    State,
    Supervisor,
    Target,
    WindowedSines,
    make_adapter,
    profile_of,
)
from retorque.adapt import ADAPTERS
from retorque.adapt.recursive.adapter import RecursiveSettings
from retorque.adapt.tam.tam_weights import find
from retorque.loop.learner import InlineLearner
from retorque.physics.default_profile import critical_damping

ROBOT = Robot.load("z1")
TICKS, HALF = 480, 240
LEARNING = ("default", "particle", "recursive", "recursive-contact", "tam", "tam-ft", "tam-recursive", "physpred")


def replay(name: str, recording: Path, start: int, stop: int, memory: Path | None, save: Path | None) -> np.ndarray:
    """The torques (ticks, trials, n) of an adapter that sees part of a recording, after loading and before saving."""
    from retorque import Robot, State, make_adapter
    from retorque.loop.learner import InlineLearner

    arrays = np.load(recording)
    adapter = make_adapter(name, Robot.load("z1"), 2)
    if memory is not None:
        adapter.load(memory, mid_run=True)
    learner = InlineLearner(adapter)
    torques = []
    for k in range(start, stop):
        state = State(float(arrays["time"][k]), arrays["position"][k], arrays["velocity"][k], arrays["torque"][k])
        adapter.observe(state)
        learner.turn()
        torques.append(np.array(adapter.correct(state, arrays["nominal"][k])))
    if save is not None:
        adapter.save(save)
    return np.array(torques)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two arms with hidden parameters reported, with noise, and what the controller asked for."""
    profile = profile_of(ROBOT)
    damping = critical_damping(ROBOT, profile.tracking_stiffness)
    target = Target(
        ROBOT, Parameters.sample(ROBOT, profile, 2, 1001), sensors=SensorSettings.sample(profile, 2, 1002), seed=3
    )
    motion = WindowedSines.sample(ROBOT.home, profile.tracking_amplitude, 2, 2.0, 1003, cycles=(1.0, 2.0))
    loop = Loop(target, motion, JointImpedance(ROBOT, profile.tracking_stiffness, damping))
    ticks = [loop.tick() for _ in range(TICKS)]
    path = tmp_path_factory.mktemp("recording") / "ticks.npz"
    np.savez(
        path,
        time=[tick.state.time for tick in ticks],
        position=[tick.state.position for tick in ticks],
        velocity=[tick.state.velocity for tick in ticks],
        torque=[tick.state.torque for tick in ticks],
        nominal=[tick.nominal.torque for tick in ticks],
    )
    return path


@pytest.mark.parametrize("name", LEARNING)
def test_what_was_learnt_goes_on_bit_for_bit(name: str, recording: Path, tmp_path: Path) -> None:
    whole = replay(name, recording, 0, TICKS, None, None)
    before = replay(name, recording, 0, HALF, None, tmp_path / "memory.safetensors")
    after = replay(name, recording, HALF, TICKS, tmp_path / "memory.safetensors", None)
    np.testing.assert_array_equal(before, whole[:HALF])
    np.testing.assert_array_equal(after, whole[HALF:])
    cold = replay(name, recording, HALF, TICKS, None, None)
    assert np.abs(cold - after).max() > 1e-6  # what was saved matters


def test_it_goes_on_in_another_process(recording: Path, tmp_path: Path) -> None:
    names = ("recursive", "tam")
    for name in names:
        replay(name, recording, 0, HALF, None, tmp_path / f"{name}.safetensors")
    script = tmp_path / "resume.py"
    script.write_text(
        f"""import importlib.util, sys
import numpy as np
from pathlib import Path
spec = importlib.util.spec_from_file_location("doors", {str(Path(__file__))!r})
doors = importlib.util.module_from_spec(spec)
spec.loader.exec_module(doors)
for name in {names!r}:
    torques = doors.replay(name, Path({str(recording)!r}), {HALF}, {TICKS}, Path(f"{{name}}.safetensors"), None)
    np.save(f"{{name}}.npy", torques)
"""
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    for name in names:
        whole = replay(name, recording, 0, TICKS, None, None)
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), whole[HALF:])


def test_the_supervisor_and_a_single_robot_save_the_adapters_memory(tmp_path: Path) -> None:
    adapter = Supervisor(make_adapter("recursive", ROBOT))
    state = State(0.0, ROBOT.home, np.zeros(6), np.zeros(6))
    adapter.observe(state)
    adapter.save(tmp_path / "one.safetensors")
    other = Supervisor(make_adapter("recursive", ROBOT))
    other.load(tmp_path / "one.safetensors", mid_run=True)
    again = State(1e-3, ROBOT.home, np.zeros(6), np.zeros(6))
    for module in (adapter, other):
        module.observe(again)
        module.adopt(module.learn())
    np.testing.assert_array_equal(adapter.correct(again, np.ones(6)), other.correct(again, np.ones(6)))


@pytest.mark.parametrize(
    ("robot", "trials", "timestep", "name", "said"),
    (
        ("panda", 2, 1e-3, "recursive", "robot"),
        ("z1", 3, 1e-3, "recursive", "trials"),
        ("z1", 2, 2e-3, "recursive", "timestep"),
        ("z1", 2, 1e-3, "recursive-contact", "adapter"),
    ),
)
def test_another_adapters_memory_is_refused(
    robot: str, trials: int, timestep: float, name: str, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "memory.safetensors"
    make_adapter("recursive", ROBOT, 2).save(path)
    other = make_adapter(name, Robot.load(robot), trials, timestep=timestep)
    with pytest.raises(RetorqueError, match=said):
        other.load(path)


def test_a_memory_of_other_settings_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.safetensors"
    make_adapter("recursive", ROBOT, 2, settings={"window": 0.08}).save(path)
    with pytest.raises(RetorqueError, match="other settings"):
        make_adapter("recursive", ROBOT, 2).load(path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(RetorqueError):
        make_adapter("recursive", ROBOT, 2).load(path)
    with pytest.raises(RetorqueError):
        make_adapter("recursive", ROBOT, 2).load(tmp_path / "nowhere.safetensors")


def test_weights_by_path(tmp_path: Path) -> None:
    mine = tmp_path / "mine.safetensors"
    shutil.copy(find("tam", "z1"), mine)
    own, tuned = make_adapter("tam", ROBOT, weights=mine), make_adapter("tam-ft", ROBOT)
    general = make_adapter("tam", ROBOT)
    state, nominal = State(0.0, ROBOT.home, np.zeros(6), np.zeros(6)), np.linspace(-3.0, 3.0, 6)
    found = []
    for adapter in (own, tuned, general):
        adapter.observe(state)
        belief = adapter.learn()
        if belief is not None:
            adapter.adopt(belief)
        found.append(adapter.correct(state, nominal))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0.0


def test_settings_reach_the_adapter_as_dataclass_or_by_name() -> None:
    assert make_adapter("recursive", ROBOT, settings={"forgetting": "0.99"}).settings.forgetting == 0.99
    assert make_adapter("recursive", ROBOT, settings=RecursiveSettings(stride=0.02)).learn_every == 20


@pytest.mark.parametrize(
    ("name", "given", "said"),
    (
        ("recursive", {"settings": {"windw": 0.1}}, "did you mean 'window'"),
        ("recursive", {"settings": {"window": "wide"}}, "is a float"),
        ("direct", {"settings": {"window": 0.1}}, "no settings"),
        ("direct", {"weights": "x"}, "no weights"),
        ("tam", {"weights": "nowhere.safetensors"}, "nowhere"),
        ("oracle", {}, "true parameters"),
        ("resursive", {}, "did you mean 'recursive'"),
        ("json:loads", {}, "is not an adapter"),
        ("tam", {"timestep": 2e-3}, "not at 500 Hz"),
        ("recursive", {"timestep": 0.05}, "not at 20 Hz"),
        ("direct", {"timestep": 1.0}, "not at 1 Hz"),
    ),
)
def test_what_does_not_fit_is_refused(name: str, given: dict, said: str) -> None:
    with pytest.raises(RetorqueError, match=said):
        make_adapter(name, ROBOT, **given)


@pytest.mark.parametrize("name", [*LEARNING, "direct", "identified"])
def test_one_robot_is_the_row_of_a_batch(name: str, recording: Path, tmp_path: Path) -> None:
    """(n,) works as (trials, n) does, bare and supervised, for every adapter."""
    if name == "identified":
        card = tmp_path / "card.toml"
        Parameters.sample(ROBOT, profile_of(ROBOT), 1, 5)[0].on_card(ROBOT).save(card)
        given = {"settings": {"card": str(card)}}
    else:
        given = {}
    arrays = np.load(recording)
    one, batch = make_adapter(name, ROBOT, **given), make_adapter(name, ROBOT, 1, **given)
    safe, safe_batch = Supervisor(make_adapter(name, ROBOT, **given)), Supervisor(make_adapter(name, ROBOT, 1, **given))
    learners = [InlineLearner(adapter) for adapter in (one, batch, safe, safe_batch)]
    for k in range(60):
        q, qd, torque, nominal = (arrays[key][k] for key in ("position", "velocity", "torque", "nominal"))
        time = float(arrays["time"][k])
        sent = []
        for adapter, learner, rows in zip((one, batch, safe, safe_batch), learners, (0, [0], 0, [0]), strict=True):
            state = State(time, q[rows], qd[rows], torque[rows])
            adapter.observe(state)
            learner.turn()
            sent.append(adapter.correct(state, nominal[rows]))
        assert sent[0].shape == sent[2].shape == (6,) and sent[1].shape == sent[3].shape == (1, 6)
        np.testing.assert_array_equal(sent[0], sent[1][0])
        np.testing.assert_array_equal(sent[2], sent[3][0])
    assert np.shape(safe.health) == () and np.shape(safe_batch.health) == (1,)


def test_every_adapter_says_what_it_does() -> None:
    assert all(text and not text.endswith(".") for _, text in ADAPTERS.values())
