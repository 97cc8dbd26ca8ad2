"""Training of a diffusion policy: scripted demonstrations with compliance, then x_des or x_ref cloned from them."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch

from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.curves import draw_curves
from retorque.learn.run_folder import RunFolder
from retorque.robots.robot import Robot
from retorque.tasks.scoop.diffusion_network import ACTIONS, DiffusionShape, kept_signal, save_diffusion
from retorque.tasks.scoop.scoop_demonstrations import record_scoops
from retorque.tasks.scoop.scoop_frames import Frames, load_episodes, save_episodes
from retorque.tasks.scoop.training.diffusion_module import DiffusionUnet
from retorque.work.checks import check_between
from retorque.work.errors import unknown
from retorque.work.jobs import progress

CHECKPOINT = 500
"""Steps between checkpoints."""
SMOOTH = 0.995
"""Of the weights' moving average, which is what runs."""


@dataclass(frozen=True, kw_only=True)
class DiffusionTraining:
    """Settings of `retorque train diffusion`."""

    action: str = "x_des"
    """What is cloned: x_des, to run through compliance, or x_ref, to run by position."""
    demonstrations: int = 100
    """Scripted episodes with compliance; only successful ones are kept. Published: 200, by hand."""
    data: Path | None = None
    """A file of demonstrations that is there already, instead."""
    steps: int = 5000
    """Training steps; the published 1000 epochs of 200 demonstrations would be 125,000 of 256 moments."""
    batch: int = 64
    """Moments of demonstrations in a step; published: 256."""
    learning_rate: float = 1e-3
    """Largest learning rate of AdamW; published: 1e-4 over many more steps."""
    decay: float = 1e-6
    """Weight decay."""
    width: int = 32
    """Channels of the network's outer level."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("scoop-diffusion")
    """Folder of demonstrations and weights; a run that was stopped goes on."""


def train(settings: DiffusionTraining) -> Path:
    """Demonstrate and learn; the path of the weights."""
    if settings.action not in ACTIONS:
        raise unknown("action to clone", settings.action, ACTIONS)
    for name, most in (("demonstrations", 100_000), ("steps", 10_000_000), ("batch", 65536)):
        check_between(f"--{name}", getattr(settings, name), 1, most)
    check_between("--width", settings.width, 8, 1024)
    robot = Robot.load("arx_x5")
    own = {name: value for name, value in asdict(settings).items() if name not in ("out", "data")}
    folder = RunFolder(settings.out, own)
    begun = time.monotonic()
    data = settings.data or settings.out / "demonstrations.safetensors"
    if settings.data is None and not data.exists():
        save_episodes(data, _recorded(settings), robot.name)
    episodes = load_episodes(data)
    shape = DiffusionShape(width=settings.width)
    average, loss = _learn(settings, episodes, shape, folder)
    draw_curves(folder.metrics(), settings.out / "curves.png")
    made = {
        "action": settings.action,
        "seed": settings.seed,
        "demonstrations": len(episodes),
        "steps": settings.steps,
        "loss": loss,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    tensors = {name: value.numpy().copy() for name, value in average.items()}
    return save_diffusion(folder.weights, tensors, shape, robot, made)


def _recorded(settings: DiffusionTraining) -> list[Frames]:
    with progress() as bar:
        task = bar.add_task("demonstrations", total=None)
        return record_scoops(settings.demonstrations, settings.seed, lambda ticks: bar.advance(task, ticks))


def _learn(
    settings: DiffusionTraining, episodes: list[Frames], shape: DiffusionShape, folder: RunFolder
) -> tuple[dict[str, torch.Tensor], float]:
    torch.manual_seed(settings.seed)
    seen, chunks = _moments(episodes, settings.action, shape.horizon)
    scales: dict[str, torch.Tensor] = {}
    for name, rows in (("seen", seen), ("action", chunks.flatten(0, 1))):
        low, high = rows.amin(0), rows.amax(0)
        scales |= {f"{name}_middle": 0.5 * (low + high), f"{name}_scale": (0.5 * (high - low)).clamp_min(0.01)}
    network = DiffusionUnet(shape, scales)
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=settings.decay)
    average = {name: value.detach().clone() for name, value in network.state_dict().items()}
    begin, last = 0, 0.0
    if folder.checkpoint.exists():
        header, average = load_checkpoint(folder.checkpoint, network, optimiser)
        begin, last = int(header["step"]), float(header["loss"])
        folder.forget_after(begin)
    told = (seen - scales["seen_middle"]) / scales["seen_scale"]
    wanted = (chunks - scales["action_middle"]) / scales["action_scale"]
    signal = torch.as_tensor(kept_signal(shape.levels), dtype=torch.float32)
    with progress() as bar:
        task = bar.add_task(f"diffusion, {settings.action}", total=settings.steps, completed=begin)
        for step in range(begin, settings.steps):
            rng = torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
            for group in optimiser.param_groups:
                group["lr"] = settings.learning_rate * 0.5 * (1.0 + np.cos(np.pi * step / settings.steps))
            rows = torch.randint(len(told), (settings.batch,), generator=rng)
            level = torch.randint(shape.levels, (settings.batch,), generator=rng)
            noise = torch.randn(wanted[rows].shape, generator=rng)
            kept = signal[level][:, None, None]
            blurred = kept.sqrt() * wanted[rows] + (1.0 - kept).sqrt() * noise
            loss = torch.nn.functional.mse_loss(network(blurred, level, told[rows]), noise)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                share = min(SMOOTH, (1.0 + step) / (10.0 + step))
                for name, value in network.state_dict().items():
                    average[name].lerp_(value, 1.0 - share)
            now = float(loss.detach())
            last = 0.99 * last + 0.01 * now if step else now
            bar.advance(task)
            if (step + 1) % CHECKPOINT == 0:
                header = {"step": step + 1, "loss": last}
                save_checkpoint(folder.checkpoint, network, optimiser, header, best=average)
                folder.note(step=step + 1, loss=last)
    return average, last


def _moments(episodes: list[Frames], column: str, horizon: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Observations, and the actions that follow each; after the end the last one is held."""
    seen, chunks = [], []
    for episode in episodes:
        action = episode[column]
        index = np.minimum(np.arange(len(action))[:, None] + np.arange(horizon), len(action) - 1)
        seen.append(episode["seen"])
        chunks.append(action[index])
    together = (np.concatenate(parts).astype(np.float32) for parts in (seen, chunks))
    first, second = (torch.from_numpy(part) for part in together)
    return first, second
