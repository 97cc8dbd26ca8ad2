"""Training: shards join on a fixed schedule and batches follow from seed and step, so that a run resumes exactly."""

from __future__ import annotations

import json
import logging
import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from retorque.adapt.tam.preset import Preset, preset
from retorque.adapt.tam.training.feeder import Feeder
from retorque.adapt.tam.training.network import Tam
from retorque.adapt.tam.training.objective import objective
from retorque.adapt.tam.training.pool import Pool
from retorque.adapt.tam.training.rollouts import RolloutSettings
from retorque.adapt.tam.training.shards import Recipe
from retorque.adapt.tam.training.train_settings import TrainSettings, check_same_run
from retorque.adapt.tam.weights import load_weights, save_weights
from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.ranks import Ranks, joined
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

log = logging.getLogger(__name__)


@dataclass
class _Run:
    """What changes while training."""

    step: int = 0
    elapsed: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)


def train(settings: TrainSettings) -> Path:
    """Train until the time or the steps are over; the path of the weights.

    A run in `settings.out` that was stopped is carried on from its last checkpoint. Under torchrun all processes train
    together: each draws batches of its own, gradients are averaged, and the first one makes shards and writes files.
    """
    settings.validate()
    size = preset(settings.preset, settings.variant)
    if settings.latent:
        size = replace(size, latent=settings.latent)
    robots = [Robot.load(name) for name in settings.robots]
    torch.set_num_threads(settings.threads)
    with joined() as ranks:
        return _train(settings, size, robots, ranks)


def _train(settings: TrainSettings, size: Preset, robots: list[Robot], ranks: Ranks) -> Path:
    names = [robot.name for robot in robots]
    torch.manual_seed(settings.seed)
    network = Tam(size)
    began_from = _begin(network, settings.finetune) if settings.finetune is not None else ""
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=1e-3)
    settings.out.mkdir(parents=True, exist_ok=True)
    checkpoint, identity = settings.out / "checkpoint.safetensors", settings.identity(ranks.size)
    run = _resumed(checkpoint, network, optimiser, identity, ranks)
    folder = settings.shards or settings.out / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    one = settings.finetune is not None and len(names) == 1  # what serves one robot need not know others
    rollouts = RolloutSettings(
        rollouts=settings.rollouts, unmodelled=settings.unmodelled, other_armature=0.0 if one else 0.5
    )
    recipe = Recipe(robots=tuple(names), preset=size, rollouts=rollouts, seed=settings.seed)
    pool = Pool(size, max(robot.n for robot in robots), settings.capacity)

    def keep() -> None:
        head = {"identity": identity, "step": run.step, "elapsed": run.elapsed, "curve": run.curve}
        save_checkpoint(checkpoint, network, optimiser, head)

    with Feeder(folder, recipe, settings, run.step, ranks.first) as feeder, _bar(ranks.first) as bar:
        task = bar.add_task("train", total=1.0, note="")
        begun, last = time.monotonic() - run.elapsed, time.monotonic()
        while (progress := ranks.tell([_progress(settings, run)])[0]) < 1.0:
            fresh = feeder.feed(pool, run.step)
            measured = _step(settings, network, optimiser, pool, run.step, progress, ranks)
            run.step += 1
            run.elapsed = time.monotonic() - begun
            if not ranks.first:
                continue
            if fresh or run.step % 20 == 0:
                point = {"step": run.step, "minutes": round(run.elapsed / 60.0, 3), "shards": feeder.taken, **measured}
                run.curve.append(point)
                write_whole(settings.out / "metrics.jsonl", "".join(json.dumps(point) + "\n" for point in run.curve))
            note = f"step {run.step}  loss {measured['loss']:.3f}  {run.step / max(run.elapsed, 1e-9):.2f} steps/s"
            bar.update(task, completed=progress, note=note)
            if time.monotonic() - last > 60.0 * settings.checkpoint_minutes:
                keep()
                last = time.monotonic()
        if ranks.first:
            keep()
    path = settings.out / "weights.safetensors"
    if ranks.first:
        made = {"seed": settings.seed, "began_from": began_from}
        made.update(steps=run.step, minutes=round(run.elapsed / 60.0, 1))
        tensors = {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}
        save_weights(path, tensors, size, names, names[0] if one else "", made)
    ranks.wait()  # the path is good in all processes
    return path


