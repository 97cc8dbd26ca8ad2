"""The action-chunking transformer in PyTorch, with the style encoder that only training needs."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from retorque.tasks.flip.act_network import ActShape
from retorque.tasks.flip.picture_encoder import CHANNELS, KERNEL, PADDING, STRIDE


class ActAttention(nn.Module):
    """Multi-head attention with its four maps by name."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, memory: Tensor) -> Tensor:
        q, k, v = (
            part(source).unflatten(-1, (self.heads, -1)).transpose(-2, -3)
            for part, source in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        mixed = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(-2, -3).flatten(-2))


class ActEncoder(nn.Module):
    """One layer: attention to itself, then a perceptron."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.attention = ActAttention(width, heads)
        self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x))
        return self.norm2(x + self.second(torch.relu(self.first(x))))


class ActDecoder(ActEncoder):
    """The same, with attention to what the encoder says in between."""

    def __init__(self, width: int, heads: int):
        super().__init__(width, heads)
        self.cross, self.norm3 = ActAttention(width, heads), nn.LayerNorm(width)

    def decode(self, x: Tensor, memory: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, x))
        x = self.norm2(x + self.cross(x, memory))
        return self.norm3(x + self.second(torch.relu(self.first(x))))


class Act(nn.Module):
    """Chunks of actions from joints and cube or pictures, given a latent that the style encoder finds in the
    demonstration. Where it sees pictures, a head says where the cube is: what is seen is learnt sooner so (ours)."""

    joint_mean: Tensor
    joint_scale: Tensor
    cube_mean: Tensor
    cube_scale: Tensor

    def __init__(self, shape: ActShape, scales: dict[str, Tensor]):
        super().__init__()
        self.shape = shape
        w = shape.width
        for name, value in scales.items():
            self.register_buffer(name, value)
        self.latent = nn.Linear(shape.latent, w)
        self.joints = nn.Linear(shape.joints, w)
        if shape.sees:
            sizes = (3, *CHANNELS, w)
            self.eye = nn.ModuleList(nn.Conv2d(a, b, KERNEL, STRIDE, PADDING) for a, b in pairwise(sizes))
            self.pose = nn.Linear(w, shape.things)
        else:
            self.cube = nn.Linear(shape.things, w)
        self.places = nn.Parameter(0.02 * torch.randn(shape.tokens, w))
        self.queries = nn.Parameter(0.02 * torch.randn(shape.chunk, w))
        self.encoder = nn.ModuleList(ActEncoder(w, shape.heads) for _ in range(shape.layers))
        self.decoder = ActDecoder(w, shape.heads)
        self.head = nn.Linear(w, shape.actions)
        self.style_actions, self.style_joints = nn.Linear(shape.actions, w), nn.Linear(shape.joints, w)
        self.style_places = nn.Parameter(0.02 * torch.randn(shape.chunk + 2, w))
        self.style = ActEncoder(w, shape.heads)
        self.style_out = nn.Linear(w, 2 * shape.latent)

    def normal(self, joints: Tensor, cube: Tensor) -> tuple[Tensor, Tensor]:
        """Joints and the cube's pose in units of their spread."""
        return (joints - self.joint_mean) / self.joint_scale, (cube - self.cube_mean) / self.cube_scale

    def styled(self, q: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the latent, from a demonstration's chunk."""
        first = torch.zeros(len(q), 1, self.shape.width)
        x = torch.cat([first, self.style_joints(q)[:, None], self.style_actions(actions)], dim=1) + self.style_places
        mean, log_variance = self.style_out(self.style(x)[:, 0]).chunk(2, dim=-1)
        return mean, log_variance

    def forward(self, q: Tensor, seen: Tensor, latent: Tensor) -> Tensor:
        """Chunks (trials, chunk, actions) in units of the actions' spread.

        Args:
            q: joints in units of their spread.
            seen: the cube's pose in units of its spread, or pictures (trials, 3, height, width) within ±1.
            latent: the style.
        """
        return self.both(q, seen, latent)[0]

    def both(self, q: Tensor, seen: Tensor, latent: Tensor) -> tuple[Tensor, Tensor | None]:
        """Chunks, and where the cube is thought to be in units of its spread, by a network that sees pictures."""
        if self.shape.sees:
            for number, layer in enumerate(self.eye):
                seen = layer(seen if number == 0 else torch.relu(seen))
            tokens = seen.flatten(2).transpose(1, 2)
        else:
            tokens = self.cube(seen)[:, None]
        memory = torch.cat([torch.stack([self.latent(latent), self.joints(q)], dim=1), tokens], dim=1) + self.places
        for layer in self.encoder:
            memory = layer(memory)
        x = self.decoder.decode(self.queries.expand(len(q), -1, -1), memory)
        return self.head(x), self.pose(memory[:, 1]) if self.shape.sees else None
