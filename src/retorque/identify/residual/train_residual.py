"""Training a residual on top of any identified model, and saying on data held back whether it pays."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch

from retorque.identify.methods.estimate import Estimate
from retorque.identify.residual.residual_features import COUNT, features
from retorque.logs.motion import Motion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

Tensor = torch.Tensor


@dataclass(frozen=True, kw_only=True)
class TorqueResidualTraining:
    """How a residual is trained."""

    kind: Literal["lstm", "mlp"] = "lstm"
    """With memory, or without."""
    hidden: int = 12
    """Units (or memory cells) of each joint's network."""
    epochs: int = 400
    """Most passes over the training data."""
    patience: int = 60
    """Passes without a better validation error before stopping."""
    steps: int = 100
    """Samples of a training sequence."""
    batch: int = 8
    """Sequences a step."""
    rate: float = 0.005
    """Adam's learning rate."""
    decay: float = 1e-3
    """Weight decay."""
    blocks: int = 20
    """Stretches into which a log is cut; three in five are learnt from, one in five stops the training and one in five
    is held back."""
    worth: float = 0.02
    """Part by which a joint's error must fall on data held back before its residual is used."""
    pays: float = 0.1
    """Part by which the joints' mean error must fall on data held back, surely, before a residual is said to pay."""
    seed: int = 0
    """Of the first weights and of the order of sequences."""


@dataclass(frozen=True, kw_only=True)
class TrainedResidual:
    """A residual, and what it is worth."""

    arrays: dict[str, Array]
    """By name, for `residual_model.save_residual`."""
    settings: TorqueResidualTraining
    before: Array
    """(n,) torque error on data held back without it [N·m]."""
    after: Array
    """(n,) the same with it [N·m]."""
    pays: bool

    def as_json(self) -> dict[str, Any]:
        """As a result file holds it."""
        return {
            "kind": self.settings.kind,
            "pays": self.pays,
            "held_back_rmse_without": self.before.tolist(),
            "held_back_rmse_with": self.after.tolist(),
            "used": [bool(value) for value in self.arrays["gain"] > 0.0],
            "settings": asdict(self.settings),
        }


class Networks(torch.nn.Module):
    """One small network a joint; all of them at once."""

    def __init__(self, n: int, settings: TorqueResidualTraining):
        super().__init__()
        self.kind, self.hidden, h = settings.kind, settings.hidden, settings.hidden

        def weight(*shape: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.randn(n, *shape) / np.sqrt(shape[0]))

        def bias(size: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.zeros(n, size))

        names = (
            {"first": (COUNT, h), "second": (h, h)}
            if self.kind == "mlp"
            else {"inward": (COUNT, h), "gates": (2 * h, 4 * h)}
        )
        self.layers = torch.nn.ParameterDict()
        for name, shape in names.items():
            self.layers[f"{name}:weight"], self.layers[f"{name}:bias"] = weight(*shape), bias(shape[1])
        self.layers["last:weight"] = torch.nn.Parameter(torch.zeros(n, h))
        self.layers["last:bias"] = torch.nn.Parameter(torch.zeros(n))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, time, n, COUNT) to (batch, time, n); memories start empty."""
        w = self.layers
        if self.kind == "mlp":
            for name in ("first", "second"):
                x = torch.tanh(torch.einsum("btjf,jfh->btjh", x, w[f"{name}:weight"]) + w[f"{name}:bias"])
        else:
            x = self._recall(torch.tanh(torch.einsum("btjf,jfh->btjh", x, w["inward:weight"]) + w["inward:bias"]))
        return torch.einsum("btjh,jh->btj", x, w["last:weight"]) + w["last:bias"]

    def _recall(self, x: Tensor) -> Tensor:
        w, h = self.layers, self.hidden
        hidden = cell = torch.zeros(x.shape[0], x.shape[2], h)
        out = []
        for t in range(x.shape[1]):
            both = torch.cat([x[:, t], hidden], dim=-1)
            gates = torch.einsum("bji,jig->bjg", both, w["gates:weight"]) + w["gates:bias"]
            enter, keep, leave = torch.sigmoid(gates[..., : 3 * h]).chunk(3, dim=-1)
            cell = keep * cell + enter * torch.tanh(gates[..., 3 * h :])
            hidden = leave * torch.tanh(cell)
            out.append(hidden)
        return torch.stack(out, dim=1)

    def arrays(self) -> dict[str, Array]:
        """The weights by the names of `residual_model`."""
        return {name.replace(":", "."): value.detach().numpy().copy() for name, value in self.layers.items()}


def train_residual(estimate: Estimate, motion: Motion, settings: TorqueResidualTraining) -> TrainedResidual:
    """Learn what an identified model leaves over.

    Args:
        estimate: the model, presliding friction included.
        motion: the log it was learnt from.
        settings: how.
    """
    if len(motion) < 2 * settings.blocks * 10:
        raise RetorqueError(f"{len(motion)} samples are too few for a residual; record a longer motion")
    torch.manual_seed(settings.seed)
    model = estimate.torque(motion)
    rest = motion.torque - model
    fold = (np.arange(len(motion)) * settings.blocks // len(motion)) % 5
    learnt, stop, held = fold < 3, fold == 3, fold == 4
    load = np.maximum(model.std(axis=0), 1e-6)
    seen = features(motion.q, motion.qd, motion.qdd, model / load)
    mean, deviation = seen[learnt].mean(axis=0), seen[learnt].std(axis=0) + 1e-3
    scale = np.maximum(rest[learnt].std(axis=0), 1e-9)
    x = torch.tensor((seen - mean) / deviation, dtype=torch.float32)
    y = torch.tensor(rest / scale, dtype=torch.float32)
    networks = Networks(motion.n, settings)
    _fit(networks, x, y, learnt, stop, settings)
    with torch.no_grad():
        said = networks(x[None])[0].double().numpy() * scale
    gain = _worth(rest, said, stop, held, settings.worth)
    before = np.sqrt(np.mean(np.square(rest[held]), axis=0))
    after = np.sqrt(np.mean(np.square(rest[held] - gain * said[held]), axis=0))
    arrays = networks.arrays() | {"mean": mean, "deviation": deviation, "load": load, "scale": scale, "gain": gain}
    arrays["period"] = np.array(float(np.median(np.diff(motion.time))))
    pays = _surely(rest, gain * said, held) <= 1.0 - settings.pays
    return TrainedResidual(arrays=arrays, settings=settings, before=before, after=after, pays=pays)


def _surely(rest: Array, said: Array, held: Array) -> float:
    """Mean ratio of the errors with and without the residual on data held back, one standard error above its estimate.

    Stretches that are held back lie between those that were learnt from and say little more than these, so that the
    spread between them counts as well.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[0], held.astype(int), [0]])))
    ratios = [
        np.mean(
            np.linalg.norm(rest[first:last] - said[first:last], axis=0)
            / np.maximum(np.linalg.norm(rest[first:last], axis=0), 1e-12)
        )
        for first, last in zip(edges[::2], edges[1::2], strict=True)
    ]
    error = float(np.std(ratios, ddof=1)) / np.sqrt(len(ratios)) if len(ratios) > 1 else 0.0
    return float(np.mean(ratios)) + error


