"""The weights on board: they load, are small, and make targets move more like the ideal robot."""

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.tam.weights import FOLDER, load_weights
from retorque.adapt.tam.with_recursive import TamRecursive
from retorque.bench.tracking import ideal_motion
from retorque.physics.state import State
from retorque.robots.robot import Robot
from retorque.runtime.loop import Segment, run
from retorque.tasks.tracking import TrackingSettings, TrackingTask


def test_weights_on_board_load_and_are_small():
    files = sorted(FOLDER.glob("*.safetensors"))
    assert "tam" in [path.stem for path in files]
    assert sum(path.stat().st_size for path in files) < 30e6
    for path in files:
        tensors, preset, header = load_weights(path)
        assert all(np.all(np.isfinite(value)) for value in tensors.values())
        assert preset.name == "small" and header["made"]["seed"] >= 1000


@pytest.mark.parametrize(("name", "adapter"), [("panda", "tam"), ("z1", "tam"), ("panda", "tam-ft")])
def test_tam_cuts_the_tracking_error(name, adapter):
    robot = Robot.load(name)
    task = TrackingTask(robot, TrackingSettings(trials=4, seed=2000, duration=5.0, noise=True))
    ideal = ideal_motion(task).position
    errors = {}
    for which in ("direct", adapter):
        trace = run(task.target(threads=1), [Segment(task.reference, task.controller())], make(which, robot, 4))
        errors[which] = np.sqrt(np.mean((trace.position - ideal) ** 2))
    assert errors[adapter] < 0.35 * errors["direct"]


def test_the_mixture_leans_to_the_parent_that_predicts_better():
    robot = Robot.load("panda")
    task = TrackingTask(robot, TrackingSettings(trials=2, seed=2001, duration=2.0))
    adapter = TamRecursive(robot, 2)
    adapter.tam.adaptor.correction = lambda q, qd, torque, nominal, ideal, probes: 5.0 * np.ones_like(nominal)
    run(task.target(threads=1), [Segment(task.reference, task.controller())], adapter)
    assert np.all(adapter.share > 0.9)
    adapter.reset()
    assert np.all(adapter.share == 0.5)


def test_the_mixture_survives_garbage():
    robot = Robot.load("piper")
    adapter, rng = TamRecursive(robot, 1), np.random.default_rng(0)
    for tick in range(400):
        value = rng.standard_normal((3, 1, 6))
        if tick % 7 == 0:
            value[rng.integers(3)] = np.nan
        state = State(tick * 1e-3 * rng.integers(1, 3), *value)
        adapter.observe(state)
        adapter.learn()
    calm = State(1.0, robot.home[None], np.zeros((1, 6)), np.zeros((1, 6)))
    for tick in range(30):
        adapter.observe(State(1.0 + tick * 1e-3, calm.position, calm.velocity, calm.torque))
    assert np.all(np.isfinite(adapter.correct(calm, np.ones((1, 6)))))
    assert np.all(np.isfinite(adapter.share))
