"""The learned module in PyTorch, for training only; `residual_network.ResidualNetwork` is the same in NumPy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from retorque.adapt.tam_recursive.residual_network import OFFSET
from retorque.adapt.tam_recursive.residuals import FEATURES, TAPS


class Network(nn.Module):
    """See `residual_network.ResidualNetwork`."""

    def __init__(self, width: int = 64, depth: int = 2):
        super().__init__()
        self.embed = nn.Linear(FEATURES, width)
        self.combine = nn.Linear(width, width, bias=False)
        self.summary = nn.Linear(2 * width, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 2 * TAPS + 1)
        nn.init.zeros_(self.head.bias)
        nn.init.normal_(self.head.weight, std=1e-3)
        with torch.no_grad():  # begin as the estimator alone: what persists is the robot's own
            self.head.bias[2 * TAPS - 1] = 1.0

    def forward(self, features: Tensor, taps: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """features (batch, n, FEATURES), taps (batch, n, TAPS), present (batch, n): which joints exist."""
        x = torch.relu(self.embed(features)) * present[..., None]  # never below zero: missing joints leave the maximum
        mean = x.sum(-2) / present.sum(-1, keepdim=True)
        x = self.combine(x) + self.summary(torch.cat([mean, x.amax(-2)], -1))[:, None]
        for layer in self.layers:
            x = x + layer(torch.relu(x))
        out = self.head(torch.relu(x))
        external = -(out[..., :TAPS] * taps).sum(-1)
        own = (out[..., TAPS : 2 * TAPS] * taps).sum(-1)
        return external, own + OFFSET * torch.tanh(out[..., 2 * TAPS])
