"""The conditional 1-D U-net in PyTorch; its names are those of the NumPy one."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from retorque.tasks.scoop.diffusion_network import GROUPS, DiffusionShape, step_embedding


class ToldBlock(nn.Module):
    """Two convolutions over time; what is told scales and shifts the channels between them."""

    def __init__(self, inward: int, outward: int, told: int):
        super().__init__()
        self.first, self.second = nn.Conv1d(inward, outward, 5, padding=2), nn.Conv1d(outward, outward, 5, padding=2)
        self.norm1, self.norm2 = nn.GroupNorm(GROUPS, outward), nn.GroupNorm(GROUPS, outward)
        self.told, self.past = nn.Linear(told, 2 * outward), nn.Conv1d(inward, outward, 1)

    def forward(self, x: Tensor, told: Tensor) -> Tensor:
        y = nn.functional.mish(self.norm1(self.first(x)))
        scale, shift = self.told(told)[..., None].chunk(2, dim=1)
        y = nn.functional.mish(self.norm2(self.second(scale * y + shift)))
        return y + self.past(x)


class DiffusionUnet(nn.Module):
    """The noise in chunks of actions, given noise level and observation."""

    def __init__(self, shape: DiffusionShape, scales: dict[str, Tensor]):
        super().__init__()
        self.shape = shape
        for name, value in scales.items():
            self.register_buffer(name, value)
        e, w = shape.embedding, shape.width
        told = e + shape.seen
        self.step = nn.Sequential(nn.Linear(e, 4 * e), nn.Mish(), nn.Linear(4 * e, e))
        self.down, self.middle = ToldBlock(shape.actions, w, told), ToldBlock(w, 2 * w, told)
        self.shrink, self.grow = nn.Conv1d(w, w, 3, stride=2, padding=1), nn.Conv1d(2 * w, w, 3, padding=1)
        self.up, self.head = ToldBlock(2 * w, w, told), nn.Conv1d(w, shape.actions, 1)
        table = step_embedding(torch.arange(shape.levels).numpy(), e)
        self.register_buffer("embeddings", torch.as_tensor(table, dtype=torch.float32), persistent=False)

    embeddings: Tensor

    def forward(self, x: Tensor, level: Tensor, told: Tensor) -> Tensor:
        """Noise (trials, horizon, actions) of x at levels (trials,) for scaled observations (trials, seen)."""
        told = nn.functional.mish(torch.cat([self.step(self.embeddings[level]), told], dim=-1))
        outer = self.down(x.transpose(1, 2), told)
        inner = self.middle(self.shrink(outer), told)
        inner = self.grow(inner.repeat_interleave(2, dim=-1))
        outer = self.up(torch.cat([inner, outer], dim=1), told)
        return torch.as_tensor(self.head(outer).transpose(1, 2))
