"""How wide TAM's latent must be: held-out torque error and the latent's invariance to the motion (TAM, Table F.2)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import StreamingEncoder
from retorque.adapt.tam.fast_adaptor import FastAdaptor
from retorque.adapt.tam.tam_weights import load_weights
from retorque.adapt.tam.training.bank import Bank, crossed_bank, waypoint_motions
from retorque.bench.report import Report, Row, recorded
from retorque.bench.scatter import scatter_picture
from retorque.control.reference import Reference
from retorque.robots.robot import Robot
from retorque.tasks.push.pushing_motions import pushing_motions
from retorque.work.array import Array
from retorque.work.checks import MOST_SEED, MOST_TRIALS, check_between, check_names
from retorque.work.errors import RetorqueError
from retorque.work.jobs import JobSettings

PAPER = {16: (1.038, 0.200), 64: (0.977, 0.213), 256: (1.017, 0.341)}
"""Held-out torque RMSE [N·m] and invariance ratio of Table F.2, by the latent's size."""


PICTURED = 16
"""Conditions and motions in the picture: its time grows with the square of both."""
MOST_LATENT, MOST_STEPS = 4096, 10**9
"""Beyond these no training ends."""


@dataclass(frozen=True, kw_only=True)
class Settings(JobSettings):
    """Settings of `retorque bench tam-bottleneck`."""

    workers: int = 0
    """Processes, or tasks of the cluster, that make training data; 0: it is made in between steps."""
    robot: str = "panda"
    """The robot trained and tested on."""
    latents: tuple[int, ...] = (16, 64, 256)
    """Sizes of the latent."""
    steps: int = 300
    """Training steps of each size."""
    conditions: int = 16
    """Physical conditions of the crossed bank (the paper has 64)."""
    trajectories: int = 16
    """Motions of the crossed bank (the paper has 64)."""
    motions: Literal["waypoints", "push"] = "waypoints"
    """Random ones, or those of the ideal robot pushing boxes as in the paper."""
    duration: float = 6.0
    """Length of each motion of the bank [s]."""
    shards: int = 4
    """Shards of training data to begin with."""
    rollouts: int = 64
    """Rollouts in each shard of training data."""
    seed: int = 0
    """Of everything random."""
    out: Path = Path("tam-bottleneck")
    """Folder of trainings, shards and the picture; finished trainings found there are used."""
    json: Path | None = None
    """Also write the rows to this file."""


def run(settings: Settings) -> Report:
    """Train each size, replay the crossed bank through it, and compare."""
    if min(settings.conditions, settings.trajectories) < 2:
        raise RetorqueError("the bank needs at least 2 --conditions and 2 --trajectories to compare")
    check_names("size", "--latents", settings.latents)
    for size in settings.latents:
        check_between("--latents", size, 1, MOST_LATENT)
    check_between("--steps", settings.steps, 1, MOST_STEPS)
    check_between("--shards", settings.shards, 1, MOST_TRIALS)
    check_between("--rollouts", settings.rollouts, 1, MOST_TRIALS)
    check_between("--duration", settings.duration, 1.0, 3600.0, "s")
    check_between("--seed", settings.seed, 0, MOST_SEED - 1)  # the bank takes the next one
    settings.check_jobs()
    check_between("--conditions x --trajectories", settings.conditions * settings.trajectories, 4, MOST_TRIALS)
    context = Context(Robot.load(settings.robot))
    rows: list[Row] = []
    bank: Bank | None = None
    for size in settings.latents:
        tensors, preset, _ = load_weights(_trained(settings, size))
        if bank is None:
            seed = settings.seed + 1
            bank = crossed_bank(
                context, preset, settings.conditions, _motions(settings, context, seed + 1), settings.duration, seed
            )
        trials = settings.conditions * settings.trajectories
        encoder, adaptor = StreamingEncoder(tensors, preset, context, trials), FastAdaptor(tensors, preset, context)
        for column in range(bank.patches.shape[1]):
            latent = encoder.push(bank.patches[:, column])
        adaptor.set_latent(latent)
        errors = np.sqrt(np.mean(bank.torque_errors(adaptor) ** 2, axis=(0, 2)))  # (trials,) [N·m]
        flat = latent.reshape(settings.conditions, settings.trajectories, -1)
        torque_paper, ratio_paper = PAPER.get(size, (None, None))
        name = f"latent {size}"
        rows.append(
            Row.of(
                errors, robot=settings.robot, method=name, metric="held-out torque RMSE", unit="N·m", paper=torque_paper
            )
        )
        rows.append(
            Row.of(
                invariance_ratios(flat),
                robot=settings.robot,
                method=name,
                metric="invariance ratio",
                unit="-",
                paper=ratio_paper,
            )
        )
        if size == 64 or len(settings.latents) == 1:
            scatter_picture(flat[:PICTURED, :PICTURED], settings.out / "tsne.png", settings.seed)
    return Report(
        bench="tam-bottleneck",
        settings={k: v for k, v in recorded(settings).items() if k != "out"},
        rows=rows,
        notes=(
            "invariance ratio: distance between motions of one condition over that between conditions of one motion; "
            "paper: 64 x 64 pushing motions after 150,000 steps, here "
            + ("random waypoint motions" if settings.motions == "waypoints" else "pushing motions")
            + " and a short training"
        ),
    )


def invariance_ratios(latents: Array) -> Array:
    """R_z (F.2 - F.5) of latents (conditions, trajectories, numbers), once for each condition, (conditions,)."""
    spread = latents.std(axis=(0, 1))
    white = (latents - latents.mean(axis=(0, 1))) / np.where(spread > 1e-9, spread, 1.0)
    scale = 1.0 / np.sqrt(white.shape[-1])
    same_condition = np.linalg.norm(white[:, :, None] - white[:, None, :], axis=-1) * scale  # (c, t, t)
    same_motion = np.linalg.norm(white[:, None] - white[None, :], axis=-1) * scale  # (c, c, t)
    c, t = white.shape[:2]
    within = same_condition.sum(axis=(1, 2)) / (t * (t - 1))
    between = same_motion.sum(axis=(1, 2)) / ((c - 1) * t)
    return within / between


def _motions(settings: Settings, context: Context, seed: int) -> Reference:
    """What the bank replays."""
    if settings.motions == "push":
        return pushing_motions(context.robot, settings.trajectories, settings.duration, seed)
    return waypoint_motions(context, settings.trajectories, settings.duration, seed)


def _trained(settings: Settings, size: int) -> Path:
    """Weights with a latent of that size."""
    from retorque.adapt.tam.training.train import TamTraining, train

    return train(
        TamTraining(
            robots=(settings.robot,),
            latent=size,
            steps=settings.steps,
            out=settings.out / f"latent-{size}",
            shards=settings.out / "shards",
            first_shards=settings.shards,
            workers=settings.workers,
            cluster=settings.cluster,
            rollouts=settings.rollouts,
            steps_per_shard=100,
            seed=settings.seed,
        )
    )
