"""Training of the flip policy: scripted demonstrations on the ideal robot, then ACT."""

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
from retorque.tasks.flip.act_network import ActShape, save_act
from retorque.tasks.flip.demonstrations import Episode, record_demonstrations
from retorque.tasks.flip.lerobot import read_dataset, write_dataset
from retorque.tasks.flip.training.act_module import Act
from retorque.work.checks import check_between
from retorque.work.jobs import progress

CHECKPOINT = 500
"""Steps between checkpoints."""


@dataclass(frozen=True, kw_only=True)
class FlipTraining:
    """Settings of `retorque train flip`."""

    robot: str = "panda"
    """An arm whose gripper points down at home."""
    demonstrations: int = 60
    """Scripted episodes on the ideal robot; only successful ones are kept."""
    steps: int = 4000
    """Training steps."""
    batch: int = 64
    """Moments of demonstrations in a step."""
    learning_rate: float = 1e-3
    """Largest learning rate."""
    kl: float = 10.0
    """Weight of the latent's divergence."""
    width: int = 96
    """Of a token."""
    chunk: int = 40
    """Actions predicted at once, at 20 Hz."""
    noise: float = 0.005
    """Added to the joints that the network sees [rad]."""
    seed: int = 1000
    """Of everything random."""
    out: Path = Path("flip-act")
    """Folder of the data set and the weights; a run that was stopped goes on."""


def train(settings: FlipTraining) -> Path:
    """Demonstrate and learn; the path of the weights."""
    for name, most in (("demonstrations", 100_000), ("steps", 10_000_000), ("batch", 65536), ("chunk", 1000)):
        check_between(f"--{name}", getattr(settings, name), 1, most)
    check_between("--width", settings.width, 8, 1024)
    robot = Robot.load(settings.robot)
    own = {name: value for name, value in asdict(settings).items() if name != "out"}
    folder = RunFolder(settings.out, own)
    begun = time.monotonic()
    data = settings.out / "dataset"
    if not (data / "meta" / "info.json").exists():
        write_dataset(data, record_demonstrations(robot, settings.demonstrations, settings.seed), robot.name)
    episodes = read_dataset(data)
    shape = ActShape(joints=robot.n, actions=robot.n + 1, chunk=settings.chunk, width=settings.width)
    network, loss = _learn(settings, episodes, shape, folder)
    tensors = {
        name: value.detach().numpy().copy()
        for name, value in network.state_dict().items()
        if not name.startswith("style")
    }
    draw_curves(folder.metrics(), settings.out / "curves.png")
    made = {
        "seed": settings.seed,
        "demonstrations": len(episodes),
        "steps": settings.steps,
        "loss": loss,
        "minutes": round((time.monotonic() - begun) / 60.0, 1),
    }
    return save_act(folder.weights, tensors, shape, robot, made)


def _learn(settings: FlipTraining, episodes: list[Episode], shape: ActShape, folder: RunFolder) -> tuple[Act, float]:
    torch.manual_seed(settings.seed)
    joints, cube, chunks, there = _moments(episodes, settings.chunk)
    action = chunks.reshape(-1, chunks.shape[-1])
    scales = {
        f"{name}_{what}": value.float()
        for name, data in (("joint", joints), ("cube", cube), ("action", action))
        for what, value in (("mean", data.mean(0)), ("scale", data.std(0) + 1e-2))
    }
    network = Act(shape, scales)
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=1e-4)
    begin, last = 0, 0.0
    if folder.checkpoint.exists():
        header, _ = load_checkpoint(folder.checkpoint, network, optimiser)
        begin, last = int(header["step"]), float(header["loss"])
    target = (chunks - scales["action_mean"]) / scales["action_scale"]
    with progress() as bar:
        task = bar.add_task("ACT", total=settings.steps, completed=begin)
        for step in range(begin, settings.steps):
            rng = torch.Generator().manual_seed(settings.seed * 1_000_003 + step)
            for group in optimiser.param_groups:
                group["lr"] = settings.learning_rate * _warm_and_cool(step / settings.steps)
            rows = torch.randint(len(joints), (settings.batch,), generator=rng)
            seen = joints[rows] + settings.noise * torch.randn(joints[rows].shape, generator=rng)
            q, c = network.normal(seen, cube[rows])
            mean, log_variance = network.styled(q, target[rows])
            latent = mean + torch.exp(0.5 * log_variance) * torch.randn(mean.shape, generator=rng)
            wrong = (network(q, c, latent) - target[rows]).abs() * there[rows][..., None]
            divergence = -0.5 * (1.0 + log_variance - mean**2 - log_variance.exp()).sum(-1).mean()
            loss = wrong.mean() + settings.kl * divergence
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            now = float(wrong.detach().mean())
            last = 0.99 * last + 0.01 * now if step else now
            bar.advance(task)
            if (step + 1) % CHECKPOINT == 0:
                save_checkpoint(folder.checkpoint, network, optimiser, {"step": step + 1, "loss": last})
                folder.note(step=step + 1, loss=last, divergence=float(divergence.detach()))
    return network, last


def _warm_and_cool(share: float) -> float:
    """The learning rate over a training, as a share of its largest."""
    return min(1.0, share / 0.03 + 0.03) * 0.5 * (1.0 + np.cos(np.pi * share))


def _moments(episodes: list[Episode], chunk: int) -> tuple[torch.Tensor, ...]:
    """Joints, cube, the chunk of actions that follows, and which of those lie within the episode."""
    joints, cube, chunks, there = [], [], [], []
    for episode in episodes:
        length = len(episode.action)
        index = np.minimum(np.arange(length)[:, None] + np.arange(chunk), length - 1)
        joints.append(episode.joints)
        cube.append(episode.cube)
        chunks.append(episode.action[index])
        there.append(np.arange(length)[:, None] + np.arange(chunk) < length)
    together = (np.concatenate(parts).astype(np.float32) for parts in (joints, cube, chunks, there))
    return tuple(torch.from_numpy(part) for part in together)
