"""Training of inverse-dynamics models on recordings: sequences of 100, early stopping, resumable after any epoch."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from retorque.errors import RetorqueError
from retorque.files import write_whole
from retorque.identify.hybrid import InverseDynamics, Scaling
from retorque.identify.motion import Motion
from retorque.identify.recordings import Split

Array = np.ndarray
Tensor = torch.Tensor
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """How a model is trained."""

    epochs: int = 30
    """Most passes over the training data."""
    patience: int = 10
    """Passes without a better validation loss before stopping."""
    steps: int = 100
    """Length of a training sequence [ticks]."""
    batch: int = 128
    """Sequences a step."""
    rate: float = 0.004
    """Adam's first learning rate; it falls to zero along a cosine."""
    validation_steps: int = 1000
    """Length of the sequences the validation loss is taken on [ticks]."""
    blur: float = 1.0
    """Shift of the positions that the network sees in training [standard deviations]."""
    decay: float = 0.01
    """Weight decay of the network."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    seed: int = 0
    """Of the first weights and the order of the sequences."""
    threads: int = 2
    """PyTorch's threads."""


@dataclass
class History:
    """What happened, epoch by epoch."""

    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: int = -1
    """The epoch whose weights are kept."""
    stopped: bool = False
    """Whether training is over."""


def scaling_of(split: Split) -> Scaling:
    """Mean and spread of the training inputs, and the range of the training torques."""
    motion = np.concatenate([_inputs(m)[::50] for m in split.train]).astype(float)
    low, high = split.torque_range()
    return Scaling(motion.mean(axis=0), motion.std(axis=0) + 1e-9, np.asarray(high - low, dtype=float))


def sequences(motions: list[Motion], steps: int) -> tuple[Tensor, Tensor]:
    """Inputs (sequences, steps, 3n) and torques (sequences, steps, n) of consecutive stretches of the motions."""
    inputs, torques = [], []
    for motion in motions:
        count = len(motion) // steps
        if count == 0:
            continue
        rows = slice(0, count * steps)
        inputs.append(_inputs(motion[rows]).reshape(count, steps, -1))
        torques.append(motion.torque[rows].reshape(count, steps, -1))
    if not inputs:
        raise RetorqueError(f"every recording is shorter than a sequence of {steps} ticks; use a larger scale")
    return (
        torch.from_numpy(np.concatenate(inputs).astype(np.float32)),
        torch.from_numpy(np.concatenate(torques).astype(np.float32)),
    )


def nmse(model: InverseDynamics, motions: list[Motion], part: str = "all") -> float:
    """Normalised mean squared torque error over whole motions, each predicted in one sequence.

    Args:
        model: the model.
        motions: recordings.
        part: "all", or "stateless" for the rigid body with friction, or "body" for the rigid body alone.
    """
    total, count = 0.0, 0
    for motion in motions:
        inputs = torch.from_numpy(_inputs(motion).astype(np.float32))[None]
        error = predict(model, inputs, part) - torch.from_numpy(motion.torque.astype(np.float32))
        total += float(torch.sum(torch.square(error / model.torque_range).double()))
        count += error.numel()
    return total / count


@torch.no_grad()
def predict(model: InverseDynamics, motion: Tensor, part: str = "all") -> Tensor:
    """Torque of one part of a model, or of all of it, for (batch, time, 3n)."""
    if part == "all":
        return model(motion)
    if part == "stateless":
        return model.stateless(motion)
    if model.rigid is None:
        raise RetorqueError("this model has no rigid body to read")
    return model.rigid(*motion.split(model.robot.n, dim=-1))[0]


