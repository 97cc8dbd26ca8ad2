"""Weights' headers, checkpoints and shards: what is written comes back, what does not fit is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.learn.shards import make_shard, shard_path, shard_seed
from retorque.learn.weights import GRAVITY, check_rate, check_weights, load_network, save_network, weights_header
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

Z1, PANDA = Robot.load("z1"), Robot.load("panda")
TENSORS = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "a.bias": np.ones(2, dtype=np.float32)}


def header(**change):
    return {**weights_header([Z1], {"width": 2}, {"seed": 1}), **change}


def test_a_network_comes_back_bit_for_bit(tmp_path: Path) -> None:
    path = save_network(tmp_path / "w.safetensors", TENSORS, "test", 3, header())
    tensors, found = load_network(path, "test", 3)
    assert found == header()
    for name, array in TENSORS.items():
        np.testing.assert_array_equal(tensors[name], array)
        assert tensors[name].dtype == array.dtype


def test_another_network_or_version_is_refused(tmp_path: Path) -> None:
    path = save_network(tmp_path / "w.safetensors", TENSORS, "test", 3, header())
    with pytest.raises(RetorqueError):
        load_network(path, "other", 3)
    with pytest.raises(RetorqueError):
        load_network(path, "test", 4)


@pytest.mark.parametrize(
    ("change", "said"),
    (
        ({"shape": []}, "shape"),
        ({"robots": {"z1": "joint1"}}, "robots"),
        ({"only": None}, "only"),
        ({"rate": "1000"}, "rate"),
        ({"gravity": 9.81}, "gravity"),
        ({"made": [1]}, "made"),
    ),
    ids=str,
)
def test_headers_of_the_wrong_type_are_named(change: dict, said: str, tmp_path: Path) -> None:
    path = save_network(tmp_path / "w.safetensors", TENSORS, "test", 3, header(**change))
    with pytest.raises(RetorqueError, match=f"no usable '{said}'"):
        load_network(path, "test", 3)


@pytest.mark.parametrize("bad", (np.array([np.nan, 1.0]), np.array([np.inf]), np.array([1, 2])), ids=str)
def test_tensors_that_are_no_weights_are_refused(bad: np.ndarray, tmp_path: Path) -> None:
    path = save_network(tmp_path / "w.safetensors", {**TENSORS, "b": bad}, "test", 3, header())
    with pytest.raises(RetorqueError):
        load_network(path, "test", 3)


def test_the_robot_the_order_of_joints_and_the_convention_must_fit() -> None:
    check_weights(header(), "w", Z1, 1e-3)
    check_weights(header(), "w", PANDA, 1e-3)  # never seen, but it serves any arm
    with pytest.raises(RetorqueError, match="made for robot 'z1'"):
        check_weights(header(only="z1"), "w", PANDA, 1e-3)
    swapped = list(reversed(Z1.joint_names))
    with pytest.raises(RetorqueError, match="expects joints"):
        check_weights(header(robots={"z1": swapped}), "w", Z1, 1e-3)
    with pytest.raises(RetorqueError, match="gravity"):
        check_weights(header(gravity="torques without gravity"), "w", Z1, 1e-3)
    assert header()["gravity"] == GRAVITY


@pytest.mark.parametrize("rate", (500.0, 999.0, 0.0, -1000.0, float("nan"), float("inf")))
def test_another_rate_is_refused(rate: float) -> None:
    check_rate(1000.0, "w", 1e-3)
    with pytest.raises(RetorqueError, match="w"):
        check_rate(rate, "w", 1e-3)


class Recipe:
    """Counts how often a shard is made."""

    def __init__(self) -> None:
        self.made: list[int] = []

    def make(self, index: int) -> bytes:
        self.made.append(index)
        return bytes([index]) * 10


def test_a_shard_is_made_once(tmp_path: Path) -> None:
    recipe = Recipe()
    for _ in range(3):
        path = make_shard(tmp_path, 4, recipe)
    assert recipe.made == [4] and path.read_bytes() == b"\x04" * 10
    path.unlink()
    assert make_shard(tmp_path, 4, recipe) == path and recipe.made == [4, 4]


def test_shards_have_names_in_order_and_seeds_of_their_own(tmp_path: Path) -> None:
    paths = [shard_path(tmp_path, index).name for index in (2, 10, 100)]
    assert paths == sorted(paths)
    seeds = [shard_seed(seed, index) for seed in range(20) for index in range(20)]
    assert len(set(seeds)) == len(seeds) and shard_seed(3, 7) == shard_seed(3, 7)


def test_a_checkpoint_resumes_exactly(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from retorque.learn.checkpoint import load_checkpoint, save_checkpoint

    def fresh():
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        return network, torch.optim.AdamW(network.parameters(), lr=1e-2)

    def step(network, optimiser, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        optimiser.zero_grad()
        network(torch.randn(8, 3, generator=generator)).pow(2).mean().backward()
        optimiser.step()

    network, optimiser = fresh()
    for k in range(3):
        step(network, optimiser, k)
    best = {name: value.clone() for name, value in network.state_dict().items()}
    save_checkpoint(tmp_path / "c.safetensors", network, optimiser, {"step": 3}, best)
    step(network, optimiser, 3)
    other, other_optimiser = fresh()
    found, kept = load_checkpoint(tmp_path / "c.safetensors", other, other_optimiser)
    assert found == {"step": 3}
    for name, value in best.items():
        assert torch.equal(kept[name], value)
    step(other, other_optimiser, 3)
    for a, b in zip(network.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
    smaller = torch.nn.Linear(2, 2)
    with pytest.raises(RetorqueError, match="cannot resume"):
        load_checkpoint(tmp_path / "c.safetensors", smaller, torch.optim.AdamW(smaller.parameters()))
    with pytest.raises(RetorqueError, match="cannot resume"):
        load_checkpoint(tmp_path / "none.safetensors", *fresh())
