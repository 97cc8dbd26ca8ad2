"""tam-recursive: its residuals, its network in NumPy and in PyTorch, its training, and what it makes of garbage."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.tam.tam_weights import find
from retorque.adapt.tam_recursive.adapter import MOST_OWN, TamRecursive
from retorque.adapt.tam_recursive.residual_network import ResidualNetwork
from retorque.adapt.tam_recursive.residual_weights import FORMAT, NETWORK, ON_BOARD, load_weights
from retorque.adapt.tam_recursive.residuals import BLOCK, DEPTH, DOUBTS, FEATURES, FINE, TAPS, Residuals
from retorque.bench.tracking import ideal_motion
from retorque.learn.weights import save_network
from retorque.loop.history import History
from retorque.loop.learner import InlineLearner
from retorque.loop.loop import Loop, run
from retorque.physics.rigid_body import RigidBody
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask
from retorque.work.errors import RetorqueError


def push(residuals: Residuals, blocks: int, acceleration: float, torque: float, inverse, start: int = 0) -> None:
    """Reports of a joint that speeds up steadily under a steady torque."""
    for tick in range(start, start + BLOCK * blocks):
        time = tick * 1e-3
        row = np.array([[0.5 * acceleration * time**2]]), np.array([[acceleration * time]]), np.array([[torque]])
        residuals.history.add(State(time, *row))
        if residuals.due:
            residuals.close(inverse)


def test_residuals_are_what_the_estimate_cannot_explain():
    residuals = Residuals(np.array([2.0]), History(2 * BLOCK, 1, 1, 1e-3))
    push(residuals, DEPTH + 2, 3.0, 7.0, lambda q, qd, qdd, given: 1.5 * qdd)
    taps = residuals.taps(np.zeros((1, 1)))
    assert taps.shape == (1, 1, TAPS)
    np.testing.assert_allclose(taps[..., :-1], (7.0 - 4.5) / 2.0, rtol=1e-9)
    assert taps[0, 0, -1] == 0.0  # the disturbance
    assert residuals.features(taps, np.ones((DOUBTS, 1, 1))).shape == (1, 1, FEATURES)


def test_what_follows_a_gap_is_not_sound_and_a_repeated_report_says_nothing():
    residuals = Residuals(np.array([1.0]), History(2 * BLOCK, 1, 1, 1e-3))
    push(residuals, 3, 0.0, 4.0, lambda q, qd, qdd, given: 0.0 * qdd)
    assert np.count_nonzero(residuals.taps(np.zeros((1, 1)))) == 2 and residuals.sound.all()
    push(residuals, 1, 0.0, 4.0, lambda q, qd, qdd, given: 0.0 * qdd, start=100)
    assert not residuals.sound.any()
    still = State(0.104, np.zeros((1, 1)), np.zeros((1, 1)), np.ones((1, 1)))
    for _ in range(2 * BLOCK):
        residuals.history.add(still)
    assert not residuals.due


def test_what_is_not_finite_silences_one_robot_only_and_a_lone_report_is_bridged():
    residuals = Residuals(np.array([1.0]), History(2 * BLOCK, 2, 1, 1e-3))
    lost = [2 * BLOCK + 1, *range(7 * BLOCK, 8 * BLOCK)]
    for tick in range(10 * BLOCK):
        torque = np.array([[np.nan if tick in lost else 1.0], [1.0]])
        residuals.history.add(State(tick * 1e-3, np.zeros((2, 1)), np.zeros((2, 1)), torque))
        if residuals.due:
            residuals.close(lambda q, qd, qdd, given: 0.0 * qdd)
        if tick == 6 * BLOCK:
            assert residuals.sound.all()
    assert residuals.sound.tolist() == [False, True]
    assert np.all(np.isfinite(residuals.taps(np.zeros((2, 1)))))
    for tick in range(10 * BLOCK, (10 + FINE) * BLOCK):
        residuals.history.add(State(tick * 1e-3, np.zeros((2, 1)), np.zeros((2, 1)), np.ones((2, 1))))
        if residuals.due:
            residuals.close(lambda q, qd, qdd, given: 0.0 * qdd)
    assert residuals.sound.all()


def test_the_network_is_the_same_in_numpy_and_in_pytorch():
    torch = pytest.importorskip("torch")
    from retorque.adapt.tam_recursive.training.residual_module import Network

    torch.manual_seed(0)
    network = Network()
    torch.nn.init.normal_(network.head.weight, std=0.1)
    rng = np.random.default_rng(0)
    features = rng.standard_normal((3, 7, FEATURES)).astype(np.float32)
    taps = rng.standard_normal((3, 7, TAPS)).astype(np.float32)
    readout = ResidualNetwork({name: value.detach().numpy() for name, value in network.state_dict().items()})
    with torch.no_grad():
        expected = network(torch.from_numpy(features), torch.from_numpy(taps), torch.ones(3, 7))
        wider = [torch.nn.functional.pad(torch.from_numpy(x), (0, 0, 0, 1)) for x in (features, taps)]
        padded = network(*wider, torch.tensor([1.0] * 7 + [0.0]).expand(3, 8))
    for one, other, third in zip(readout(features, taps), expected, padded, strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=1e-5)
        np.testing.assert_allclose(one, third.numpy()[:, :7], atol=1e-5)


def test_training_makes_weights_that_load_and_goes_on_where_it_stopped(tmp_path):
    pytest.importorskip("torch")
    from retorque.adapt.tam_recursive.training.train import ResidualTraining, train

    settings = ResidualTraining(
        robots=("panda", "piper"),
        rounds=2,
        worlds=1,
        trials=2,
        duration=2.0,
        steps=20,
        batch=64,
        workers=1,
        out=tmp_path / "run",
    )
    path = train(settings)
    tensors, header = load_weights(path)
    assert header["made"]["worlds"] == 2 and header["made"]["seed"] == 1000
    _, first = load_weights(tmp_path / "run" / "round-1.safetensors")
    (tmp_path / "run" / "round-2.safetensors").unlink()
    again, _ = load_weights(train(settings))
    assert first["made"]["round"] == 1
    for name, value in tensors.items():
        np.testing.assert_allclose(again[name], value, atol=1e-6)
    with pytest.raises(RetorqueError, match=r"other settings \(seed\)"):
        train(replace(settings, seed=1001))


def test_training_in_the_loop_of_default_begins_with_the_weights_it_is_given(tmp_path):
    pytest.importorskip("torch")
    from retorque.adapt.tam_recursive.training.train import ResidualTraining, train

    settings = ResidualTraining(
        robots=("piper",), loop="default", start=ON_BOARD, rounds=1, worlds=2, trials=2, duration=2.0, steps=5,
        batch=64, learning_rate=1e-6, workers=1, out=tmp_path / "run",
    )  # fmt: skip
    tensors, _ = load_weights(train(settings))
    for name, value in load_weights()[0].items():
        np.testing.assert_allclose(tensors[name], value, atol=1e-3)


def test_touches_in_training_are_what_they_say():
    pytest.importorskip("torch")
    from retorque.adapt.tam_recursive.training.training_touches import TrainingTouches

    robot = Robot.load("panda")
    touches = TrainingTouches.sample(robot, 60, 10.0, 0.7, (0.03, 0.2), np.random.default_rng(1000))
    joints, hand, arm = touches.torque.any((1, 2)), *touches.force.any((2, 3))
    assert not np.any(joints & (hand | arm)) and not np.any(hand & arm)
    assert min(joints.sum(), hand.sum(), arm.sum(), (~(joints | hand | arm)).sum()) >= 5
    time = touches.start[:, 0] + 0.5 * touches.length[:, 0]  # the first touch is at its height
    body, q = RigidBody(robot), np.broadcast_to(robot.home, (60, 7))
    trial = int(np.flatnonzero(hand)[0])
    others = np.abs(time[trial] - touches.start[trial, 1:] - 0.5 * touches.length[trial, 1:])
    alone = not np.any(others < 0.5 * touches.length[trial, 1:])
    total = touches.at(float(time[trial]), q)
    expected = body.jacobian(robot.end_effector, robot.home)[:3].T @ touches.force[0, trial, 0]
    assert alone and np.abs(expected).max() > 1.0
    np.testing.assert_allclose(total[trial], expected, rtol=1e-9)
    assert not touches.at(-2.0, q).any() and not touches.at(20.0, q).any()


def test_training_refuses_what_cannot_be_done(tmp_path):
    pytest.importorskip("torch")
    from retorque.adapt.tam_recursive.training.train import ResidualTraining, train

    with pytest.raises(RetorqueError, match="--rounds"):
        train(ResidualTraining(rounds=0, out=tmp_path))
    with pytest.raises(RetorqueError, match="at least one robot"):
        train(ResidualTraining(robots=(), out=tmp_path))
    with pytest.raises(RetorqueError, match="unknown loop 'defualt'; did you mean 'default'"):
        train(ResidualTraining(loop="defualt", out=tmp_path))


def test_altered_truncated_and_foreign_weights_are_refused(tmp_path):
    content = ON_BOARD.read_bytes()
    tensors, header = load_weights()
    file = tmp_path / "w.safetensors"
    for broken, message in (
        (content[: len(content) // 2], "not an intact"),
        (content[:-4] + bytes([content[-4] ^ 1]) + content[-3:], "altered"),
        (Path(__file__).read_bytes(), "not an intact"),
        (find("tam").read_bytes(), "holds TAM weights, not tam-recursive weights"),
    ):
        file.write_bytes(broken)
        with pytest.raises(RetorqueError, match=message):
            load_weights(file)
    save_network(file, tensors, NETWORK, FORMAT, {**header, "shape": {"block": 7}})
    with pytest.raises(RetorqueError, match="another version"):
        load_weights(file)
    save_network(file, {**tensors, "head.bias": tensors["head.bias"] * np.nan}, NETWORK, FORMAT, header)
    with pytest.raises(RetorqueError, match=r"not finite \(head.bias\)"):
        load_weights(file)
    with pytest.raises(RetorqueError, match="1000 Hz"):
        TamRecursive(Robot.load("panda"), 1, 2e-3)


@pytest.mark.parametrize(("robot", "world"), [("panda", {"contact": True}), ("panda", {"effect": "lugre"})])
def test_it_beats_no_correction_by_far(robot, world):
    robot = Robot.load(robot)
    task = TrackingTask(robot, TrackingSettings(trials=4, seed=2000, duration=6.0, noise=True, **world))
    ideal = ideal_motion(task).position
    errors = {}
    for name in ("direct", "tam-recursive"):
        target = task.target(threads=1)
        loop = Loop(target, task.reference, task.controller(), make(name, robot, 4))
        trace = run(loop, task.settings.duration, before=task.pushes(target))
        errors[name] = np.sqrt(np.mean((trace.position - ideal) ** 2))
    assert errors["tam-recursive"] < 0.2 * errors["direct"]


def test_what_it_sends_stays_finite_and_bounded_whatever_comes_in():
    robot = Robot.load("piper")
    adapter, rng = TamRecursive(robot, 2), np.random.default_rng(0)
    time = 0.0
    for tick in range(600):
        time += 1e-3 * rng.integers(0, 3)
        value = rng.standard_normal((3, 2, 6)) * 10.0 ** rng.uniform(-3, 6)
        if tick % 5 == 0:
            value[rng.integers(3), rng.integers(2)] = rng.choice([np.nan, np.inf])
        adapter.observe(State(time, *value))
        InlineLearner(adapter).turn()
        assert np.all(np.abs(adapter._own) <= MOST_OWN * adapter.unit)
        assert np.all(np.isfinite(adapter.external_torque(time)))
    home = State(time + 1.0, np.tile(robot.home, (2, 1)), np.zeros((2, 6)), np.zeros((2, 6)))
    assert np.all(np.isfinite(adapter.correct(home, np.ones((2, 6)))))