def _worth(rest: Array, said: Array, stop: Array, held: Array, least: float) -> Array:
    """(n,) how much of each residual to use: what both parts held back agree on, and nothing where it does not pay."""
    gain = np.zeros(rest.shape[1])
    for j in range(rest.shape[1]):
        parts = [
            float(rest[part, j] @ said[part, j]) / max(float(said[part, j] @ said[part, j]), 1e-12)
            for part in (stop, held)
        ]
        used = float(np.clip(0.9 * min(parts), 0.0, 1.0))
        errors = [
            np.linalg.norm(rest[part, j] - used * said[part, j]) / np.linalg.norm(rest[part, j])
            for part in (stop, held)
        ]
        gain[j] = used if max(errors) < 1.0 - least else 0.0
    return gain


def _sequences(x: Tensor, y: Tensor, chosen: Array, steps: int) -> tuple[Tensor, Tensor]:
    """Sequences of consecutive chosen samples, (count, steps, n, .) and (count, steps, n)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(int), [0]])))
    starts = [
        s
        for first, last in zip(edges[::2], edges[1::2], strict=True)
        for s in range(first, last - steps + 1, steps // 2)
    ]
    if not starts:
        return x[chosen][None], y[chosen][None]
    return torch.stack([x[s : s + steps] for s in starts]), torch.stack([y[s : s + steps] for s in starts])


def _fit(
    networks: Networks, x: Tensor, y: Tensor, learnt: Array, stop: Array, settings: TorqueResidualTraining
) -> None:
    """Adam on sequences, stopped by the part that is not learnt from; the best weights are kept."""
    steps = min(settings.steps, max(10, len(x) // settings.blocks))
    inputs, targets = _sequences(x, y, learnt, steps)
    checks, wanted = _sequences(x, y, stop, steps)
    optimiser = torch.optim.AdamW(networks.parameters(), lr=settings.rate, weight_decay=settings.decay)
    best, kept, waited = np.inf, {k: v.clone() for k, v in networks.state_dict().items()}, 0
    order = torch.Generator().manual_seed(settings.seed)
    for _ in range(settings.epochs):
        for batch in torch.randperm(len(inputs), generator=order).split(settings.batch):
            optimiser.zero_grad()
            loss = torch.nn.functional.huber_loss(networks(inputs[batch]), targets[batch], delta=3.0)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(networks.parameters(), 1.0)
            optimiser.step()
        with torch.no_grad():
            error = float(torch.mean(torch.square(networks(checks) - wanted)))
        if error < best - 1e-5:
            best, waited = error, 0
            kept = {k: v.clone() for k, v in networks.state_dict().items()}
        else:
            waited += 1
            if waited > settings.patience:
                break
    networks.load_state_dict(kept)
