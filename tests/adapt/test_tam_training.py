"""Training: the loss falls, a run that was stopped ends where it would have ended, and bad input is refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from retorque.adapt.tam.tam_weights import load_weights
from retorque.adapt.tam.training.labels import forward_drive, inverse_drive
from retorque.adapt.tam.training.recipe import TamRecipe
from retorque.adapt.tam.training.rollouts import RolloutSettings
from retorque.learn.shards import make_shard, shard_path
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

torch = pytest.importorskip("torch")


from retorque.adapt.tam.preset import VARIANTS, preset  # noqa: E402
from retorque.adapt.tam.training import loss  # noqa: E402 (after the check that torch is there)
from retorque.adapt.tam.training.network import Tam  # noqa: E402
from retorque.adapt.tam.training.objective import objective  # noqa: E402
from retorque.adapt.tam.training.pool import Pool  # noqa: E402
from retorque.adapt.tam.training.train import TamTraining, train  # noqa: E402
from retorque.learn.checkpoint import load_checkpoint  # noqa: E402


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("shards")


def settings(shards: Path, out: Path, **other) -> TamTraining:
    return TamTraining(
        **{
            "robots": ("panda", "piper"),
            "preset": "tiny",
            "steps": 100,
            "out": out,
            "shards": shards,
            "workers": 0,
            "rollouts": 16,
            "steps_per_shard": 1000,
            "batch": 8,
            "warmup": 5,
            "learning_rate": 5e-3,
            **other,
        }
    )


def loss_of(network: Tam, shards: Path) -> float:
    """The loss of a network over one large batch, the same at every call."""
    pool = Pool(network.preset, 7, 2)
    for index in range(2):
        pool.add(shard_path(shards, index))
    batch = pool.draw(48, 3, np.random.default_rng(0))
    with torch.no_grad():
        return float(objective(network, batch, 2, torch.Generator().manual_seed(0))["loss"])


def before_and_after(run: TamTraining, path: Path) -> tuple[float, float]:
    """The loss at the start of a run and with its weights."""
    torch.manual_seed(run.seed)
    network = Tam(preset(run.preset, run.variant))
    before = loss_of(network, run.shards)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in load_weights(path)[0].items()})
    return before, loss_of(network, run.shards)


def test_the_loss_falls_and_a_stopped_run_ends_where_it_would_have(shards, tmp_path):
    whole = settings(shards, tmp_path / "whole")
    path = train(whole)
    before, after = before_and_after(whole, path)
    assert after < 0.8 * before
    assert steps_noted(whole) == [1, *range(20, 101, 20)]
    parts = settings(shards, tmp_path / "parts")
    stopping(parts, 25)
    assert not (parts.out / "weights.safetensors").exists()
    with (parts.out / "metrics.jsonl").open("a") as file:
        file.write('{"step": 26}\n{"step": 27, "lo')  # noted after the checkpoint, the last one cut by the kill
    again = train(parts)
    assert steps_noted(parts) == [1, 20, 26, 40, 60, 80, 100]  # shards come in anew at 26
    one, size, header = load_weights(path)
    other, _, _ = load_weights(again)
    assert list(header["robots"]) == ["panda", "piper"] and header["made"]["steps"] == 100 and size == preset("tiny")
    assert all(np.array_equal(one[name], other[name]) for name in one)
    network = Tam(size)
    head, _ = load_checkpoint(whole.out / "checkpoint.safetensors", network, torch.optim.AdamW(network.parameters()))
    assert head["step"] == 100
    assert all(np.array_equal(value.numpy(), one[name]) for name, value in network.state_dict().items())
    with pytest.raises(RetorqueError, match="other settings"):
        train(replace(whole, seed=7))


def steps_noted(run: TamTraining) -> list[int]:
    return [json.loads(line)["step"] for line in (run.out / "metrics.jsonl").read_text().splitlines()]


def stopping(run: TamTraining, step: int) -> None:
    """Train with a checkpoint after every step and kill the run after so many."""
    from retorque.adapt.tam.training import train as module

    class Killed(Exception):
        pass

    original = module.save_checkpoint

    def save_and_stop(path, network, optimiser, header):
        original(path, network, optimiser, header)
        if header["step"] == step:
            raise Killed

    module.save_checkpoint = save_and_stop
    try:
        with pytest.raises(Killed):
            train(replace(run, checkpoint_minutes=0.0))
    finally:
        module.save_checkpoint = original


SLOW = ("tam-no-residual", "tam-no-etau", "short-window")
"""Variants that differ least from others."""


@pytest.mark.parametrize(
    "variant",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in VARIANTS if name != "tam"],
)
def test_every_variant_trains(shards, tmp_path, variant):
    run = settings(shards, tmp_path, variant=variant, steps=40)
    path = train(run)
    assert load_weights(path)[1].variant == variant
    before, after = before_and_after(run, path)
    assert after < before


def test_a_robot_given_by_its_path_is_trained_on(tmp_path):
    card = tmp_path / "mine.toml"
    replace(Robot.load("piper"), name="mine").save(card)
    path = train(settings(tmp_path / "shards", tmp_path / "out", steps=2, rollouts=4, robots=(str(card),)))
    assert load_weights(path)[2]["robots"] == {"mine": list(Robot.load("piper").joint_names)}


def test_fine_tuned_weights_serve_one_robot(shards, tmp_path):
    base = train(settings(shards, tmp_path / "base", steps=2))
    tuned = train(settings(tmp_path / "own", tmp_path / "tuned", steps=2, robots=("piper",), finetune=base))
    assert load_weights(tuned)[2]["only"] == "piper"
    with pytest.raises(RetorqueError, match="choose the same"):
        train(settings(shards, tmp_path / "wrong", steps=2, variant="physpred", finetune=base))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"robots": ("pandda",)}, "did you mean 'panda'"),
        ({"robots": ()}, "at least one robot"),
        ({"preset": "smal"}, "did you mean 'small'"),
        ({"variant": "tan"}, "did you mean 'tam'"),
        ({"steps": 0, "hours": 0.0}, "--hours"),
        ({"batch": 0}, "--batch"),
        ({"workers": -1}, "--workers"),
    ],
)
def test_bad_settings_are_refused(shards, tmp_path, change, message):
    with pytest.raises(RetorqueError, match=message):
        train(settings(shards, tmp_path / "none", **change))
    assert not (tmp_path / "none").exists()


def test_the_paper_preset_has_the_papers_size():
    network = Tam(preset("paper"))
    assert 4.3e6 < sum(p.numel() for p in network.encoder.parameters()) < 4.6e6
    assert 6.0e4 < sum(p.numel() for p in network.adaptor.parameters()) < 6.6e4


def a_batch(shards: Path) -> dict[str, torch.Tensor]:
    """A batch in double precision, without torque limits, so that what is exact on paper is exact here."""
    recipe = TamRecipe(
        robots=("panda", "piper"), preset=preset("tiny"), rollouts=RolloutSettings(rollouts=16), seed=1000
    )
    pool = Pool(recipe.preset, 7, 2)
    for index in range(2):
        pool.add(make_shard(shards, index, recipe))
    batch = pool.draw(8, 2, np.random.default_rng(3))
    batch = {name: value.double() if value.is_floating_point() else value for name, value in batch.items()}
    return {**batch, "limit": torch.full_like(batch["limit"], 1e6)}


def test_the_rollout_follows_the_ideal_robot_under_the_teachers_commands(shards, monkeypatch):
    batch = a_batch(shards)
    nominal = loss.nominal_torques(batch, 2, torch.Generator().manual_seed(0))
    network = Tam(preset("tiny")).double()
    z = network.latents(batch)
    errors = loss.correction_errors
    monkeypatch.setattr(loss, "correction_errors", lambda *inputs: (0.0, errors(*inputs)[1]))
    later, counted = loss.rolled(network, batch, z, nominal)
    pushed = nominal[:, :, :, 0] + batch["external"] - batch["ideal_bias"]
    ideal = torch.matmul(batch["ideal_inverse"], pushed[..., None])[..., 0]
    before, after = batch["window"], later["window"]
    speed = after[:, :, :, 1, :, 0]
    found = (speed - before[:, :, :, 1, :, 0]) / loss.TICK
    assert batch["external"].abs().max() > 1.0 and ideal.abs().max() > 1.0
    torch.testing.assert_close(found, ideal.clip(-200.0, 200.0), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(after[:, :, :, 0, :, 0], before[:, :, :, 0, :, 0] + loss.TICK * speed)
    assert torch.equal(after[..., 1:], before[..., :-1])
    present = batch["present"][:, None, None]
    assert torch.equal(counted[:, :, :, 1], present & (speed.abs() > loss.AT_REST))


def test_the_rollout_loss_is_the_mean_over_the_ticks_under_its_own_commands(shards):
    batch = a_batch(shards)
    network = Tam(preset("tiny")).double()
    z = network.latents(batch)

    def loss_of_ticks(ticks: int) -> torch.Tensor:
        return loss.correction_loss(network, batch, 1, torch.Generator().manual_seed(0), z, ticks)["loss"]

    nominal = loss.nominal_torques(batch, 1, torch.Generator().manual_seed(0))
    now, expected = batch, loss_of_ticks(0)
    for _ in range(2):
        now, counted = loss.rolled(network, now, z, nominal)
        error, wanted = loss.correction_errors(network, now, z, nominal)
        assert torch.isfinite(error).all() and torch.isfinite(wanted).all()
        expected = expected + 0.5 * loss._losses(network, now, z, nominal, counted)["loss"]
    torch.testing.assert_close(loss_of_ticks(2), expected)
    assert loss_of_ticks(2) > 1.1 * loss_of_ticks(0)
    loss_of_ticks(2).backward()
    assert all(torch.isfinite(p.grad).all() for p in network.adaptor.parameters() if p.grad is not None)


def test_the_drive_undoes_its_inverse():
    rng = np.random.default_rng(0)
    dead_zone, scale = torch.tensor(rng.uniform(0.0, 2.0, (50, 7, 2))), torch.tensor(rng.uniform(0.7, 1.3, (50, 7, 2)))
    torque = torch.tensor(rng.normal(0.0, 2.0, (50, 7)))
    torque[0] = 0.0
    command = inverse_drive(torch, torque, dead_zone, scale)
    assert (command - torque).abs().max() > 1.0
    torch.testing.assert_close(forward_drive(torch, command, dead_zone, scale), torque, rtol=1e-12, atol=1e-12)
