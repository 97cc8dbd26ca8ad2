"""Checkpoints: a training that is cut at any step ends where an uncut one ends, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint  # noqa: E402 (after the check for torch)
from retorque.learn.ranks import Ranks, joined  # noqa: E402
from retorque.learn.run_folder import RunFolder, check_same_run  # noqa: E402
from retorque.work.errors import RetorqueError  # noqa: E402


class Net(torch.nn.Module):
    """Two layers, a buffer that changes while it trains, and one that no loss reaches."""

    def __init__(self, width: int = 4):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, width), torch.nn.Linear(width, 1)
        self.idle = torch.nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, values):
        self.seen += 1.0
        return self.second(torch.tanh(self.first(values)))


def fresh(kind: str):
    torch.manual_seed(0)
    network = Net()
    return network, getattr(torch.optim, kind)(network.parameters(), lr=3e-2, weight_decay=0.1)


def train(network, optimiser, first: int, last: int) -> None:
    for step in range(first, last):
        generator = torch.Generator().manual_seed(step)
        optimiser.zero_grad(set_to_none=True)
        network(torch.randn(8, 3, generator=generator)).pow(2).mean().backward()
        optimiser.step()


@pytest.mark.parametrize("kind", ("Adam", "AdamW"))
@pytest.mark.parametrize("cuts", ((0,), (1,), (5,), (2, 3, 7)), ids=str)
def test_wherever_a_training_is_cut_it_ends_the_same(kind: str, cuts: tuple[int, ...], tmp_path: Path) -> None:
    whole, optimiser = fresh(kind)
    train(whole, optimiser, 0, 9)
    at = 0
    for cut in (*cuts, 9):
        part, optimiser = fresh(kind)
        if (tmp_path / "c").exists():
            header, best = load_checkpoint(tmp_path / "c", part, optimiser)
            assert header == {"step": at} and best == {}
        train(part, optimiser, at, cut)
        save_checkpoint(tmp_path / "c", part, optimiser, {"step": cut})
        at = cut
    for name, value in whole.state_dict().items():
        assert torch.equal(part.state_dict()[name], value), name


def test_a_loaded_checkpoint_shares_no_memory_with_the_best(tmp_path: Path) -> None:
    network, optimiser = fresh("AdamW")
    train(network, optimiser, 0, 2)
    save_checkpoint(tmp_path / "c", network, optimiser, {}, best=network.state_dict())
    other, other_optimiser = fresh("AdamW")
    _, best = load_checkpoint(tmp_path / "c", other, other_optimiser)
    kept = {name: value.clone() for name, value in best.items()}
    train(other, other_optimiser, 2, 4)
    assert all(torch.equal(best[name], kept[name]) for name in kept)
    assert not torch.equal(other.state_dict()["first.weight"], kept["first.weight"])


@pytest.mark.parametrize(
    ("spoil", "says"),
    (
        (lambda data: data[:100], "not an intact"),
        (lambda data: data[:-4] + b"\x01\x02\x03\x04", "altered"),
        (lambda data: b"", "not an intact"),
    ),
)
def test_a_spoilt_checkpoint_says_which_file_to_delete(spoil, says: str, tmp_path: Path) -> None:
    path = tmp_path / "c"
    save_checkpoint(path, *fresh("AdamW"), {})
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(RetorqueError, match=rf"cannot resume: .*{says}.*delete '{path}'"):
        load_checkpoint(path, *fresh("AdamW"))


def test_a_checkpoint_of_another_width_is_refused_in_one_line(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c", *fresh("AdamW"), {})
    wide = Net(5)
    with pytest.raises(RetorqueError, match=r"cannot resume.*size mismatch") as refused:
        load_checkpoint(tmp_path / "c", wide, torch.optim.AdamW(wide.parameters()))
    assert "\n" not in str(refused.value)


def test_one_process_alone_exchanges_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as ranks:
        assert ranks.first and ranks.size == 1
        network, optimiser = fresh("AdamW")
        train(network, optimiser, 0, 1)
        before = [None if p.grad is None else p.grad.clone() for p in network.parameters()]
        ranks.share(network)
        ranks.average_gradients(network)
        ranks.wait()
        for was, parameter in zip(before, network.parameters(), strict=True):
            assert (was is None) == (parameter.grad is None) and (was is None or torch.equal(was, parameter.grad))
        assert ranks.tell([1.5, 2.0]) == [1.5, 2.0] and ranks.mean(torch.ones(2)).tolist() == [1.0, 1.0]


def test_gradients_of_several_processes_are_averaged_in_one_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process is played: it has three times our gradients, and one for the idle layer."""
    network, optimiser = fresh("AdamW")
    train(network, optimiser, 0, 1)
    mine = {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}
    calls = []

    def with_the_other(values) -> None:
        calls.append(values.numel())
        known = len(list(network.parameters()))
        values[:known] += 1.0
        values[known:] *= 4.0

    monkeypatch.setattr("torch.distributed.all_reduce", with_the_other)
    Ranks(1, 2).average_gradients(network)
    assert len(calls) == 1 and not Ranks(1, 2).first
    for name, parameter in network.named_parameters():
        wanted = 2.0 * mine[name] if name in mine else torch.zeros_like(parameter)
        torch.testing.assert_close(parameter.grad, wanted)


def test_settings_that_are_the_same_in_a_file_are_the_same_run(tmp_path: Path) -> None:
    """A tuple comes back as a list, a path as a text: neither is another run."""
    identity = {"robots": ("panda", "z1"), "out": Path("a/b"), "rate": 1e-3, "none": None, "deep": {"x": (1, 2)}}
    RunFolder(tmp_path / "run", identity)
    RunFolder(tmp_path / "run", {**identity, "robots": ["panda", "z1"], "out": "a/b"})
    with pytest.raises(RetorqueError, match="none, robots"):
        check_same_run(tmp_path, {"robots": ["panda"], "none": 1}, {"robots": ("z1",), "none": 2})


def test_a_note_of_a_numpy_number_can_be_read_again(tmp_path: Path) -> None:
    import numpy as np

    folder = RunFolder(tmp_path, {})
    folder.note(step=np.int64(3), loss=np.float32(0.5), tensor=torch.tensor(2.0))
    assert folder.metrics() == [{"step": 3.0, "loss": 0.5, "tensor": 2.0}]
    assert RunFolder(tmp_path / "new", {}).metrics() == []
