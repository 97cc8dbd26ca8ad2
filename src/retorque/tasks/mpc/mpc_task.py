"""A planning task: a robot whose parameters are unknown and change, a target, and the figures of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from retorque.plan.cost import QuadraticCost
from retorque.plan.escape import EscapeSettings
from retorque.plan.modelling.free_parameters import FreeParameters
from retorque.robots.card import read_card
from retorque.robots.robot import Robot
from retorque.work.array import Array


@dataclass(frozen=True, kw_only=True)
class MpcTask:
    """One column of the paper's Table II."""

    name: str
    robot: Robot
    timestep: float
    """Of the plant, the samples and the plans [s]."""
    cost: QuadraticCost
    free: FreeParameters
    start: Array
    """(2 n,)"""
    noise: float
    """Standard deviation of states [rad, m, rad/s, m/s] and inputs [N·m or N]."""
    horizon: int
    """H."""
    samples: int
    """T, the paper's window."""
    change: float
    """eps1 of Table I."""
    least: float = 0.5
    """eps2 of Table I."""
    temperature: float
    """Of the confidence scores; not printed in the paper."""
    patience: int = 10
    """N_his, solutions of low confidence before the paper's policy explores; not printed in the paper."""
    tolerance: float = 0.1
    """Distance from the target that is success."""
    steps: int = 1000
    """Within which it must be reached."""
    schedule: tuple[tuple[int, tuple[float, ...]], ...]
    """True parameters from a step on; drawn from the bounds where a row is empty."""
    escape: EscapeSettings = field(default_factory=EscapeSettings)
    paper: dict[str, float] = field(default_factory=dict)
    """Seconds of Table II by policy."""

    def truths(self, seed: int) -> list[tuple[int, Array]]:
        """The schedule of one run."""
        rng = np.random.default_rng([seed, 7])
        rows = []
        for step, given in self.schedule:
            drawn = rng.uniform(self.free.lower, self.free.upper)
            rows.append((step, np.array(given) if given else drawn))
        return rows

    def distance(self, state: Array) -> float:
        """l2 distance of a state (2 n,) from the target."""
        return float(np.linalg.norm(self.cost.error(np.array(state))))


def card(name: str) -> Robot:
    """A robot of the tasks' own cards."""
    return read_card(Path(__file__).parent / "cards" / f"{name}.toml")
