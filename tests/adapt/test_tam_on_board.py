"""The weights on board: they load, are small, and make targets move more like the ideal robot."""

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.tam.tam_weights import FOLDER, load_weights
from retorque.adapt.tam_recursive.residual_weights import ON_BOARD
from retorque.bench.tracking import ideal_motion
from retorque.loop.health import Health
from retorque.loop.loop import Loop, run
from retorque.loop.supervisor import Supervisor
from retorque.robots.robot import Robot
from retorque.tasks.tracking_task import TrackingSettings, TrackingTask


def test_weights_on_board_load_and_are_small():
    files = sorted(FOLDER.glob("*.safetensors"))
    assert "tam" in [path.stem for path in files]
    assert sum(path.stat().st_size for path in files) < 30e6
    for path in files:
        if path == ON_BOARD:  # of another network, with a file format of its own
            continue
        tensors, preset, header = load_weights(path)
        assert all(np.all(np.isfinite(value)) for value in tensors.values())
        assert preset.name == ("paper-small" if path.stem == "tam-paper" else "small")
        assert header["made"]["seed"] >= 1000


@pytest.mark.parametrize(
    ("name", "adapter"), [("panda", "tam"), pytest.param("z1", "tam", marks=pytest.mark.slow), ("panda", "tam-ft")]
)
def test_tam_cuts_the_tracking_error(name, adapter):
    robot = Robot.load(name)
    task = TrackingTask(robot, TrackingSettings(trials=4, seed=2000, duration=5.0, noise=True))
    ideal = ideal_motion(task).position
    errors = {}
    for which in ("direct", adapter):
        loop = Loop(task.target(threads=1), task.reference, task.controller(), make(which, robot, 4))
        trace = run(loop, task.settings.duration)
        errors[which] = np.sqrt(np.mean((trace.position - ideal) ** 2))
    assert errors[adapter] < 0.35 * errors["direct"]


def test_what_learns_nothing_never_grows_stale():
    robot = Robot.load("panda")
    task = TrackingTask(robot, TrackingSettings(trials=1, seed=2000, duration=2.0, noise=True))
    module = Supervisor(make("tam-short-window", robot, 1))
    run(Loop(task.target(threads=1), task.reference, task.controller(), module), 1.0)
    assert not np.any(module.health & int(Health.STALE)) and np.all(module.gain == 1.0)
