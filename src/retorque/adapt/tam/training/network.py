"""The history encoder and the torque adaptor, in PyTorch, for training only."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from retorque.adapt.tam.context import STATIC
from retorque.adapt.tam.features import BASIS, COEFFICIENTS, POSITION, SHIFT, hidden_features, patch_size
from retorque.adapt.tam.physical import PAYLOAD, PER_JOINT
from retorque.adapt.tam.preset import MAX_JOINTS, Preset
from retorque.adapt.tam.training.paper_module import PaperAdaptorModule

JUMP = 0.025
"""Torque over which a dead zone's jump is smoothed [N·m]."""
EPSILON = 1e-6
"""Added to the mean square under a root."""


def normed(x: Tensor) -> Tensor:
    """Rows scaled to a mean square of one."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)


def rotate(x: Tensor, position: Tensor) -> Tensor:
    """Rotary positions: x (..., tokens, size), position (tokens,)."""
    half = x.shape[-1] // 2
    angle = position[:, None] * torch.exp(-math.log(1e3) * torch.arange(half, device=x.device) / half)
    sin, cos = angle.sin(), angle.cos()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class Attention(nn.Module):
    """Multi-head attention over the last but one axis."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm = nn.Parameter(torch.ones(width))
        self.read = nn.Linear(width, 3 * width, bias=False)
        self.write = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, position: Tensor | None, mask: Tensor | None, causal: bool) -> Tensor:
        lead, (tokens, width) = x.shape[:-2], x.shape[-2:]
        parts = self.read(normed(x) * self.norm).reshape(-1, tokens, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if position is not None:
            query, key = rotate(query, position), rotate(key, position)
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, is_causal=causal)
        return self.write(found.transpose(1, 2).reshape(*lead, tokens, width))


