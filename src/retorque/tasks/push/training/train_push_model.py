"""Training of the forward model of pushes: random pushes on the ideal robot, then a small perceptron."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from retorque.learn.run_folder import RunFolder
from retorque.robots.robot import Robot
from retorque.tasks.push.push_model import UNIT, save_push_model
from retorque.tasks.push.training.collect import collect_pushes
from retorque.work.checks import check_between
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings, progress, report, run_jobs
from retorque.work.tensors import load_tensors, save_tensors

SHARD, SHARD_FORMAT = "pushes of a box", 1
HELD_BACK = 0.1
"""Share of the pushes that the model is tested on."""


@dataclass(frozen=True, kw_only=True)
class PushTraining(JobSettings):
    """Settings of `retorque train push`."""

    robot: str = "panda"
    """An arm whose gripper points down at home."""
    pushes: int = 3840
    """Random pushes to learn from."""
    batch: int = 64
    """Pushes simulated together."""
    width: int = 128
    """Of the perceptron's two hidden layers."""
    steps: int = 6000
    """Training steps."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("push-model")
    """Folder of pushes and weights; what is found there is used, so a run that was stopped goes on."""


def train(settings: PushTraining) -> Path:
    """Push and learn; the path of the weights."""
    check_between("--pushes", settings.pushes, 100, 10_000_000)
    check_between("--batch", settings.batch, 1, 4096)
    check_between("--width", settings.width, 8, 1024)
    check_between("--steps", settings.steps, 1, 10_000_000)
    settings.check_jobs()
    robot = Robot.load(settings.robot)
    own = {name: value for name, value in asdict(settings).items() if name not in ("workers", "cluster", "out")}
    folder = RunFolder(settings.out, own)
    begun = time.monotonic()
    seen, happened = _pushes(settings)
    tensors, error = _learn(settings, seen, happened, folder)
    made = {
        "seed": settings.seed,
        "pushes": len(seen),
        "steps": settings.steps,
        "held_back_error": error,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    return save_push_model(folder.weights, tensors, robot, made)


def _pushes(settings: PushTraining) -> tuple[np.ndarray, np.ndarray]:
    """All pushes, simulated where their files are missing."""
    jobs = []
    for index in range(-(-settings.pushes // settings.batch)):
        seed = int(np.random.SeedSequence([settings.seed, index]).generate_state(1)[0])
        jobs.append((settings.out / f"pushes-{index:04d}.safetensors", settings.robot, settings.batch, seed))
    run_jobs(_shard, jobs, len(jobs), "pushes", settings.workers, settings.cluster)
    parts = [load_tensors(job[0], SHARD, SHARD_FORMAT, finite=True)[0] for job in jobs]
    seen, happened = (np.concatenate([part[name] for part in parts]) for name in ("seen", "happened"))
    if len(seen) < 50:
        raise RetorqueError(f"only {len(seen)} pushes of '{settings.robot}' moved the box; is it an arm over a table?")
    return seen, happened


def _shard(path: Path, robot: str, count: int, seed: int) -> None:
    if not path.exists():
        seen, happened = collect_pushes(Robot.load(robot), count, seed)
        save_tensors(path, {"seen": seen, "happened": happened}, SHARD, SHARD_FORMAT, {"robot": robot, "seed": seed})
    report(1)


def _learn(
    settings: PushTraining, seen: np.ndarray, happened: np.ndarray, folder: RunFolder
) -> tuple[dict[str, np.ndarray], list[float]]:
    """The perceptron's weights, and its RMS error on pushes held back (m, m, rad)."""
    torch.manual_seed(settings.seed)
    w = settings.width
    network = nn.Sequential(nn.Linear(7, w), nn.Tanh(), nn.Linear(w, w), nn.Tanh(), nn.Linear(w, 3))
    held = max(1, int(HELD_BACK * len(seen)))
    x = torch.tensor(seen, dtype=torch.float32)
    y = torch.tensor(happened / UNIT, dtype=torch.float32)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, settings.steps)
    generator = torch.Generator().manual_seed(settings.seed)
    with progress() as bar:
        task = bar.add_task("forward model", total=settings.steps)
        for step in range(settings.steps):
            rows = torch.randint(held, len(x), (256,), generator=generator)
            loss = nn.functional.smooth_l1_loss(network(x[rows]), y[rows], beta=0.2)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.advance(task)
            if (step + 1) % 1000 == 0:
                folder.note(step=step + 1, loss=float(loss.detach()))
    with torch.no_grad():
        wrong = (network(x[:held]) - y[:held]).numpy() * UNIT
    error = [float(v) for v in np.sqrt(np.mean(wrong**2, axis=0))]
    return {name: value.numpy().copy() for name, value in network.state_dict().items()}, error
