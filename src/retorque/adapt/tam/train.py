"""Training: shards join on a fixed schedule and batches follow from seed and step, so that a run resumes exactly."""

from __future__ import annotations

import json
import logging
import math
import multiprocessing
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from retorque.adapt.tam.checkpoint import load_checkpoint, save_checkpoint
from retorque.adapt.tam.data import RolloutSettings
from retorque.adapt.tam.network import Tam
from retorque.adapt.tam.objective import objective
from retorque.adapt.tam.pool import Pool
from retorque.adapt.tam.preset import preset
from retorque.adapt.tam.shards import make_shard, shard_path, work
from retorque.adapt.tam.weights import load_weights, save_weights
from retorque.errors import RetorqueError
from retorque.robots.robot import Robot

log = logging.getLogger(__name__)

FIVE = ("panda", "piper", "rby1", "iiwa14", "rizon4")
"""The robots of multi-robot pretraining; google_robot and z1 are held out."""


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """Settings of `retorque train tam`."""

    robots: tuple[str, ...] = FIVE
    """Robots whose rollouts are trained on."""
    preset: str = "small"
    """Size of the network: small or paper."""
    latent: int = 0
    """Numbers in each joint's latent; 0: as the preset says."""
    variant: str = "tam"
    """tam, tam-no-residual, short-window, physpred or privileged."""
    hours: float = 2.0
    """How long to train [h]; the learning rate falls over this time."""
    steps: int = 0
    """Stop after so many steps instead; 0: by the hours."""
    out: Path = Path("tam")
    """Folder of checkpoint, metrics, shards and weights; a run found there is resumed."""
    finetune: Path | None = None
    """Weights to start from; with one robot the result serves that robot only."""
    workers: int = 1
    """Processes that make rollouts beside the training; 0: made in between steps."""
    seed: int = 1000
    """Of everything random."""
    shards: Path | None = None
    """Folder of shards to use and fill; default: one within `out`."""
    rollouts: int = 128
    """Rollouts in a shard."""
    first_shards: int = 0
    """Shards to begin with; 0: one of every robot."""
    steps_per_shard: int = 80
    """A new shard joins after so many steps."""
    capacity: int = 60
    """Shards kept in memory."""
    batch: int = 16
    """Rollouts in a batch."""
    states: int = 2
    """States for each column of a rollout in a batch."""
    samples: int = 1
    """Nominal torques for each state."""
    short_share: float = 0.7
    """Share of the batches that are cut to the first half of the history: cheaper, and the beginning matters most."""
    rollout: int = 2
    """Ticks that the network's own commands are followed and judged for (closed-loop rollout loss); 0: none."""
    rollout_share: float = 0.25
    """Share of the batches in which that is done."""
    learning_rate: float = 2e-3
    """Largest learning rate."""
    warmup: int = 100
    """Steps until the largest learning rate."""
    threads: int = 1
    """Threads of PyTorch."""
    checkpoint_minutes: float = 3.0
    """Time between checkpoints [min]."""
    unmodelled: float = 0.0
    """Share of the shards with effects that no parameter describes."""


@dataclass
class _Run:
    """What changes while training."""

    step: int = 0
    elapsed: float = 0.0
    curve: list[dict[str, Any]] = field(default_factory=list)


def train(settings: TrainSettings) -> Path:
    """Train until the time or the steps are over; the path of the weights.

    A run in `settings.out` that was stopped is carried on from its last checkpoint.
    """
    _validate(settings)
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    size = preset(settings.preset, settings.variant)
    if settings.latent:
        size = replace(size, latent=settings.latent)
    robots = [Robot.load(name) for name in settings.robots]
    names = [robot.name for robot in robots]
    network = Tam(size)
    start: dict[str, Any] = {}
    if settings.finetune is not None:
        tensors, found, start = load_weights(settings.finetune)
        if found != size:
            raise RetorqueError(
                f"'{settings.finetune}' has preset '{found.name}' and variant '{found.variant}', not '{size.name}' and "
                f"'{size.variant}'; choose the same"
            )
        network.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in tensors.items()})
    optimiser = torch.optim.AdamW(network.parameters(), lr=settings.learning_rate, weight_decay=1e-3)
    settings.out.mkdir(parents=True, exist_ok=True)
    run, checkpoint = _Run(), settings.out / "checkpoint.safetensors"
    identity = _identity(settings)
    if checkpoint.exists():
        head = load_checkpoint(checkpoint, network, optimiser)
        if head["identity"] != identity:
            raise RetorqueError(f"'{settings.out}' holds a run with other settings; choose another --out or delete it")
        run.step, run.elapsed, run.curve = head["step"], head["elapsed"], head["curve"]
        log.info("resumed at step %d", run.step)
    folder = settings.shards or settings.out / "shards"
    folder.mkdir(parents=True, exist_ok=True)
    one = settings.finetune is not None and len(names) == 1  # what serves one robot need not know others
    rollouts = RolloutSettings(
        rollouts=settings.rollouts, unmodelled=settings.unmodelled, other_armature=0.0 if one else 0.5
    )
    pool = Pool(size, max(robot.n for robot in robots), settings.capacity)
    feeder = _Feeder(folder, names, size, rollouts, settings)
    feeder.skip(max(0, feeder.due(run.step) - settings.capacity))

    def keep() -> None:
        head = {"identity": identity, "step": run.step, "elapsed": run.elapsed, "curve": run.curve}
        save_checkpoint(checkpoint, network, optimiser, head)

    made = {"seed": settings.seed, "began_from": start["checksum"] if start else ""}
    with feeder, _bar() as bar:
        task = bar.add_task("train", total=1.0, note="")
        begun, last = time.monotonic() - run.elapsed, time.monotonic()
        while (progress := _progress(settings, run)) < 1.0:
            fresh = feeder.feed(pool, run.step)
            measured = _step(settings, network, optimiser, pool, run.step, progress)
            run.step += 1
            run.elapsed = time.monotonic() - begun
            if fresh or run.step % 20 == 0:
                point = {"step": run.step, "minutes": round(run.elapsed / 60.0, 3), "shards": feeder.taken, **measured}
                run.curve.append(point)
                _write_metrics(settings.out / "metrics.jsonl", run.curve)
            note = f"step {run.step}  loss {measured['loss']:.3f}  {run.step / max(run.elapsed, 1e-9):.2f} steps/s"
            bar.update(task, completed=progress, note=note)
            if time.monotonic() - last > 60.0 * settings.checkpoint_minutes:
                keep()
                last = time.monotonic()
        keep()
    made.update(steps=run.step, minutes=round(run.elapsed / 60.0, 1))
    tensors = {name: value.detach().numpy().copy() for name, value in network.state_dict().items()}
    only = names[0] if one else ""
    path = settings.out / "weights.safetensors"
    save_weights(path, tensors, size, names, only, made)
    return path


