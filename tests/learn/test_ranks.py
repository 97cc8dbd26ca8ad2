"""Several training processes hold one network, a killed run leaves none of them, and a Ray cluster makes the shards."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from waiting import within

from retorque.adapt.tam.preset import preset
from retorque.adapt.tam.tam_weights import load_weights
from retorque.adapt.tam.training.recipe import TamRecipe
from retorque.adapt.tam.training.rollouts import RolloutSettings
from retorque.learn.makers import RayTasks
from retorque.learn.shards import make_shard, shard_path
from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors

torch = pytest.importorskip("torch")

from retorque.adapt.tam.training.network import Tam  # noqa: E402 (after the check that torch is there)
from retorque.adapt.tam.training.pool import Pool  # noqa: E402
from retorque.adapt.tam.training.train import TamTraining, batch_loss, learning_rate, train  # noqa: E402
from retorque.learn.checkpoint import FORMAT, KIND  # noqa: E402
from retorque.learn.ranks import Ranks  # noqa: E402

RECIPE = TamRecipe(robots=("panda", "piper"), preset=preset("tiny"), rollouts=RolloutSettings(rollouts=8), seed=1000)
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("shards")
    for index in range(2):
        make_shard(folder, index, RECIPE)
    return folder


def settings(shards: Path, out: Path, **other) -> TamTraining:
    common = {"robots": RECIPE.robots, "preset": "tiny", "shards": shards, "workers": 0, "rollouts": 8, "batch": 4}
    return TamTraining(**{**common, "out": out, "steps_per_shard": 1000, "warmup": 5, **other})


def command(run: TamTraining) -> list[str]:
    """What is typed for these settings, where they are not as usual."""
    typed = ["-m", "retorque", "train", "tam"]
    for name, value in vars(run).items():
        if value != getattr(TamTraining(), name):
            typed.append(f"--{name.replace('_', '-')}")
            typed += [str(item) for item in (value if isinstance(value, tuple) else (value,))]
    return typed


def start(arguments: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True, env=environment)


def ended(process: subprocess.Popen) -> tuple[int, str]:
    """Exit code and what was said."""
    try:
        error = process.communicate(timeout=240)[1]
    finally:
        process.kill()
    return process.returncode, error


def children(parent: int) -> list[int]:
    """Processes that run with this parent."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, above = path.read_text().rpartition(")")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(above) == parent and state != "Z":
            found.append(int(path.parent.name))
    return found


def running(number: int) -> bool:
    """Whether a process is there and not merely unburied."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Played(Ranks):
    """One of two processes, played in one: the second hears what the first has told."""

    heard: list[float] = []  # noqa: RUF012 (shared by both on purpose)

    def tell(self, values):
        if self.first:
            Played.heard = list(values)
        return Played.heard


def played(run: TamTraining) -> dict[str, np.ndarray]:
    """The weights after a run of two processes, computed in one."""
    torch.manual_seed(run.seed)
    network = Tam(RECIPE.preset)
    pool = Pool(RECIPE.preset, 7, 2)
    for index in range(2):
        pool.add(shard_path(run.shards, index))
    optimiser = torch.optim.AdamW(network.parameters(), lr=run.learning_rate, weight_decay=1e-3)
    for step in range(run.steps):
        optimiser.zero_grad(set_to_none=True)
        for rank in range(2):
            (0.5 * batch_loss(run, network, pool, step, Played(rank, 2))["loss"]).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimiser.param_groups[0]["lr"] = learning_rate(run, step, step / run.steps)
        optimiser.step()
    return {name: value.numpy() for name, value in network.state_dict().items()}


def apart(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    """The largest difference between two networks."""
    return max(float(np.abs(one[name] - other[name]).max()) for name in one)


def test_two_processes_average_their_gradients_and_go_on_after_a_kill(shards, tmp_path):
    run = settings(shards, tmp_path / "two", steps=40)
    launcher = start([*TORCHRUN, *command(run), "--checkpoint-minutes", "0"])
    checkpoint, path = run.out / "checkpoint.safetensors", run.out / "weights.safetensors"
    try:
        assert within(200.0, checkpoint.exists), launcher.communicate(timeout=1)[1]
        processes = children(launcher.pid)
        assert len(processes) >= 2
    finally:
        launcher.kill()
        launcher.communicate()
    assert within(30.0, lambda: not any(running(number) for number in processes))
    assert not path.exists()
    _, head = load_tensors(checkpoint, KIND, FORMAT)
    assert 0 < head["step"] < run.steps
    with pytest.raises(RetorqueError, match=r"other settings \(processes\)"):
        train(run)
    code, error = ended(start([*TORCHRUN, *command(run)]))
    assert code == 0, error
    weights, _, header = load_weights(path)
    assert header["made"]["steps"] == run.steps
    alone, _, _ = load_weights(train(settings(shards, tmp_path / "one", steps=40)))
    moved = apart(weights, alone)
    assert moved > 1e-3
    assert apart(weights, played(run)) < 1e-3 * moved


def test_two_processes_end_at_the_same_step_when_the_time_is_over(shards, tmp_path):
    run = settings(shards, tmp_path, hours=0.0004)
    code, error = ended(start([*TORCHRUN, *command(run)]))
    assert code == 0, error
    assert load_weights(tmp_path / "weights.safetensors")[2]["made"]["steps"] > 0


def test_gradients_that_no_process_has_stay_away(monkeypatch):
    monkeypatch.setattr("torch.distributed.all_reduce", lambda values: values.mul_(2.0))  # as if both had the same
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    network[0](torch.ones(2)).square().sum().backward()
    before = network[0].weight.grad.clone()
    Ranks(0, 2).average_gradients(network)
    assert torch.equal(network[0].weight.grad, before)
    assert network[1].weight.grad is None


def test_a_killed_training_leaves_no_worker_behind(tmp_path):
    run = settings(tmp_path / "shards", tmp_path / "out", workers=2, rollouts=1000)
    parent = start(command(run))
    try:
        assert within(200.0, lambda: len(children(parent.pid)) >= 3), "no workers"  # and Python's resource tracker
        workers = children(parent.pid)
    finally:
        parent.kill()
        parent.communicate()
    assert within(30.0, lambda: not any(running(number) for number in workers))


def test_a_ray_cluster_makes_the_same_shards(shards, tmp_path):
    run = settings(tmp_path / "shards", tmp_path / "out", steps=2, workers=2, cluster="local")
    code, error = ended(start(command(run)))
    if importlib.util.find_spec("ray") is None:
        assert code == 2 and "pip install 'retorque[cluster]'" in error
        return
    assert code == 0, error
    load_weights(run.out / "weights.safetensors")
    for index in range(2):
        assert shard_path(run.shards, index).read_bytes() == shard_path(shards, index).read_bytes()
    with (
        pytest.raises(RetorqueError, match=r"no Ray cluster at '127\.0\.0\.1:9'"),
        RayTasks(tmp_path, RECIPE, "127.0.0.1:9", 1),
    ):
        pass


def test_without_ray_a_cluster_is_refused_with_what_to_install(shards, tmp_path, monkeypatch):
    known = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ray" else known(name))
    with pytest.raises(RetorqueError, match=r"retorque\[cluster\]"):
        train(settings(shards, tmp_path / "none", steps=2, cluster="auto"))
    assert not (tmp_path / "none").exists()