def train(
    model: InverseDynamics,
    split: Split,
    settings: TrainSettings,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> History:
    """Fit what is not frozen, keep the weights of the best validation loss.

    Args:
        model: trained in place.
        split: recordings to train on and to stop by.
        settings: how.
        checkpoint: a file written after every epoch; training goes on from it where it exists and belongs to these
            settings.
        progress: told the number of finished epochs and the last validation loss.
    """
    torch.set_num_threads(settings.threads)
    data = _prepared(model, sequences(split.train, settings.steps))
    check = _prepared(model, sequences(split.validation, _validation_steps(split, settings)))
    optimiser = _optimiser(model, settings)
    history = History()
    best = {key: value.clone() for key, value in model.state_dict().items()}
    if checkpoint is not None and checkpoint.exists():
        history, best = _resume(checkpoint, model, optimiser, settings)
    for epoch in range(len(history.train), settings.epochs):
        if history.stopped:
            break
        history.train.append(_epoch(model, data, optimiser, settings, epoch))
        loss = _loss(model, *check)
        history.validation.append(loss)
        if not np.isfinite(loss):
            raise RetorqueError(f"training diverged in epoch {epoch}; lower the learning rate ({settings.rate})")
        if history.best < 0 or loss < history.validation[history.best]:
            history.best = epoch
            best = {key: value.clone() for key, value in model.state_dict().items()}
        history.stopped = epoch - history.best >= settings.patience
        if checkpoint is not None:
            _save(checkpoint, model, best, optimiser, history, settings)
        if progress:
            progress(epoch + 1, loss)
        log.info("epoch %d: train %.3g, validation %.3g", epoch, history.train[-1], loss)
    model.load_state_dict(best)
    history.stopped = True
    return history


def _inputs(motion: Motion) -> Array:
    return np.concatenate([motion.q, motion.qd, motion.qdd], axis=-1)


def _validation_steps(split: Split, settings: TrainSettings) -> int:
    return min(settings.validation_steps, *(len(m) for m in split.validation))


def _optimiser(model: InverseDynamics, settings: TrainSettings) -> torch.optim.Optimizer:
    """Adam; only the network's weights decay, since a link's parameters have no reason to be small."""
    network = [] if model.network is None else list(model.network.parameters())
    groups: list[dict[str, Any]] = [{"params": network, "weight_decay": settings.decay}] if network else []
    if model.rigid is not None and not model.frozen:
        groups.append({"params": list(model.rigid.parameters()), "weight_decay": 0.0})
    return torch.optim.AdamW(groups, lr=settings.rate)


@torch.no_grad()
def _prepared(model: InverseDynamics, data: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Where the rigid part is frozen its torque is taken off once, not in every step."""
    inputs, torque = data
    if model.rigid is None or not model.frozen:
        return inputs, torque
    parts = [torque[i : i + 200] - model.stateless(inputs[i : i + 200]) for i in range(0, len(inputs), 200)]
    return inputs, torch.cat(parts)


def _error(model: InverseDynamics, inputs: Tensor, torque: Tensor) -> Tensor:
    said = model.residual(inputs) if model.frozen else model(inputs)
    return torch.mean(torch.square((said - torque) / model.torque_range))


def _epoch(
    model: InverseDynamics,
    data: tuple[Tensor, Tensor],
    optimiser: torch.optim.Optimizer,
    settings: TrainSettings,
    epoch: int,
) -> float:
    """One pass in an order that the seed and the epoch alone decide, so that a resumed run repeats it."""
    inputs, torque = data
    order = torch.from_numpy(np.random.default_rng([settings.seed, epoch]).permutation(len(inputs)))
    batches = order.split(settings.batch)
    learnt = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    total = 0.0
    model.train()
    model.blur = settings.blur
    torch.manual_seed(1_000_003 * settings.seed + epoch)
    for index, rows in enumerate(batches):
        done = (epoch + index / len(batches)) / settings.epochs
        for group in optimiser.param_groups:
            group["lr"] = settings.rate * (0.5 + 0.5 * np.cos(np.pi * done))
        loss = _error(model, inputs[rows], torque[rows])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, settings.clip)
        optimiser.step()
        total += float(loss.detach()) * len(rows)
    model.eval()
    return total / len(inputs)


@torch.no_grad()
def _loss(model: InverseDynamics, inputs: Tensor, torque: Tensor) -> float:
    parts = [
        float(_error(model, inputs[i : i + 64], torque[i : i + 64])) * len(inputs[i : i + 64])
        for i in range(0, len(inputs), 64)
    ]
    return sum(parts) / len(inputs)


def _save(
    path: Path,
    model: InverseDynamics,
    best: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    history: History,
    settings: TrainSettings,
) -> None:
    tensors = {f"now.{key}": value.contiguous() for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value.contiguous() for key, value in best.items()}
    for index, state in optimiser.state_dict()["state"].items():
        tensors |= {f"adam.{index}.{key}": torch.as_tensor(value).contiguous() for key, value in state.items()}
    header = {"history": json.dumps(asdict(history)), "belongs": _belongs(model, settings)}
    write_whole(path, save(tensors, metadata=header))


def _resume(
    path: Path, model: InverseDynamics, optimiser: torch.optim.Optimizer, settings: TrainSettings
) -> tuple[History, dict[str, Tensor]]:
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 (not a mapping)
    except SafetensorError as error:
        raise RetorqueError(f"'{path}' is not a checkpoint ({error}); remove it to train anew") from error
    if header.get("belongs") != _belongs(model, settings):
        raise RetorqueError(f"'{path}' belongs to other settings; remove it or choose another folder")
    now = {key.removeprefix("now."): value for key, value in tensors.items() if key.startswith("now.")}
    best = {key.removeprefix("best."): value for key, value in tensors.items() if key.startswith("best.")}
    model.load_state_dict(now)
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        if key.startswith("adam."):
            _, index, name = key.split(".", 2)
            state.setdefault(int(index), {})[name] = value
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    return History(**json.loads(header["history"])), best


def _belongs(model: InverseDynamics, settings: TrainSettings) -> str:
    about = {"robot": model.robot.name, "shape": model.shape.as_dict(), "frozen": model.frozen}
    return json.dumps({**about, "training": asdict(settings)}, sort_keys=True)
