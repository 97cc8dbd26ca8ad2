"""Sizes of the network, by name: what two cores can train, and what the paper trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from retorque.work.errors import RetorqueError, unknown

FORMAT = 1
"""Version of shards, checkpoints and weights; another one is refused."""
MAX_JOINTS = 8
"""Rows of the joint-id table."""
RATE = 1000.0
"""Control rate that histories are recorded at [Hz]."""

Variant = Literal["tam", "tam-no-residual", "tam-no-etau", "short-window", "physpred", "privileged"]
VARIANTS: tuple[str, ...] = ("tam", "tam-no-residual", "tam-no-etau", "short-window", "physpred", "privileged")
"""What is trained: the whole module, or one of the paper's ablations and baselines."""


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Everything that fixes the shape of the weights and of their inputs."""

    name: str = "small"
    """How it is called on the command line."""
    variant: str = "tam"
    """One of `VARIANTS`."""
    average: int = 10
    """Samples averaged into one row of history."""
    patch: int = 400
    """Samples in a patch."""
    stride: int = 200
    """Samples from one patch to the next: one column of tokens each."""
    half_window: int = 25
    """Samples on each side of the derivative fit (B.3)."""
    slow: int = 5
    """Rows averaged into one row of the slowly changing features; 0: the paper's four features only."""
    columns: int = 60
    """Longest history, in columns (12 s)."""
    width: int = 64
    """Width of a token."""
    layers: int = 3
    """Transformer layers."""
    heads: int = 4
    """Attention heads."""
    expand: int = 2
    """Width of the layers' perceptrons, in token widths."""
    factorised: bool = True
    """Attend over time, then over joints; otherwise over all tokens of the past at once."""
    latent: int = 64
    """Numbers in each joint's latent."""
    window: int = 8
    """Ticks the adaptor sees (L)."""
    hidden: int = 64
    """Width of the adaptor."""
    depth: int = 3
    """Adaptive layers of the adaptor."""
    embed: int = 32
    """Width of each of the adaptor's window embeddings."""

    @property
    def patch_rows(self) -> int:
        """Rows in a patch."""
        return self.patch // self.average

    @property
    def stride_rows(self) -> int:
        """Rows from one patch to the next."""
        return self.stride // self.average

    @property
    def as_published(self) -> bool:
        """Whether inputs, adaptor and loss are the paper's own."""
        return self.slow == 0

    @property
    def first_column(self) -> int:
        """The first column that becomes a token: the paper waits for a whole patch."""
        return self.patch // self.stride if self.as_published else 0

    @classmethod
    def of(cls, content: dict[str, Any]) -> Preset:
        """The preset that a header describes."""
        if set(content) != {f.name for f in fields(cls)}:
            raise RetorqueError("the header's preset does not have the fields of this version; train the weights again")
        wrong = [f.name for f in fields(cls) if type(content[f.name]) is not type(f.default)]
        if wrong:
            raise RetorqueError(f"the header's preset has a '{wrong[0]}' of the wrong type; train the weights again")
        return cls(**content)

    def header(self) -> dict[str, Any]:
        """What `of` reads."""
        return asdict(self)


_PAPER: dict[str, Any] = {"average": 1, "half_window": 50, "slow": 0, "expand": 4, "factorised": False, "embed": 56}
"""What makes a preset the paper's: raw ticks, its four features, its derivative fit, attention over all tokens."""

PRESETS: dict[str, Preset] = {
    "tiny": Preset(name="tiny", columns=10, width=32, layers=1, heads=2, latent=16, hidden=32, depth=1, embed=16),
    "small": Preset(),
    "paper": Preset(**_PAPER, name="paper", width=256, layers=5, heads=8),
    "paper-small": Preset(**_PAPER, name="paper-small", width=96, layers=3),
    "paper-tiny": Preset(**{**_PAPER, "embed": 8}, name="paper-tiny", columns=6, width=16, layers=1, heads=2, depth=1),
}
"""The presets on board; `tiny` and `paper-tiny` are for tests, `paper-small` is `paper` with a smaller encoder."""


def preset(name: str, variant: str = "tam") -> Preset:
    """The preset of that name, as one of the variants."""
    if name not in PRESETS:
        raise unknown("preset", name, PRESETS)
    if variant not in VARIANTS:
        raise unknown("variant", variant, VARIANTS)
    if variant == "short-window" and PRESETS[name].as_published:
        raise RetorqueError(f"without history preset '{name}' never wakes; train short-window with preset small")
    return Preset(**{**asdict(PRESETS[name]), "variant": variant})
