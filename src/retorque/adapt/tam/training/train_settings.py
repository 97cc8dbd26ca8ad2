"""Settings of a training, which of them may not change within a run, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retorque.work.checks import MOST_TRIALS, MOST_WORKERS, check_between
from retorque.work.cluster import require_ray
from retorque.work.errors import RetorqueError

FIVE = ("panda", "piper", "rby1", "iiwa14", "rizon4")
"""The robots of multi-robot pretraining; google_robot and z1 are held out."""

KEPT = (
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
"""What must not change between the parts of a run, besides the robots and the number of processes."""


@dataclass(frozen=True, kw_only=True)
class TamTraining:
    """Settings of `retorque train tam`; the first dozen are for every day, the others for experiments."""

    robots: tuple[str, ...] = FIVE
    """Robots whose rollouts are trained on: names on board, or paths of card, MJCF or URDF files."""
    hours: float = 2.0
    """How long to train [h]; the learning rate falls over this time."""
    steps: int = 0
    """Stop after so many steps instead; 0: by the hours."""
    out: Path = Path("tam")
    """Folder of checkpoint, metrics, shards and weights; a run found there is resumed."""
    finetune: Path | None = None
    """Weights to start from; with one robot the result serves that robot only."""
    preset: str = "small"
    """Size of the network: small, or with the paper's own inputs and loss: paper, paper-small."""
    variant: str = "tam"
    """What to train: tam, or without e_tau alone (tam-no-etau), or without all that the ideal model says
    (tam-no-residual), or the baselines short-window, physpred and privileged."""
    workers: int = 1
    """Processes that make rollouts beside the training; 0: they are made in between steps."""
    cluster: str = ""
    """Ray cluster that makes them instead, `--workers` at a time: auto (runs already), local (new) or HOST:PORT."""
    shards: Path | None = None
    """Folder of rollouts (shards) to use and fill; default: one within `--out`."""
    seed: int = 1000
    """Of everything random."""
    threads: int = 1
    """Threads of PyTorch in each process."""
    checkpoint_minutes: float = 3.0
    """Time between checkpoints [min]."""
    latent: int = 0
    """Numbers in each joint's latent; 0: as the preset says."""
    rollouts: int = 128
    """Rollouts in a shard."""
    first_shards: int = 0
    """Shards to begin with; 0: one of every robot."""
    steps_per_shard: int = 80
    """A new shard joins after so many steps."""
    capacity: int = 60
    """Shards kept in memory; the oldest leave."""
    batch: int = 16
    """Rollouts in a batch; each process draws a batch of its own."""
    states: int = 2
    """States for each column of a rollout in a batch."""
    samples: int = 0
    """Nominal torques for each state; 0: 1, or the paper's 64 for its presets."""
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
    unmodelled: float = 0.0
    """Share of the shards with effects that no parameter describes."""

    def validate(self) -> None:
        """Refuse what cannot be trained with, before anything is written."""
        if not self.robots:
            raise RetorqueError("training needs at least one robot; name some with --robots")
        if self.steps < 0 or not (self.steps or 0.0 < self.hours <= 10000.0):
            raise RetorqueError("--hours must be more than 0, or --steps at least 1")
        for name in ("rollouts", "steps_per_shard", "capacity", "batch", "states", "threads"):
            check_between(f"--{name.replace('_', '-')}", getattr(self, name), 1, MOST_TRIALS)
        for name in ("workers", "latent", "rollout", "first_shards", "samples"):
            check_between(f"--{name.replace('_', '-')}", getattr(self, name), 0, MOST_WORKERS)
        require_ray(self.cluster)

    def identity(self, processes: int) -> dict[str, Any]:
        """What must not change between the parts of a run; one process alone goes without saying."""
        several = {"processes": processes} if processes > 1 else {}
        return {**{name: getattr(self, name) for name in KEPT}, "robots": list(self.robots), **several}
