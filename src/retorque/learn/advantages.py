"""Generalised advantages: how much better than expected each step of a rollout turned out to be."""

from __future__ import annotations

import torch
from torch import Tensor


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
