"""Labels against the inverse torque-command map, the derivative fit, and shards that travel with their settings."""

import numpy as np
import pytest

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.derivative import accelerations
from retorque.adapt.tam.physical import PhysicalRange
from retorque.adapt.tam.preset import Preset, preset
from retorque.adapt.tam.training.labels import state_labels, teacher
from retorque.adapt.tam.training.recipe import load_shard, shard_bytes, shard_header
from retorque.adapt.tam.training.rollouts import RolloutSettings, generate
from retorque.physics.default_profile import profile_of
from retorque.physics.parameters import Parameters
from retorque.physics.retarget import inverse_torque_command
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError


@pytest.mark.parametrize("name", ["panda", "z1"])
def test_teacher_is_the_inverse_torque_command(name):
    robot = Robot.load(name)
    context, rng = Context(robot), np.random.default_rng(3)
    hidden = Parameters.sample(robot, profile_of(robot), 4, 5)
    shape = (4, 6, robot.n)
    q = robot.home + rng.uniform(-1.0, 1.0, shape)
    qd, command, push, nominal = (scale * rng.standard_normal(shape) for scale in (1.0, 10.0, 5.0, 10.0))
    label = state_labels(context, hidden, q, qd, command, push)
    label.update(dead_zone=hidden.dead_zone[:, None], torque_scale=hidden.torque_scale[:, None])
    found = teacher(np, label, nominal)
    wide = hidden[np.repeat(np.arange(4)[:, None], 6, axis=1)]
    ideal = context.body.forward_dynamics(q, qd, nominal + push)
    expected = inverse_torque_command(context.body, wide, q, qd, ideal, push)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_recorded_acceleration_is_the_targets_own():
    robot = Robot.load("panda")
    context, rng = Context(robot), np.random.default_rng(4)
    hidden = Parameters.sample(robot, profile_of(robot), 2, 6)
    q, qd = robot.home + 0.3 * rng.standard_normal((2, 3, 7)), rng.standard_normal((2, 3, 7))
    command, push = 5.0 * rng.standard_normal((2, 3, 7)), rng.standard_normal((2, 3, 7))
    label = state_labels(context, hidden, q, qd, command, push)
    wide = hidden[np.repeat(np.arange(2)[:, None], 3, axis=1)]
    back = inverse_torque_command(context.body, wide, q, qd, label["acceleration"], push)
    np.testing.assert_allclose(back, command, atol=1e-7)


def test_probes_are_linear_in_acceleration():
    context, rng = Context(Robot.load("piper")), np.random.default_rng(0)
    q, qd, qdd = rng.standard_normal((3, 5, 6))
    matrix, bias = context.probe_matrices(q, qd)
    direct = context.probe_torques(q, qd, qdd)
    np.testing.assert_allclose(np.matmul(matrix, qdd[:, None, :, None])[..., 0] + bias, direct, atol=1e-9)


def test_derivative_fit_finds_accelerations_with_and_without_gaps():
    time = np.arange(-25, 525) * 1e-3
    q = np.sin(3.0 * time)[:, None, None] * np.ones((1, 2, 3))
    qd = 3.0 * np.cos(3.0 * time)[:, None, None] * np.ones((1, 2, 3))
    truth = -9.0 * np.sin(3.0 * time[30:530:10])
    valid = np.ones((550, 2), dtype=bool)
    assert np.max(np.abs(accelerations(q, qd, valid, 25, 10, 1e-3)[..., 0] - truth[:, None])) < 0.02
    valid[200:230, 1] = False
    dirty = np.where(valid[..., None], q, np.nan)
    found = accelerations(dirty, np.where(valid[..., None], qd, np.nan), valid, 25, 10, 1e-3)
    assert np.max(np.abs(found[..., 0] - truth[:, None])) < 0.4


def test_without_samples_there_is_no_acceleration():
    q = np.ones((70, 1, 2))
    assert np.all(accelerations(q, q, np.zeros((70, 1), dtype=bool), 25, 10, 1e-3) == 0.0)


def test_a_shard_comes_back_and_is_refused_for_other_histories(tmp_path):
    robot, size, settings = Robot.load("piper"), preset("tiny"), RolloutSettings(rollouts=3)
    arrays = generate(Context(robot), size, settings, 11)
    again = generate(Context(robot), size, settings, 11)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    assert arrays["fast"].shape[:3] == (3, size.columns * size.stride_rows, 6)
    path = tmp_path / "a.safetensors"
    path.write_bytes(shard_bytes(arrays, shard_header("piper", robot, size, settings, 11)))
    loaded, head = load_shard(path, size)
    assert head["seed"] == 11 and head["robot"] == "piper" and head["rollouts"]["rollouts"] == 3
    assert all(np.array_equal(arrays[name], loaded[name]) for name in arrays)
    with pytest.raises(RetorqueError, match="other histories"):
        load_shard(path, Preset(**{**size.header(), "average": 20}))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(RetorqueError, match="not an intact safetensors file"):
        load_shard(path, size)


def test_physical_numbers_come_back():
    robot = Robot.load("rby1")
    hidden = Parameters.sample(robot, profile_of(robot), 5, 1)
    scale = PhysicalRange(Context(robot))
    joint, payload = scale.encode(hidden)
    assert np.max(np.abs(joint)) <= 1.0 + 1e-9 and np.max(np.abs(payload)) <= 1.0 + 1e-9
    np.testing.assert_allclose(scale.decode(joint, payload).flatten(), hidden.flatten(), rtol=1e-9, atol=1e-12)
