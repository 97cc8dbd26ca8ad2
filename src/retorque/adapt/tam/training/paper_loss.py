"""The paper's loss: B.9's nominal torques, and the Huber penalty of the corrected torque in N·m."""

from __future__ import annotations

import torch
from torch import Tensor

from retorque.adapt.tam.paper.paper_scales import QUERIES
from retorque.adapt.tam.training.labels import teacher
from retorque.adapt.tam.training.loss import HUBER, huber, stepped
from retorque.adapt.tam.training.network import Tam

COLUMNS = 12
"""Columns of each history that are asked about in a step, drawn at random: 64 queries a state are many."""
TEACHER = ("A", "b", "losses", "external")


def paper_loss(
    network: Tam,
    batch: dict[str, Tensor],
    samples: int,
    generator: torch.Generator,
    latents: Tensor,
    ticks: int = 0,
) -> dict[str, Tensor]:
    """Mean Huber loss of the corrected torques (in thresholds of 0.01 N·m), and errors to follow it by [N·m].

    With `ticks`, the same loss is taken again after each of so many ticks under the network's own command for the first
    query (closed-loop rollout loss); the latent stays that of the logged history.
    """
    first = network.preset.first_column
    chosen = torch.randperm(latents.shape[1], generator=generator)[:COLUMNS]
    z = latents[:, chosen]
    states = {k: v[:, first:][:, chosen] if v.ndim > 3 and k not in ("fast", "slow") else v for k, v in batch.items()}
    nominal = queries(states, samples, generator)
    counted = states["present"][:, None, None, None].expand_as(nominal)
    found, command = _losses(network, states, z, nominal, counted)
    for _ in range(ticks):
        states, moving = stepped(states, command[:, :, :, 0], nominal)
        later, command = _losses(network, states, z, nominal, moving)
        found["loss"] = found["loss"] + later["loss"] / ticks
    return found


def queries(batch: dict[str, Tensor], samples: int, generator: torch.Generator) -> Tensor:
    """Nominal torques around the applied one (B.9), clipped to the torque range, (..., samples, n) [N·m]."""
    shape = (*batch["command"].shape[:-1], samples, batch["command"].shape[-1])
    spread = QUERIES * batch["command_noise"][:, None, None, None]
    limit = batch["limit"][:, None, None, None]
    around = batch["command"][..., None, :] + spread * torch.randn(shape, generator=generator)
    return torch.clip(around, -limit, limit)


def _losses(
    network: Tam, batch: dict[str, Tensor], z: Tensor, nominal: Tensor, counted: Tensor
) -> tuple[dict[str, Tensor], Tensor]:
    """The loss of the joints that count, its figures, and the corrected torques without their gradients."""
    label = {k: batch[k][:, :, :, None] for k in TEACHER}
    label |= {k: batch[k][:, None, None, None] for k in ("dead_zone", "torque_scale")}
    wanted = teacher(torch, label, nominal) - nominal
    present = batch["present"][:, None, None]
    found = network.adaptor(z[:, :, None], batch["window"], nominal, present)
    error, kept = found - wanted, counted.to(found.dtype)
    total = kept.sum().clip(min=1.0)
    figures = {
        "loss": (huber(error, HUBER) * kept).sum() / total,
        "error": ((error.detach() * kept).square().sum() / total).sqrt(),
        "size": ((wanted * kept).square().sum() / total).sqrt(),
        "share": (error.detach() * kept).abs().sum() / (wanted * kept).abs().sum(),
    }
    return figures, nominal + found.detach()
