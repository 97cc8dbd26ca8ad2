"""The paper's torque adaptor in PyTorch, for training only; `PaperAdaptor` is the same in NumPy."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from retorque.adapt.tam.paper.paper_scales import CORRECTION, TORQUE, VARIANCE
from retorque.adapt.tam.preset import Preset


class PaperAdaptorModule(nn.Module):
    """Δτ = A(q, q̇, τᵃ over the last L ticks, τ⁰, z): equation 2.

    Separate perceptrons embed the windows of position, velocity and torque; they are combined with the nominal torque,
    a summary over joints is added, and the latent conditions the hidden layers by adaptive layer normalisation.
    """

    def __init__(self, preset: Preset):
        super().__init__()
        e, h = preset.embed, preset.hidden
        self.position, self.velocity, self.torque = (
            nn.Sequential(nn.Linear(preset.window, e), nn.SiLU(), nn.Linear(e, e)) for _ in range(3)
        )
        self.combine = nn.Linear(3 * e + 1, h)
        self.summary = nn.Linear(h, h)
        self.modulate = nn.Linear(preset.latent, 2 * h * preset.depth)
        self.layers = nn.ModuleList(nn.Linear(h, h) for _ in range(preset.depth))
        self.head = nn.Linear(h, 1)
        for layer in (self.head, self.modulate):
            nn.init.zeros_(layer.bias)
            nn.init.normal_(layer.weight, std=0.01)

    def forward(self, z: Tensor, window: Tensor, nominal: Tensor, present: Tensor) -> Tensor:
        """Corrections (..., samples, n) [N·m].

        Args:
            z: latents (..., n, latent).
            window: position, velocity and torque over the last ticks (..., 3, n, L), newest first.
            nominal: nominal torques (..., samples, n) [N·m].
            present: which joints exist (..., n).
        """
        q, qd, torque = window.unbind(-3)
        embedded = torch.cat([self.position(q), self.velocity(qd), self.torque(torque / TORQUE)], -1)
        # Only the nominal torque differs between samples: the windows' part of the product is made once a state.
        weight = self.combine.weight
        shared = functional.linear(embedded, weight[:, :-1], self.combine.bias)
        x = shared[..., None, :, :] + nominal[..., None] / TORQUE * weight[:, -1]
        counted = present[..., None, :, None].to(x.dtype)
        mean = (x * counted).sum(-2, keepdim=True) / counted.sum(-2, keepdim=True)
        x = x + self.summary(functional.silu(mean))
        gain, shift = self.modulate(z)[..., None, :, :].chunk(2, -1)
        size = x.shape[-1]
        for index, layer in enumerate(self.layers):
            part = slice(index * size, (index + 1) * size)
            normed = functional.layer_norm(x, (size,), eps=VARIANCE)
            x = x + layer(functional.silu(normed * (1.0 + gain[..., part]) + shift[..., part]))
        return CORRECTION * self.head(x)[..., 0]