class Layer(nn.Module):
    """Attention over time and over joints, or over both at once, then a perceptron."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.factorised = preset.factorised
        self.time = Attention(preset.width, preset.heads)
        if preset.factorised:
            self.joint = Attention(preset.width, preset.heads)
        self.norm = nn.Parameter(torch.ones(preset.width))
        self.up = nn.Linear(preset.width, preset.expand * preset.width)
        self.down = nn.Linear(preset.expand * preset.width, preset.width)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """x (trials, columns, n, width); present (trials, n) marks the joints that exist."""
        trials, columns, n, width = x.shape
        if self.factorised:
            position = torch.arange(columns, device=x.device, dtype=x.dtype)
            over_time = self.time(x.transpose(1, 2), position, None, True)
            x = x + over_time.transpose(1, 2)
            mask = present[:, None, None, None, :].expand(-1, columns, -1, -1, -1).reshape(-1, 1, 1, n)
            x = x + self.joint(x, None, mask, False)
        else:
            column = torch.arange(columns, device=x.device).repeat_interleave(n)
            earlier = column[:, None] >= column[None, :]
            mask = earlier[None, None] & present.repeat(1, columns)[:, None, None, :]
            flat = self.time(x.reshape(trials, columns * n, width), column.to(x.dtype), mask, False)
            x = x + flat.reshape(x.shape)
        return x + self.down(functional.silu(self.up(normed(x) * self.norm)))


class Encoder(nn.Module):
    """Patches of history to one latent a joint and column."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.preset = preset
        self.patch = nn.Linear(patch_size(preset), preset.width)
        self.token = nn.Linear(preset.width, preset.width)
        self.joint_id = nn.Embedding(MAX_JOINTS, preset.width)
        if not preset.as_published:
            self.static = nn.Linear(STATIC, preset.width)
        self.layers = nn.ModuleList(Layer(preset) for _ in range(preset.layers))
        self.norm = nn.Parameter(torch.ones(preset.width))
        self.latent = nn.Linear(preset.width, preset.latent)

    def forward(self, fast: Tensor, slow: Tensor, static: Tensor, present: Tensor) -> Tensor:
        """fast (trials, rows, n, F), slow (trials, rows', n, G), static (trials, n, S) to (trials, columns, n, z).

        Column 0 has seen nothing; column k has seen the rows before `stride` * k. Columns before the preset's first one
        are left out.
        """
        first = self.preset.first_column
        x = self.token(functional.silu(self.patch(self.patches(fast, slow)[:, first:])))
        known = self.joint_id.weight[: x.shape[2]]
        x = x + (known if self.preset.as_published else (known + self.static(static))[:, None])
        for layer in self.layers:
            x = layer(x, present)
        return self.latent(normed(x) * self.norm)

    def patches(self, fast: Tensor, slow: Tensor) -> Tensor:
        """The patch of every column and joint, (trials, columns, n, numbers)."""
        p = self.preset
        seen_fast, seen_slow = (torch.from_numpy(mask) for mask in hidden_features(p))
        found = [_windows(fast * seen_fast, p.patch_rows, p.stride_rows, p.columns)]
        if p.slow:
            found.append(_windows(slow * seen_slow, p.patch_rows // p.slow, p.stride_rows // p.slow, p.columns))
        return torch.cat(found, -1)


def _windows(rows: Tensor, length: int, step: int, columns: int) -> Tensor:
    """Overlapping windows (trials, columns, n, length * F) of rows (trials, rows, n, F) after `length` empty rows."""
    columns = min(columns, rows.shape[1] // step + 1)
    padded = functional.pad(rows, (0, 0, 0, 0, length, 0))
    cut = padded.unfold(1, length, step)[:, :columns]  # (trials, columns, n, F, length)
    return cut.transpose(-1, -2).flatten(-2)


class Adaptor(nn.Module):
    """The correction of a nominal torque out of a short window and the latent.

    The correction is what the middle of the armature's range asks for, plus a perceptron's output, plus a combination
    of a few physical features whose weights are linear in the latent, plus the jump across a dead zone whose two widths
    come from the latent.
    """

    def __init__(self, preset: Preset):
        super().__init__()
        e, h = preset.embed, preset.hidden
        self.depth = preset.depth
        self.position = nn.Linear(POSITION - 8 + preset.window, e)
        self.velocity = nn.Linear(preset.window + 5, e)
        self.torque = nn.Linear(preset.window, e)
        self.combine = nn.Linear(3 * e, h)
        self.summary = nn.Linear(h, h)
        self.modulate = nn.Linear(preset.latent, 2 * h * preset.depth)
        self.layers = nn.ModuleList(nn.Linear(h, h) for _ in range(preset.depth))
        self.head = nn.Linear(h, 1)
        self.basis = nn.Linear(preset.latent, BASIS)
        self.dead_zone = nn.Linear(preset.latent, 2)
        for layer in (self.head, self.basis, self.modulate):
            nn.init.zeros_(layer.bias)
            nn.init.normal_(layer.weight, std=0.01)
        nn.init.constant_(self.dead_zone.bias, -1.0)

    def forward(self, z: Tensor, features: tuple[Tensor, ...], scaled: Tensor, unit: Tensor, present: Tensor) -> Tensor:
        """Correction (..., n) in units.

        Args:
            z: latents (..., n, latent).
            features: the four groups of `adaptor_features`, each (..., n, numbers).
            scaled: nominal torque (..., n) [units].
            unit: (..., n) [N·m].
            present: which joints exist (..., n).
        """
        position, velocity, window, basis = features
        embedded = [self.position(position), self.velocity(velocity), self.torque(window)]
        x = self.combine(functional.relu(torch.cat(embedded, -1)))
        weight = present[..., None].to(x.dtype)
        mean = (x * weight).sum(-2, keepdim=True) / weight.sum(-2, keepdim=True)
        x = x + self.summary(functional.relu(mean))
        gain, shift = self.modulate(z).chunk(2, -1)
        size = x.shape[-1]
        for index, layer in enumerate(self.layers):
            part = slice(index * size, (index + 1) * size)
            x = x + layer(functional.relu(normed(x) * (1.0 + gain[..., part]) + shift[..., part]))
        middle, half = torch.from_numpy(COEFFICIENTS).unbind(-1)
        coefficients = middle + half * torch.tanh((self.basis(z) - middle) / half)
        smooth = basis[..., SHIFT] + self.head(x)[..., 0] + (coefficients * basis).sum(-1)
        widths = functional.softplus(self.dead_zone(z))
        side = torch.sigmoid((scaled + smooth) * unit / JUMP)
        return smooth + widths[..., 0] * side - widths[..., 1] * (1.0 - side)


class PhysicalHead(nn.Module):
    """The parameter object out of latents: numbers of `PhysicalRange` for each joint and for the payload."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.joint = nn.Linear(preset.latent, PER_JOINT)
        self.payload = nn.Linear(preset.latent, PAYLOAD)

    def forward(self, z: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """z (..., n, latent), present (..., n) -> (..., n, 19) and (..., 4)."""
        weight = present[..., None].to(z.dtype)
        return self.joint(z), self.payload((z * weight).sum(-2) / weight.sum(-2))


class Privileged(nn.Module):
    """Latents out of the true parameters: the teacher of `privileged`, for training only."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.up = nn.Linear(PER_JOINT + PAYLOAD, 2 * preset.width)
        self.down = nn.Linear(2 * preset.width, preset.latent)

    def forward(self, joint: Tensor, payload: Tensor) -> Tensor:
        """(trials, n, 19) and (trials, 4) -> (trials, n, latent)."""
        wide = payload[:, None].expand(-1, joint.shape[1], -1)
        return self.down(functional.silu(self.up(torch.cat([joint, wide], -1))))


class Tam(nn.Module):
    """Encoder and adaptor together, with what a variant adds."""

    def __init__(self, preset: Preset):
        super().__init__()
        self.preset = preset
        self.encoder = Encoder(preset)
        self.adaptor = PaperAdaptorModule(preset) if preset.as_published else Adaptor(preset)
        if preset.variant == "physpred":
            self.physical = PhysicalHead(preset)
        if preset.variant == "privileged":
            self.privileged = Privileged(preset)

    def latents(self, batch: dict[str, Tensor]) -> Tensor:
        """Latents of every column of a batch's histories, (trials, columns, n, latent)."""
        z = self.encoder(batch["fast"], batch["slow"], batch["static"], batch["present"])
        return torch.zeros_like(z) if self.preset.variant == "short-window" else z