def _step(
    settings: TrainSettings, network: Tam, optimiser: torch.optim.AdamW, pool: Pool, step: int, progress: float
) -> dict[str, float]:
    rng = np.random.default_rng([settings.seed, step])
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    batch = pool.draw(settings.batch, settings.states, rng)
    if rng.uniform() < settings.short_share:
        batch = _first_half(batch, network.preset.columns // 2, network.preset.stride_rows, network.preset.slow)
    rate = settings.learning_rate * min(1.0, (step + 1) / settings.warmup)
    rate *= 0.02 + 0.98 * 0.5 * (1.0 + math.cos(math.pi * progress))
    for group in optimiser.param_groups:
        group["lr"] = rate
    ticks = settings.rollout if rng.uniform() < settings.rollout_share else 0
    found = objective(network, batch, settings.samples, generator, ticks)
    optimiser.zero_grad(set_to_none=True)
    found["loss"].backward()
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
    optimiser.step()
    return {k: round(float(v.detach()), 5) for k, v in found.items()} | {"norm": round(float(norm), 3), "rate": rate}


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


class _Feeder:
    """Makes shards, in processes of its own or in between, and hands them to the pool when they are due."""

    def __init__(self, folder: Path, robots: list[str], size: Any, rollouts: RolloutSettings, settings: TrainSettings):
        self._folder, self._robots, self._size, self._rollouts = folder, robots, size, rollouts
        self._settings = settings
        self._workers: list[Any] = []
        self.taken = 0
        spawn = multiprocessing.get_context("spawn")
        self._wanted = spawn.Value("i", 0)
        for worker in range(settings.workers):
            arguments = (
                folder,
                robots,
                size,
                rollouts,
                settings.seed,
                worker,
                settings.workers,
                self._wanted,
                os.getpid(),
            )
            self._workers.append(spawn.Process(target=work, args=arguments, daemon=True))

    def __enter__(self) -> _Feeder:
        for worker in self._workers:
            worker.start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.terminate()
            worker.join()

    def due(self, step: int) -> int:
        """How many shards have joined by a step."""
        return (self._settings.first_shards or len(self._robots)) + step // self._settings.steps_per_shard

    def skip(self, count: int) -> None:
        """Begin with a later shard: the earlier ones have left the pool already."""
        self.taken = count

    def feed(self, pool: Pool, step: int) -> bool:
        """Give the pool what is due at a step, waiting for it where necessary; whether anything came."""
        due = self.due(step)
        self._wanted.value = due + 2
        before = self.taken
        while self.taken < due:
            path = shard_path(self._folder, self.taken)
            if not self._workers:
                s = self._settings
                make_shard(self._folder, self.taken, self._robots, self._size, self._rollouts, s.seed)
            while not path.exists():
                if not any(worker.is_alive() for worker in self._workers):
                    raise RetorqueError(
                        "the processes that make rollouts have ended; run again with --workers 0 to see why"
                    )
                time.sleep(0.1)
            pool.add(path)
            self.taken += 1
        return self.taken > before


def _progress(settings: TrainSettings, run: _Run) -> float:
    if settings.steps:
        return run.step / settings.steps
    return run.elapsed / (3600.0 * settings.hours)


def _identity(settings: TrainSettings) -> dict[str, Any]:
    """What must not change between the parts of a run."""
    kept = (
        "preset",
        "latent",
        "variant",
        "seed",
        "rollouts",
        "first_shards",
        "steps_per_shard",
        "capacity",
        "batch",
        "states",
        "samples",
        "short_share",
        "rollout",
        "rollout_share",
        "learning_rate",
        "warmup",
        "unmodelled",
        "steps",
    )
    return {**{name: getattr(settings, name) for name in kept}, "robots": list(settings.robots)}


def _write_metrics(path: Path, curve: list[dict[str, Any]]) -> None:
    from retorque.files import write_whole

    write_whole(path, "".join(json.dumps(point) + "\n" for point in curve))


def _bar() -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=Console(stderr=True))


def _validate(settings: TrainSettings) -> None:
    if not settings.robots:
        raise RetorqueError("training needs at least one robot; name some with --robots")
    if settings.steps < 0 or not (settings.steps or 0.0 < settings.hours <= 10000.0):
        raise RetorqueError("--hours must be more than 0, or --steps at least 1")
    for name in ("rollouts", "steps_per_shard", "capacity", "batch", "states", "samples", "threads"):
        if getattr(settings, name) < 1:
            raise RetorqueError(f"--{name.replace('_', '-')} must be at least 1")
    if settings.workers < 0 or settings.latent < 0 or settings.rollout < 0:
        raise RetorqueError("--workers, --latent and --rollout must be at least 0")
