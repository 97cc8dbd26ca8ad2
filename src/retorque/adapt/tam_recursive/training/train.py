"""Training of the learned module: worlds are driven with the weights so far, in rounds, and learnt from."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from retorque.adapt.ideal_velocity import joint_inertia
from retorque.adapt.tam.training.loss import huber
from retorque.adapt.tam.training.train_settings import FIVE
from retorque.adapt.tam_recursive.adapter import TamRecursive
from retorque.adapt.tam_recursive.residual_weights import load_weights, save_weights
from retorque.adapt.tam_recursive.training.residual_module import Network
from retorque.adapt.tam_recursive.training.training_worlds import LOOPS, WorldSettings, collect
from retorque.learn.run_folder import RunFolder
from retorque.robots.robot import Robot
from retorque.work.checks import MOST_TRIALS, check_between
from retorque.work.cluster import require_ray
from retorque.work.errors import RetorqueError, unknown
from retorque.work.jobs import progress, report, run_jobs
from retorque.work.tensors import load_tensors, save_tensors

log = logging.getLogger(__name__)

HUBER = 0.05
"""Threshold of the Huber loss [units]."""
WEIGHTS = (0.5, 3.0)
"""Least and most that a joint counts for."""
WORLD = "a world of tam-recursive"
"""What a file of samples is."""
WORLD_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class ResidualTraining:
    """Settings of `retorque train tam-recursive`."""

    robots: tuple[str, ...] = FIVE
    """Robots that are driven: names on board, or paths of card, MJCF or URDF files."""
    loop: str = "tam-recursive"
    """Adapter whose loop worlds are driven in: tam-recursive (short pushes), or default (lasting ones, payloads and
    drives that change as well)."""
    start: Path | None = None
    """Weights to begin with."""
    rounds: int = 5
    """How often worlds are driven with the weights so far; the first time the module says nothing."""
    worlds: int = 30
    """Worlds of each round; robots take turns."""
    trials: int = 16
    """Robots in a world."""
    duration: float = 10.0
    """Length of each world's motion [s]."""
    steps: int = 3000
    """Training steps after each round."""
    last: int = 4
    """How many times as long the last round's training is."""
    batch: int = 1024
    """Samples in a step."""
    learning_rate: float = 2e-3
    """Largest learning rate."""
    workers: int = 1
    """Processes that drive worlds."""
    cluster: str = ""
    """Ray cluster that drives them instead: auto (runs already), local (new) or HOST:PORT; it must see `--out`."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("tam-recursive")
    """Folder of worlds and weights; what is found there is used, so a run that was stopped goes on."""


def train(settings: ResidualTraining) -> Path:
    """Drive and learn, round after round; the path of the weights."""
    for name in ("rounds", "worlds", "trials", "steps", "last", "batch", "workers"):
        check_between(f"--{name}", getattr(settings, name), 1, MOST_TRIALS)
    check_between("--duration", settings.duration, 2.0, 3600.0, "s")
    if not settings.robots:
        raise RetorqueError("training needs at least one robot; name some with --robots")
    if settings.loop not in LOOPS:
        raise unknown("loop", settings.loop, LOOPS)
    require_ray(settings.cluster)
    own = {name: value for name, value in asdict(settings).items() if name not in ("workers", "cluster", "out")}
    robots = [Robot.load(name) for name in settings.robots]
    folder = RunFolder(settings.out, own)
    torch.manual_seed(settings.seed)
    network = Network()
    if settings.start is not None:
        _set(network, settings.start)
    begun = time.monotonic()
    path = settings.out / "round-0.safetensors"
    save_weights(path, _tensors(network), robots, {"seed": settings.seed, "round": 0})
    files: list[Path] = []
    for turn in range(settings.rounds):
        files += _drive(settings, turn, path)
        path = settings.out / f"round-{turn + 1}.safetensors"
        if path.exists():
            _set(network, path)
            continue
        loss = _learn(settings, network, _together(files, max(robot.n for robot in robots)), turn)
        made = {
            "seed": settings.seed,
            "round": turn + 1,
            "worlds": len(files),
            "loss": loss,
            "minutes": round((time.monotonic() - begun) / 60.0, 1),
        }
        folder.note(**made)
        save_weights(path, _tensors(network), robots, made)
        log.info("round %d: loss %.4f", turn + 1, loss)
    tensors, header = load_weights(path)
    save_weights(folder.weights, tensors, robots, header["made"])
    return folder.weights


def _drive(settings: ResidualTraining, turn: int, weights: Path) -> list[Path]:
    """Worlds of a round, made by processes of their own."""
    worlds = WorldSettings(loop=settings.loop, trials=settings.trials, duration=settings.duration)
    jobs = []
    for index in range(settings.worlds):
        path = settings.out / f"world-{turn}-{index:03d}.safetensors"
        seed = int(np.random.SeedSequence([settings.seed, turn, index]).generate_state(1)[0])
        jobs.append((path, settings.robots[index % len(settings.robots)], weights, worlds, seed))
    run_jobs(_world, jobs, len(jobs), f"worlds of round {turn + 1}", settings.workers, settings.cluster)
    return [job[0] for job in jobs]


def _world(path: Path, robot: str, weights: Path, worlds: WorldSettings, seed: int) -> None:
    """Drive one world unless its file is there."""
    if not path.exists():
        samples = collect(Robot.load(robot), weights, worlds, seed)
        save_tensors(path, samples, WORLD, WORLD_FORMAT, {"robot": robot, "worlds": asdict(worlds), "seed": seed})
    report(1)


def _together(files: list[Path], joints: int) -> dict[str, Tensor]:
    """The samples of all worlds, joints padded."""
    parts: dict[str, list[np.ndarray]] = {}
    for path in files:
        arrays, header = load_tensors(path, WORLD, WORLD_FORMAT, finite=True)
        n = arrays["own"].shape[1]
        more = joints - n
        arrays["present"] = np.ones(arrays["own"].shape, dtype=np.float32)
        arrays["weight"] = _weights(header["robot"]) * arrays["present"]
        for name, array in arrays.items():
            axes = [(0, 0), (0, more), *([(0, more)] if name == "response" else [(0, 0)] * (array.ndim - 2))]
            parts.setdefault(name, []).append(np.pad(array, axes[: array.ndim]))
    data = {name: torch.from_numpy(np.concatenate(arrays)) for name, arrays in parts.items()}
    data["inverse"] = torch.linalg.inv(data["response"] + torch.diag_embed(1.0 - data["present"]))
    return data


def _learn(settings: ResidualTraining, network: Network, data: dict[str, Tensor], turn: int) -> float:
    """Train on all worlds so far; the mean loss over the last tenth."""
    steps = settings.steps * (settings.last if turn + 1 == settings.rounds else 1)
    rng = np.random.default_rng([settings.seed, turn, 1])
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=1e-4)
    rising = max(0.05, min(1.5 / steps, 0.9))  # one step alone has no slope: PyTorch divides by its length
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=settings.learning_rate, total_steps=steps, pct_start=rising
    )
    count = len(data["own"])
    recent: deque[float] = deque(maxlen=steps // 10 + 1)
    with progress() as bar:
        for _ in bar.track(range(steps), description=f"learning, round {turn + 1}"):
            rows = torch.from_numpy(rng.integers(0, count, settings.batch))
            loss = objective(network, {name: array[rows] for name, array in data.items()})
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 10.0)
            optimiser.step()
            schedule.step()
            recent.append(float(loss.detach()))
    return float(np.mean(recent))


def objective(network: Network, batch: dict[str, Tensor]) -> Tensor:
    """Huber loss of the command's error, and of the nominal torque that it amounts to (in thresholds).

    With errors w of the external and d of the own torque, the command is off by s (A - 1) w + d, s being the share of
    a push that the adapter answers: where the ideal robot is far lighter than the target, only a part.
    """
    present = batch["present"]
    external, own = network(batch["features"], batch["taps"], present)
    pushed = external - batch["external"]
    pushing = (batch["external"] != 0.0).any(-1, keepdim=True)
    known = torch.where(pushing, batch["external"], external.detach())
    room = TamRecursive.authority * known.norm(dim=-1) / (_answer(batch, known).norm(dim=-1) + 1e-6)
    wrong = room.clip(max=1.0)[:, None] * _answer(batch, pushed) + own - batch["own"]
    nominal = torch.matmul(batch["inverse"], wrong[..., None])[..., 0]
    loss = huber(wrong, HUBER) + huber(nominal, HUBER)
    return 0.5 * (loss * batch["weight"]).sum() / present.sum()


@cache
def _weights(robot: str) -> np.ndarray:
    """What an error of a joint's torque counts for, (n,) float32: light joints go farther astray by it."""
    inertia = joint_inertia(Robot.load(robot))
    return np.clip(np.sqrt(np.median(inertia) / inertia), *WEIGHTS).astype(np.float32)


def _answer(batch: dict[str, Tensor], external: Tensor) -> Tensor:
    """(A - 1) w: the torque that lets a robot yield to a push as the ideal one would, (samples, n) [units]."""
    return torch.matmul(batch["response"], external[..., None])[..., 0] - external


def _set(network: Network, path: Path) -> None:
    """Take over the weights of a file."""
    network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in load_weights(path)[0].items()})


def _tensors(network: Network) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in network.state_dict().items()}