def _begin(network: Tam, path: Path) -> str:
    """Put the weights to start from into the network; their checksum."""
    tensors, found, start = load_weights(path)
    size = network.preset
    if found != size:
        raise RetorqueError(
            f"'{path}' has preset '{found.name}' and variant '{found.variant}', not '{size.name}' and "
            f"'{size.variant}'; choose the same"
        )
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in tensors.items()})
    return start["checksum"]


def _resumed(
    checkpoint: Path, network: Tam, optimiser: torch.optim.AdamW, identity: dict[str, Any], ranks: Ranks
) -> _Run:
    """The run as its checkpoint left it, or a new one; the same in all processes."""
    run = _Run()
    if checkpoint.exists():
        head = load_checkpoint(checkpoint, network, optimiser)
        check_same_run(checkpoint.parent, head["identity"], identity)
        run = _Run(head["step"], head["elapsed"], head["curve"])
        log.info("resumed at step %d", run.step)
    if ranks.tell([run.step])[0] != run.step:
        raise RetorqueError(f"not all processes see the same '{checkpoint}'; put --out into a folder that they share")
    ranks.share(network)
    return run


def _step(
    settings: TrainSettings,
    network: Tam,
    optimiser: torch.optim.AdamW,
    pool: Pool,
    step: int,
    progress: float,
    ranks: Ranks,
) -> dict[str, float]:
    """One step of the optimiser; figures to follow it by, as means over processes."""
    rate = learning_rate(settings, step, progress)
    for group in optimiser.param_groups:
        group["lr"] = rate
    found = batch_loss(settings, network, pool, step, ranks)
    optimiser.zero_grad(set_to_none=True)
    found["loss"].backward()
    ranks.average_gradients(network)
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
    optimiser.step()
    figures = ranks.mean(torch.stack([value.detach() for value in found.values()])).tolist()
    measured = {name: round(value, 5) for name, value in zip(found, figures, strict=True)}
    return measured | {"norm": round(float(norm), 3), "rate": rate}


def learning_rate(settings: TrainSettings, step: int, progress: float) -> float:
    """Rises during the warm-up, then falls along a cosine to a fiftieth."""
    rate = settings.learning_rate * min(1.0, (step + 1) / settings.warmup)
    return rate * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * progress)))


def batch_loss(settings: TrainSettings, network: Tam, pool: Pool, step: int, ranks: Ranks) -> dict[str, torch.Tensor]:
    """The loss of this process's batch of a step, and figures to follow it by.

    Batches differ between processes, but all are cut, or followed for some ticks, when the first one's is: otherwise
    most steps would take as long as the longest kind of batch.
    """
    rng = np.random.default_rng([settings.seed, step, ranks.rank] if ranks.rank else [settings.seed, step])
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    batch = pool.draw(settings.batch, settings.states, rng)
    short, follow = ranks.tell([rng.uniform(), rng.uniform()])
    if short < settings.short_share:
        batch = _first_half(batch, network.preset.columns // 2, network.preset.stride_rows, network.preset.slow)
    ticks = settings.rollout if follow < settings.rollout_share else 0
    return objective(network, batch, settings.samples, generator, ticks)


def _first_half(batch: dict[str, torch.Tensor], columns: int, rows: int, slow: int) -> dict[str, torch.Tensor]:
    """The batch with only the first columns of every history."""
    cut = {}
    for key, value in batch.items():
        if key == "fast":
            cut[key] = value[:, : (columns - 1) * rows]
        elif key == "slow":
            cut[key] = value[:, : (columns - 1) * rows // max(slow, 1)]
        else:
            cut[key] = value[:, :columns] if value.ndim > 3 else value
    return cut


def _progress(settings: TrainSettings, run: _Run) -> float:
    if settings.steps:
        return run.step / settings.steps
    return run.elapsed / (3600.0 * settings.hours)


def _bar(shown: bool) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
