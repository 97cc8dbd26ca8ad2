"""The runtime against the training network, gaps in the history, and weights that do not fit."""

from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import save

from retorque.adapt.tam.adapter import FineTuned, TamAdapter
from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.features import adaptor_features
from retorque.adapt.tam.preset import Preset, preset
from retorque.adapt.tam.tam_weights import NETWORK, load_weights, save_weights
from retorque.adapt.tam.training.rollouts import RolloutSettings, generate
from retorque.learn.weights import save_network
from retorque.loop.learner import InlineLearner
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.work.errors import RetorqueError

torch = pytest.importorskip("torch")

from retorque.adapt.tam.training.network import Tam  # noqa: E402 (after the check that torch is there)


def network(size: Preset) -> tuple[Tam, dict[str, np.ndarray]]:
    torch.manual_seed(1)
    made = Tam(size).eval()
    with torch.no_grad():  # the heads start at zero, where every mistake would be invisible
        for layer in (made.adaptor.head, made.adaptor.basis, made.adaptor.modulate):
            layer.weight.normal_(0.0, 0.05)
    return made, {name: value.numpy() for name, value in made.state_dict().items()}


@pytest.fixture
def weights(tmp_path):
    size = preset("tiny")
    path = tmp_path / "weights.safetensors"
    robots = [Robot.load("panda"), Robot.load("piper")]
    save_weights(path, network(size)[1], size, robots, "", {"seed": 0})
    return path


@pytest.mark.parametrize("full", [False, True])
def test_streaming_matches_the_training_network_on_recorded_histories(full):
    size = Preset(**{**preset("tiny").header(), "factorised": not full})
    robot = Robot.load("panda")
    context = Context(robot)
    shard = generate(context, size, RolloutSettings(rollouts=3), 2)
    made, tensors = network(size)
    rollouts = len(shard["fast"])
    static = torch.from_numpy(np.broadcast_to(context.static, (rollouts, 7, 8)).copy())
    present = torch.ones(rollouts, 7, dtype=torch.bool)
    with torch.no_grad():
        fast, slow = torch.from_numpy(shard["fast"]), torch.from_numpy(shard["slow"])
        z = made.encoder(fast, slow, static, present)
        patches = made.encoder.patches(fast, slow).numpy()
    encoder, adaptor = StreamingEncoder(tensors, size, context, rollouts), FastAdaptor(tensors, size, context)
    for column in range(size.columns):
        latent = encoder.push(patches[:, column])
        adaptor.set_latent(latent)
        window = shard["window"][:, column, 0].astype(float)
        q, qd, torque = window[:, 0], window[:, 1], window[:, 2]
        nominal = shard["command"][:, column, 0].astype(float)
        ideal = context.body.forward_dynamics(q[..., 0], qd[..., 0], nominal)
        probes = context.probe_torques(q[..., 0], qd[..., 0], ideal)
        found = adaptor.correction(q, qd, torque, nominal, ideal, probes)
        double = [torch.from_numpy(x) for x in (q, qd, torque, nominal, ideal, probes)]
        scales = SimpleNamespace(**{k: torch.from_numpy(np.array(v)) for k, v in vars(adaptor.scales).items()})
        features = tuple(f.float() for f in adaptor_features(torch, scales, *double))
        unit = torch.from_numpy(context.unit).float()
        with torch.no_grad():
            expected = made.adaptor(z[:, column], features, double[3].float() / unit, unit, present)
        np.testing.assert_allclose(found, (expected * unit).numpy(), atol=1e-4)
        np.testing.assert_allclose(latent, z[:, column].numpy(), atol=1e-5)


@pytest.mark.parametrize("name", ["panda", "z1"])
def test_the_tick_s_algebra_is_that_of_the_history(name):
    context = Context(Robot.load(name))
    q, qd, torque = np.random.default_rng(3).standard_normal((3, 4, context.robot.n, 2))[..., 0]  # not contiguous
    ideal, probes = context.ideal_response(q, qd, torque)
    expected = context.body.forward_dynamics(q, qd, torque)
    np.testing.assert_allclose(ideal, expected, rtol=1e-9)
    np.testing.assert_allclose(probes, context.probe_torques(q, qd, expected), rtol=1e-9, atol=1e-9)


def test_corrections_are_bounded_by_the_profile():
    size, context = preset("tiny"), Context(Robot.load("panda"))
    adaptor, rng = FastAdaptor(network(size)[1], size, context), np.random.default_rng(4)
    q, qd, torque = rng.standard_normal((3, 5, 7, size.window))
    nominal = 20.0 * rng.standard_normal((5, 7))
    ideal, probes = context.ideal_response(q[..., 0], qd[..., 0], nominal)
    adaptor.set_latent(1e4 * rng.standard_normal((5, 7, size.latent)).astype(np.float32))
    found = adaptor.correction(q, qd, torque, nominal, ideal, probes)
    p, speed = context.profile, np.abs(qd.mean(axis=-1))
    most = p.friction_max + p.bias_max * (1.0 + p.bias_difference) + p.dead_zone_max + context.unit
    most = most + np.abs(ideal) * context.armature_range + p.viscous_max * speed
    most += 0.25 * np.abs(nominal - context.robot.armature * ideal) + context.unit * np.abs(probes).sum(axis=-2)
    beyond = np.abs(found - ideal * context.armature_shift)
    assert np.all(beyond <= most * (1.0 + 1e-9)) and np.mean(np.isclose(beyond, most)) > 0.2


