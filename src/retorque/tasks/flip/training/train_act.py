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
from retorque.tasks.flip.flip_task import HAND_VIEW
from retorque.tasks.flip.lerobot import read_dataset, write_dataset
from retorque.tasks.flip.training.act_module import Act
from retorque.work.checks import check_between
from retorque.work.errors import RetorqueError
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
    images: bool = False
    """Record what a camera on the hand sees, and learn from that instead of the cube's pose."""
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
    brightness: float = 0.15
    """Largest change of a picture's brightness and contrast while learning, as a share."""
    pose: float = 0.2
    """Weight of the head that says where the cube is in a picture."""
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
        played = record_demonstrations(robot, settings.demonstrations, settings.seed, settings.images)
        write_dataset(data, played, robot.name)
    episodes = read_dataset(data)
    size = (HAND_VIEW.height, HAND_VIEW.width) if settings.images else (0, 0)
    shape = ActShape(
        joints=robot.n,
        actions=robot.n + 1,
        chunk=settings.chunk,
        width=settings.width,
        picture_height=size[0],
        picture_width=size[1],
    )
    network, loss = _learn(settings, episodes, shape, folder)
    tensors = {
        name: value.detach().numpy().copy()
        for name, value in network.state_dict().items()
        if not name.startswith(("style", "pose"))
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
    pictures = _pictures(episodes) if settings.images else None
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
            felt = joints[rows] + settings.noise * torch.randn(joints[rows].shape, generator=rng)
            q, c = network.normal(felt, cube[rows])
            mean, log_variance = network.styled(q, target[rows])
            latent = mean + torch.exp(0.5 * log_variance) * torch.randn(mean.shape, generator=rng)
            looked = c if pictures is None else _looked_at(pictures[rows], settings.brightness, rng)
            acted, found = network.both(q, looked, latent)
            wrong = (acted - target[rows]).abs() * there[rows][..., None]
            astray = torch.zeros(()) if found is None else (found - c).abs().mean()
            divergence = -0.5 * (1.0 + log_variance - mean**2 - log_variance.exp()).sum(-1).mean()
            loss = wrong.mean() + settings.kl * divergence + settings.pose * astray
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()
            now = float(wrong.detach().mean())
            last = 0.99 * last + 0.01 * now if step else now
            bar.advance(task)
            if (step + 1) % CHECKPOINT == 0:
                save_checkpoint(folder.checkpoint, network, optimiser, {"step": step + 1, "loss": last})
                seen = {} if found is None else {"pose_error": float(astray.detach())}
                folder.note(step=step + 1, loss=last, divergence=float(divergence.detach()), **seen)
    return network, last


def _pictures(episodes: list[Episode]) -> torch.Tensor:
    """(moments, 3, height, width) of bytes."""
    seen = [episode.pictures for episode in episodes if episode.pictures is not None]
    if len(seen) != len(episodes):
        raise RetorqueError("this data set holds no pictures; record it anew with --images, in another folder")
    return torch.from_numpy(np.concatenate(seen)).permute(0, 3, 1, 2).contiguous()


def _looked_at(pictures: torch.Tensor, most: float, rng: torch.Generator) -> torch.Tensor:
    """Pictures within ±1, each a little brighter or darker, of more or less contrast."""
    change = most * (2.0 * torch.rand((2, len(pictures), 1, 1, 1), generator=rng) - 1.0)
    return (pictures.float() / 127.5 - 1.0) * (1.0 + change[0]) + change[1]


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
