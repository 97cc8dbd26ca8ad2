"""TAM the paper's way: its sizes, its inputs and nothing else, its queries and loss, and the same network when run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt import make
from retorque.adapt.tam.adapter import PaperTam, TamAdapter, TamSettings
from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.features import BOUND, history_rows
from retorque.adapt.tam.paper.paper_adaptor import PaperAdaptor
from retorque.adapt.tam.paper.paper_scales import QUERIES, RESIDUAL, TORQUE
from retorque.adapt.tam.preset import preset
from retorque.adapt.tam.tam_weights import save_weights
from retorque.adapt.tam.training.rollouts import RolloutSettings, generate
from retorque.robots.robot import Robot
from retorque.robots.state import State
from retorque.runtime.compiled.constants import constants_of
from retorque.work.errors import RetorqueError

torch = pytest.importorskip("torch")

from retorque.adapt.tam.training import paper_loss as loss  # noqa: E402 (after the check that torch is there)
from retorque.adapt.tam.training.network import Tam  # noqa: E402
from retorque.adapt.tam.training.pool import Scales  # noqa: E402

TINY = preset("paper-tiny")


@pytest.fixture(scope="module")
def panda() -> Context:
    return Context(Robot.load("panda"))


@pytest.fixture(scope="module")
def shard(panda: Context) -> dict[str, np.ndarray]:
    return generate(panda, TINY, RolloutSettings(rollouts=3, contact=1.0), 2)


def batch_of(panda: Context, shard: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    scales = Scales(panda, 7).values
    rollouts = len(shard["fast"])
    batch = {key: torch.from_numpy(value) for key, value in shard.items() if key != "parameters"}
    return batch | {key: value[None].expand(rollouts, *value.shape) for key, value in scales.items()}


def network() -> Tam:
    torch.manual_seed(1)
    made = Tam(TINY).eval()
    with torch.no_grad():  # the heads start at zero, where every mistake would be invisible
        for layer in (made.adaptor.head, made.adaptor.modulate):
            layer.weight.normal_(0.0, 0.3)
    return made


def test_sizes_are_those_of_table_b2() -> None:
    size = preset("paper")
    made = Tam(size)
    encoder, adaptor = (sum(x.numel() for x in part.parameters()) for part in (made.encoder, made.adaptor))
    assert 4.35e6 < encoder < 4.45e6 and 62.5e3 < adaptor < 64e3  # 4.4 M and 63 K
    assert (size.patch, size.stride, size.half_window, size.columns) == (400, 200, 50, 60)
    assert (size.layers, size.heads, size.width, size.latent, size.window) == (5, 8, 256, 64, 8)
    assert made.encoder.patch.in_features == 4 * 400  # B.10: four raw numbers a tick, none averaged
    names = set(made.state_dict())
    assert not any("static" in name or "basis" in name or "dead_zone" in name for name in names)


def test_rows_are_position_velocity_torque_and_the_ideal_model_s_residual(panda: Context) -> None:
    h, rng = TINY.half_window, np.random.default_rng(0)
    time = np.arange(200 + 2 * h)[:, None, None] * 1e-3
    phase = rng.uniform(0.0, 6.0, (1, 2, 7))
    q, qd, qdd = 0.3 * np.sin(3 * time + phase), 0.9 * np.cos(3 * time + phase), -2.7 * np.sin(3 * time + phase)
    torque = rng.uniform(1.0, 5.0, q.shape)
    rows, slow = history_rows(panda, TINY, q, qd, torque, np.ones(q.shape[:2], dtype=bool), 1e-3)
    inner = slice(h, -h)
    wanted = (torque - panda.body.inverse_dynamics(q, qd, qdd)) / RESIDUAL  # no armature of any range is added
    expected = np.stack([q, qd, torque / TORQUE, np.clip(wanted, -BOUND, BOUND)], axis=-1)[inner].swapaxes(0, 1)
    np.testing.assert_allclose(rows[..., :3], expected[..., :3], atol=1e-6)
    np.testing.assert_allclose(rows[..., 3], expected[..., 3], atol=0.02)
    assert slow.size == 0


def test_queries_spread_around_the_applied_torque_as_b9_says(panda: Context) -> None:
    scales = Scales(panda, 7).values
    batch = {"command": torch.zeros(1, 1, 1, 7), **{k: scales[k][None] for k in ("command_noise", "limit")}}
    found = loss.queries(batch, 4096, torch.Generator().manual_seed(0))[0, 0, 0]
    spread = QUERIES * panda.profile.command_noise_white
    np.testing.assert_allclose(found.std(0).numpy(), np.minimum(spread, panda.robot.torque_limit), rtol=0.15)
    np.testing.assert_allclose(found.mean(0).numpy(), 0.0, atol=0.3)
    assert torch.all(found.abs() <= batch["limit"])


def test_the_loss_is_the_huber_of_the_corrected_torque(panda: Context, shard: dict[str, np.ndarray]) -> None:
    """A network that says nothing is wrong by the whole teacher's correction; above the threshold that counts |e|."""
    batch, made = batch_of(panda, shard), Tam(TINY)
    with torch.no_grad():
        made.adaptor.head.weight.zero_()
        z = made.latents(batch)
        found, followed = (loss.paper_loss(made, batch, 8, torch.Generator().manual_seed(0), z, k) for k in (0, 2))
    assert float(found["share"]) == pytest.approx(1.0) and float(found["error"]) == pytest.approx(float(found["size"]))
    assert 0.5 * float(found["size"]) < float(found["loss"]) < float(found["size"])  # the mean |e| in thresholds x 0.01
    assert float(followed["loss"]) > 1.5 * float(found["loss"])


