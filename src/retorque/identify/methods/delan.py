"""DeLaN: a network for the mass matrix and the potential, bound together by the Euler-Lagrange equation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from retorque.logs.motion import Motion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

Tensor = torch.Tensor


class DeLaN(torch.nn.Module):
    """Torque H(q) qdd + Ḣ qd - ½ d(qdᵀ H qd)/dq + dV/dq with H = L Lᵀ, L and V from one network of the position.

    The derivatives are carried through the two layers by hand: the rate of L along the motion forwards, the gradient of
    the Lagrangian backwards. Training then needs only one ordinary backward pass.

    Args:
        n: joints.
        mean: (n,) of the positions [rad].
        deviation: (n,) of the positions [rad].
        torque_range: (n,) unit of the torques [N·m].
        width: neurons of each of the two layers; 200 make 47629 weights for seven joints.
    """

    mean: Tensor
    deviation: Tensor
    torque_range: Tensor

    def __init__(self, n: int, mean: Array, deviation: Array, torque_range: Array, width: int = 200):
        super().__init__()
        self.n = n
        self.first = torch.nn.Linear(n, width)
        self.second = torch.nn.Linear(width, width)
        self.last = torch.nn.Linear(width, n * (n + 1) // 2 + 1)
        for name, value in (("mean", mean), ("deviation", deviation), ("torque_range", torque_range)):
            self.register_buffer(name, torch.tensor(np.asarray(value), dtype=torch.float32))
        self._lower = torch.tril_indices(n, n, -1)

    def forward(self, q: Tensor, qd: Tensor, qdd: Tensor) -> Tensor:
        """Torque (batch, n) [N·m]."""
        before1 = self.first((q - self.mean) / self.deviation)
        slope1, hidden1 = torch.sigmoid(before1), torch.nn.functional.softplus(before1)
        before2 = self.second(hidden1)
        slope2, hidden2 = torch.sigmoid(before2), torch.nn.functional.softplus(before2)
        out = self.last(hidden2)
        moving = slope1 * ((qd / self.deviation) @ self.first.weight.T)
        rate = (slope2 * (moving @ self.second.weight.T)) @ self.last.weight.T
        diagonal, below, _ = out.split([self.n, out.shape[-1] - self.n - 1, 1], dim=-1)
        gain = torch.sigmoid(diagonal)
        root = self._triangle(torch.nn.functional.softplus(diagonal) + 1e-3, below)
        root_rate = self._triangle(gain * rate[:, : self.n], rate[:, self.n : -1])
        momentum = _apply(root.mT, qd)  # Lᵀ qd
        inertial = _apply(root, _apply(root.mT, qdd) + _apply(root_rate.mT, qd)) + _apply(root_rate, momentum)
        # d(½ |Lᵀ qd|²)/dL_ij = qd_i (Lᵀ qd)_j; the potential's gradient has the other sign
        outer = qd[:, :, None] * momentum[:, None, :]
        pull = torch.cat(
            [
                outer.diagonal(dim1=-2, dim2=-1) * gain,
                outer[:, self._lower[0], self._lower[1]],
                -torch.ones_like(out[:, -1:]),
            ],
            dim=-1,
        )
        back = (slope1 * ((slope2 * (pull @ self.last.weight)) @ self.second.weight)) @ self.first.weight
        return self.torque_range * (inertial - back / self.deviation)

    def _triangle(self, diagonal: Tensor, below: Tensor) -> Tensor:
        out = torch.diag_embed(diagonal)
        out[:, self._lower[0], self._lower[1]] = below
        return out


def _apply(matrix: Tensor, vector: Tensor) -> Tensor:
    return (matrix @ vector[..., None])[..., 0]


@dataclass(frozen=True, kw_only=True)
class DeLaNSettings:
    """How a DeLaN is trained: the paper's."""

    width: int = 200
    """Neurons of each of the two layers."""
    batch: int = 1000
    """Samples a step."""
    rate: float = 0.001
    """Adam's learning rate."""
    epochs: int = 200
    """Most passes over the data."""
    patience: int = 10
    """Passes without a better loss before stopping."""
    seed: int = 0
    """Of the first weights and the order of the samples."""


def fit_delan(
    motion: Motion,
    torque_range: Array,
    settings: DeLaNSettings | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> DeLaN:
    """Train a DeLaN on a motion until its loss no longer falls.

    Args:
        motion: samples to learn.
        torque_range: (n,) unit of the loss [N·m].
        settings: how.
        progress: told the number of finished epochs and the last loss.
    """
    settings = settings or DeLaNSettings()
    if len(motion) < 2:
        raise RetorqueError("a DeLaN needs more than one sample")
    generator = torch.Generator().manual_seed(settings.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = DeLaN(motion.n, motion.q.mean(axis=0), motion.q.std(axis=0) + 1e-9, torque_range, settings.width)
    data = [torch.tensor(getattr(motion, name), dtype=torch.float32) for name in ("q", "qd", "qdd", "torque")]
    optimiser = torch.optim.Adam(model.parameters(), lr=settings.rate)
    best, since, kept = np.inf, 0, model.state_dict()
    for epoch in range(settings.epochs):
        total = 0.0
        for rows in torch.randperm(len(motion), generator=generator).split(settings.batch):
            q, qd, qdd, torque = (x[rows] for x in data)
            loss = torch.mean(torch.square((model(q, qd, qdd) - torque) / model.torque_range))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += float(loss.detach()) * len(rows)
        total /= len(motion)
        if not np.isfinite(total):
            raise RetorqueError(f"DeLaN diverged in epoch {epoch}; lower the learning rate ({settings.rate})")
        since = 0 if total < best else since + 1
        if total < best:
            best, kept = total, {key: value.clone() for key, value in model.state_dict().items()}
        if progress:
            progress(epoch + 1, total)
        if since >= settings.patience:
            break
    model.load_state_dict(kept)
    return model


@torch.no_grad()
def predict_delan(model: DeLaN, motion: Motion) -> Array:
    """Torque (samples, n) [N·m] of a motion."""
    parts = [
        model(*(torch.tensor(x, dtype=torch.float32) for x in (piece.q, piece.qd, piece.qdd)))
        for piece in motion.chunks(8192)
    ]
    return torch.cat(parts).numpy().astype(float)