def drive(adapter: TamAdapter, ticks: int, skip: range | None = None, broken: range | None = None) -> np.ndarray:
    """Feed a motion and collect corrections, (ticks, trials, n); `skip` is not reported, `broken` is not finite."""
    found = []
    robot = adapter.robot
    for tick in range(ticks):
        time = tick * 1e-3
        wave = np.sin(3.0 * time + np.arange(robot.n))
        q = np.broadcast_to(robot.home + 0.3 * wave, (adapter.trials, robot.n)).copy()
        qd = np.broadcast_to(0.9 * np.cos(3.0 * time + np.arange(robot.n)), q.shape).copy()
        state = State(time, q, qd, 3.0 + q)
        if broken is not None and tick in broken:
            state.position[:] = np.nan
        if skip is None or tick not in skip:
            adapter.observe(state)
            InlineLearner(adapter).turn()
        found.append(adapter.correct(state, np.ones_like(q)))
    return np.array(found)


def test_trials_do_not_touch_each_other_and_reset_forgets(weights):
    robot = Robot.load("panda")
    three, one = (TamAdapter(robot, trials, weights=weights) for trials in (3, 1))
    first = drive(three, 650)
    np.testing.assert_allclose(first[:, 1], drive(one, 650)[:, 0], atol=1e-5)
    assert three.patches.columns == 4
    three.reset()
    assert np.array_equal(first, drive(three, 650))


def test_gaps_are_masked(weights):
    robot = Robot.load("panda")
    clean, gap, broken = (TamAdapter(robot, 1, weights=weights) for _ in range(3))
    drive(clean, 650)
    drive(gap, 650, skip=range(200, 260))
    drive(broken, 650, broken=range(200, 260))
    assert gap.patches.columns == clean.patches.columns == 4
    masked = gap.patches._fast[0, :, 0, -1]  # the rows of ticks 200 to 600
    assert np.array_equal(masked, (np.arange(40) >= 6).astype(np.float32))
    np.testing.assert_array_equal(gap.patches._fast, broken.patches._fast)
    np.testing.assert_array_equal(gap.patches._fast[0, :6], 0.0)
    np.testing.assert_allclose(gap.patches._fast[0, 12:], clean.patches._fast[0, 12:], atol=1e-6)


def test_reports_out_of_order_are_left_out(weights):
    adapter = TamAdapter(Robot.load("panda"), 1, weights=weights)
    drive(adapter, 50)
    rows = np.ones((1, 7))
    adapter.observe(State(0.01, rows, rows, rows))
    adapter.observe(State(np.nan, rows, rows, rows))
    assert adapter.history.total == 50
    adapter.observe(State(1e6, rows, rows, rows))
    assert adapter.history.total <= 50 + adapter.history.ticks + 1


def test_weights_that_do_not_fit_are_refused(weights, tmp_path):
    robot = Robot.load("panda")
    with pytest.raises(RetorqueError, match="1000 Hz"):
        TamAdapter(robot, 1, timestep=2e-3, weights=weights)
    tensors, size, header = load_weights(weights)
    only = tmp_path / "only.safetensors"
    save_weights(only, tensors, size, [Robot.load("piper")], "piper", {})
    with pytest.raises(RetorqueError, match="made for robot 'piper'"):
        TamAdapter(robot, 1, weights=only)
    with pytest.raises(RetorqueError, match="tam-ur10e"):
        FineTuned(Robot.load("ur10e"), 1)
    for change, message in (
        ({"robots": {"panda": list(reversed(robot.joint_names))}}, "expects joints"),
        ({"robots": {"panda": 7}}, "no usable 'robots'"),
        ({"rate": "fast"}, "no usable 'rate'"),
        ({"rate": float("nan")}, "trained at nan Hz"),
        ({"gravity": "none"}, "gravity convention"),
        ({"shape": {"name": "small"}}, "header's preset"),
        ({"shape": {**header["shape"], "width": "wide"}}, "'width' of the wrong type"),
        ({"shape": None}, "no usable 'shape'"),
    ):
        other = tmp_path / "other.safetensors"
        save_network(other, tensors, NETWORK, 1, {**header, **change})
        with pytest.raises(RetorqueError, match=message):
            TamAdapter(robot, 1, weights=other)
    save_network(other, tensors, NETWORK, 99, header)
    with pytest.raises(RetorqueError, match="format 99"):
        TamAdapter(robot, 1, weights=other)


def test_broken_files_are_refused(weights, tmp_path):
    content = weights.read_bytes()
    bad = tmp_path / "bad.safetensors"
    for broken, message in (
        (content[:-100], "not an intact safetensors"),
        (content[:-4] + bytes([content[-4] ^ 1]) + content[-3:], "checksum"),
        (b"", "not an intact safetensors"),
        (save({"a": np.zeros(3, dtype=np.float32)}), "no header"),
    ):
        bad.write_bytes(broken)
        with pytest.raises(RetorqueError, match=message):
            load_weights(bad)
    with pytest.raises(RetorqueError, match="there is no file"):
        load_weights(tmp_path / "nowhere.safetensors")


def test_hands_and_humanoids_are_refused(weights):
    with pytest.raises(RetorqueError, match="fixed arms"):
        TamAdapter(Robot.load("leap_hand"), 1, weights=weights)