def test_run_time_is_the_training_network(panda: Context, shard: dict[str, np.ndarray]) -> None:
    made, batch = network(), batch_of(panda, shard)
    tensors = {name: value.numpy() for name, value in made.state_dict().items()}
    with torch.no_grad():
        z = made.latents(batch)
        patches = made.encoder.patches(batch["fast"], batch["slow"]).numpy()
    encoder, adaptor = StreamingEncoder(tensors, TINY, panda, len(z)), PaperAdaptor(tensors, TINY, panda)
    nominal = shard["command"].astype(float) + 1.0
    for index in range(z.shape[1]):
        column = index + TINY.first_column
        adaptor.set_latent(encoder.push(patches[:, column]))
        window = shard["window"][:, column, 0].astype(float)
        none = np.zeros((len(z), 7))
        found = adaptor.correction(*window.swapaxes(0, 1), nominal[:, column, 0], none, none[:, None])
        with torch.no_grad():
            arguments = (batch["window"][:, column, 0], torch.from_numpy(nominal[:, column, :1]).float())
            expected = made.adaptor(z[:, index], *arguments, batch["present"])[:, 0].numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4)
        assert np.abs(expected).max() > 0.05


def test_nothing_is_corrected_before_a_whole_patch_and_no_trim_is_added(tmp_path: Path) -> None:
    path, robot = tmp_path / "weights.safetensors", Robot.load("panda")
    tensors = {name: value.detach().numpy() for name, value in network().state_dict().items()}
    save_weights(path, tensors, TINY, [robot], "", {"seed": 0})
    adapter = PaperTam(robot, 2, weights=path)
    nominal = np.ones((2, 7))
    corrected = []
    for tick in range(460):
        q = robot.home + 0.1 * np.sin(0.01 * tick) * np.ones((2, 7))
        adapter.observe(State(tick * 1e-3, q, 0.1 * np.cos(0.01 * tick) * np.ones((2, 7)), nominal))
        belief = adapter.learn()
        if belief is not None:
            adapter.adopt(belief)
        corrected.append(np.abs(adapter.correct(State(tick * 1e-3, q, q, nominal), nominal) - nominal).max())
    assert max(corrected[:450]) == 0.0 and min(corrected[451:]) > 0.0  # 400 samples and 50 of derivative context
    assert not adapter.trimmed and not np.any(adapter.trim.torque)
    with pytest.raises(RetorqueError, match="NumPy only"):
        constants_of(TamAdapter(robot, 1, weights=path))


def test_trim_is_a_setting_of_every_variant_with_a_latent() -> None:
    robot = Robot.load("panda")
    assert TamAdapter(robot, 1).trimmed and not TamAdapter(robot, 1, settings=TamSettings(trim=False)).trimmed
    assert not make("tam-no-residual", robot, settings={"trim": "false"}).adapter.trimmed
    for name in ("physpred", "tam-short-window"):
        with pytest.raises(RetorqueError, match="no settings"):
            make(name, robot, settings={"trim": "false"})


def test_an_encoder_without_history_is_refused() -> None:
    with pytest.raises(RetorqueError, match="never wakes"):
        preset("paper", "short-window")
    assert replace(preset("paper"), name="small").as_published
