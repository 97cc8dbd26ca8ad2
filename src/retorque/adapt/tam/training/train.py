"""Training: shards join on a fixed schedule and batches follow from seed and step, so that a run resumes exactly."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch

from retorque.adapt.tam.preset import Preset, preset
from retorque.adapt.tam.tam_weights import load_weights, save_weights
from retorque.adapt.tam.training.network import Tam
from retorque.adapt.tam.training.objective import objective
from retorque.adapt.tam.training.pool import Pool
from retorque.adapt.tam.training.recipe import TamRecipe
from retorque.adapt.tam.training.rollouts import RolloutSettings
from retorque.adapt.tam.training.train_settings import TamTraining
from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.feeder import Feeder, ShardSchedule
from retorque.learn.ranks import Ranks, joined
from retorque.learn.run_folder import RunFolder
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError
from retorque.work.jobs import progress as progress_bar
from retorque.work.tensors import checksum

PAPER_SAMPLES = 64
"""S, the nominal torques for each state of Table B.2."""

log = logging.getLogger(__name__)


@dataclass
class _Run:
    """What changes while training."""

    step: int = 0
    elapsed: float = 0.0


def train(settings: TamTraining) -> Path:
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


def _train(settings: TamTraining, size: Preset, robots: list[Robot], ranks: Ranks) -> Path:
    torch.manual_seed(settings.seed)
    network = Tam(size)
    began_from = _begin(network, settings.finetune) if settings.finetune is not None else ""
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=1e-3)
    folder = RunFolder(settings.out, settings.identity(ranks.size))
    run = _resumed(folder, network, optimiser, ranks)
    one = settings.finetune is not None and len(robots) == 1  # what serves one robot need not know others
    pool = Pool(size, max(robot.n for robot in robots), settings.capacity)
    with _feeder(settings, size, one, run, ranks) as feeder, progress_bar(ranks.first) as bar:
        task = bar.add_task("train", total=1.0)
        begun, last = time.monotonic() - run.elapsed, time.monotonic()
        while (progress := ranks.tell([_progress(settings, run)])[0]) < 1.0:
            fresh = feeder.feed(pool.add, run.step)
            measured = _step(settings, network, optimiser, pool, run.step, progress, ranks)
            run.step += 1
            run.elapsed = time.monotonic() - begun
            if not ranks.first:
                continue
            if fresh or run.step % 20 == 0:
                folder.note(step=run.step, minutes=round(run.elapsed / 60.0, 3), shards=feeder.taken, **measured)
            note = f"step {run.step}  loss {measured['loss']:.3f}  {run.step / max(run.elapsed, 1e-9):.2f} steps/s"
            bar.update(task, completed=progress, description=note)
            if time.monotonic() - last > 60.0 * settings.checkpoint_minutes:
                save_checkpoint(folder.checkpoint, network, optimiser, asdict(run))
                last = time.monotonic()
    if ranks.first:
        save_checkpoint(folder.checkpoint, network, optimiser, asdict(run))
        made = {"seed": settings.seed, "began_from": began_from}
        made.update(steps=run.step, minutes=round(run.elapsed / 60.0, 1))
        tensors = {name: value.detach().numpy() for name, value in network.state_dict().items()}
        save_weights(folder.weights, tensors, size, robots, robots[0].name if one else "", made)
    ranks.wait()  # the path is good in all processes
    return folder.weights


def _feeder(settings: TamTraining, size: Preset, one: bool, run: _Run, ranks: Ranks) -> Feeder:
    """What brings the rollouts; a network for one robot sees no other armatures."""
    folder = settings.shards or settings.out / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    rollouts = RolloutSettings(
        rollouts=settings.rollouts, unmodelled=settings.unmodelled, other_armature=0.0 if one else 0.5
    )
    if size.as_published:  # its ideal robot is one, every rollout is pushed, every history noisy (B.1)
        rollouts = replace(rollouts, other_armature=0.0, contact=1.0, perfect_sensors=0.0)
    recipe = TamRecipe(robots=settings.robots, preset=size, rollouts=rollouts, seed=settings.seed)
    schedule = ShardSchedule(
        first=settings.first_shards or len(settings.robots),
        steps_per_shard=settings.steps_per_shard,
        capacity=settings.capacity,
        workers=settings.workers,
        cluster=settings.cluster,
    )
    return Feeder(folder, recipe, schedule, run.step, ranks.first)


def _begin(network: Tam, path: Path) -> str:
    """Put the weights to start from into the network; their checksum."""
    tensors, found, _ = load_weights(path)
    size = network.preset
    if found != size:
        raise RetorqueError(
            f"'{path}' has preset '{found.name}' and variant '{found.variant}', not '{size.name}' and "
            f"'{size.variant}'; choose the same"
        )
    network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in tensors.items()})
    return checksum(tensors)


def _resumed(folder: RunFolder, network: Tam, optimiser: torch.optim.AdamW, ranks: Ranks) -> _Run:
    """The run as its checkpoint left it, or a new one; the same in all processes."""
    run = _Run()
    if folder.checkpoint.exists():
        header, _ = load_checkpoint(folder.checkpoint, network, optimiser)
        run = _Run(**header)
        log.info("resumed at step %d", run.step)
    if ranks.tell([run.step])[0] != run.step:
        raise RetorqueError(f"not all processes see the same '{folder.path}'; put --out into a folder that they share")
    if ranks.first:
        folder.forget_after(run.step)
    ranks.share(network)
    return run


def _step(
    settings: TamTraining,
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


def learning_rate(settings: TamTraining, step: int, progress: float) -> float:
    """Rises during the warm-up, then falls along a cosine to a fiftieth."""
    rate = settings.learning_rate * min(1.0, (step + 1) / settings.warmup)
    return rate * (0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * progress)))


def batch_loss(settings: TamTraining, network: Tam, pool: Pool, step: int, ranks: Ranks) -> dict[str, torch.Tensor]:
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
    samples = settings.samples or (PAPER_SAMPLES if network.preset.as_published else 1)
    return objective(network, batch, samples, generator, ticks)


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


def _progress(settings: TamTraining, run: _Run) -> float:
    if settings.steps:
        return run.step / settings.steps
    return run.elapsed / (3600.0 * settings.hours)
