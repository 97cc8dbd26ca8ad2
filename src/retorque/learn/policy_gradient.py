"""Proximal policy optimisation in three pieces: advantages of a rollout, the clipped gain, and a bounded step."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


def generalised_advantages(
    reward: Tensor, value: Tensor, after: Tensor, lost: Tensor, cut: Tensor, *, discount: float, trace: float
) -> Tensor:
    """Advantages of all steps, each argument (steps, trials).

    Args:
        reward: of each step.
        value: expected before it.
        after: expected after it.
        lost: 1 where nothing more can come after it.
        cut: 1 where the next step belongs to another episode.
        discount: of a step later.
        trace: how far later surprises count.
    """
    found, running = torch.zeros_like(reward), torch.zeros_like(reward[0])
    for t in range(len(found) - 1, -1, -1):
        surprise = reward[t] + discount * (1.0 - lost[t]) * after[t] - value[t]
        running = surprise + discount * trace * (1.0 - cut[t]) * running
        found[t] = running
    return found


def standardised(advantages: Tensor) -> Tensor:
    """Advantages of all steps and trials in one row, with mean zero and deviation one."""
    flat = advantages.flatten()
    return (flat - flat.mean()) / (flat.std() + 1e-6)


def clipped_gain(ratio: Tensor, advantages: Tensor, clip: float) -> Tensor:
    """What a policy gains over the one that made the rollout, as far as it stays near it.

    Args:
        ratio: (rows,) probability of what was tried, over what it was then.
        advantages: (rows,)
        clip: how far from one a ratio counts.
    """
    limited = torch.clamp(ratio, 1.0 - clip, 1.0 + clip)
    return torch.minimum(ratio * advantages, limited * advantages).mean()


def descend(loss: Tensor, parameters: Iterable[nn.Parameter], optimiser: torch.optim.Optimizer, longest: float) -> None:
    """One step down a loss, along a gradient of at most that length."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(parameters, longest)
    optimiser.step()
