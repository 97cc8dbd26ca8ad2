"""Training of inverse-dynamics models on recordings: sequences of 100, early stopping, resumable after any epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from retorque.identify.hybrid.hybrid import InverseDynamics, Scaling
from retorque.identify.hybrid.recordings import Split
from retorque.learn.checkpoint import load_checkpoint, save_checkpoint
from retorque.learn.run_folder import check_same_run
from retorque.logs.motion import Motion
from retorque.work.array import Array
from retorque.work.errors import RetorqueError

Tensor = torch.Tensor

VELOCITY_KNEE = 0.01
"""Velocity above which the networks see it on a logarithmic scale [rad/s]."""
ACCELERATION_KNEE = 0.1
"""The same of accelerations [rad/s²]."""
NO_KNEE = 1e4
"""A knee beyond every velocity and acceleration: networks see them as they are."""
NO_CLIP = 1e9
"""Beyond the norm of every gradient."""
STEP_AFTER = 30
"""Epochs after which the paper's learning rate falls to a tenth."""
FAILED_LOSS = 1e9
"""Stands in a curve for a loss that was no number, which JSON cannot hold."""
MOST_TICKS = 200_000
"""Ticks that are predicted side by side: what a network says of them is kept in memory."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class HybridTraining:
    """How a model is trained."""

    epochs: int = 30
    """Most passes over the training data."""
    patience: int = 10
    """Passes without a better validation loss before stopping."""
    steps: int = 100
    """Length of a training sequence; a step is as many ticks as the model's stride."""
    batch: int = 64
    """Sequences a step."""
    thin: int = 1
    """One sequence in so many is learnt from, evenly over the recordings."""
    rate: float = 0.015
    """Adam's first learning rate of the network; it falls to zero along a cosine."""
    rigid_rate: float = 0.004
    """The same of a rigid part that is learnt along."""
    settle: int = 1500
    """Steps that a rigid part is given alone, a thousand ticks each, before the network beside it may speak."""
    thrift: float = 0.05
    """Price of what the network says while a rigid part learns beside it: what both could explain goes to the rigid
    part, so that its parameters mean something."""
    blur: float = 0.2
    """Shift of each sequence's positions as the network sees them [rad]."""
    decay: float = 0.01
    """Weight decay of the network."""
    clip: float = 1.0
    """Largest norm of a gradient."""
    schedule: Literal["cosine", "step"] = "cosine"
    """How rates fall: to zero along a cosine, or to a tenth after `STEP_AFTER` epochs."""
    published: bool = False
    """Whether models, losses and starts are the paper's too: torques over their range, inputs without a knee, links
    from random virtual parameters."""
    seed: int = 0
    """Of the first weights and the order of the sequences."""
    threads: int = 2
    """PyTorch's threads."""

    @classmethod
    def as_published(
        cls, *, epochs: int, seed: int = 0, threads: int = 2, batch: int = 1000, thin: int = 1
    ) -> HybridTraining:
        """Table IV and section IV-F: Adam at 0.004, 1000 sequences of 100 a step, and nothing of our own."""
        return cls(
            epochs=epochs,
            patience=30,
            batch=batch,
            thin=thin,
            rate=0.004,
            settle=0,
            thrift=0.0,
            blur=0.0,
            decay=0.0,
            clip=NO_CLIP,
            schedule="step",
            published=True,
            seed=seed,
            threads=threads,
        )

    def fallen(self, done: float) -> float:
        """What is left of the rates after so many epochs."""
        if self.schedule == "step":
            return 0.1 if done >= STEP_AFTER else 1.0
        return 0.5 + 0.5 * float(np.cos(np.pi * done / self.epochs))


@dataclass
class LossCurve:
    """What happened, epoch by epoch."""

    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    best: int = -1
    """The epoch whose weights are kept."""
    stopped: bool = False
    """Whether training is over."""
    failed: bool = False
    """Whether a loss was no longer a number; the best weights before that are kept."""


def scaling_of(split: Split, residual: Array | None) -> Scaling:
    """Mean and spread of the training inputs, the range of the training torques, and the unit of a residual.

    Args:
        split: the recordings.
        residual: (n,) what a rigid body with friction leaves over [N·m], such as an estimate's noise; None: as the
            paper has it, a knee nowhere and errors over the range of the torques.
    """
    seen = np.concatenate([_inputs(m)[::50] for m in split.train]).astype(float)
    n = split.train[0].n
    knee = np.repeat([VELOCITY_KNEE, ACCELERATION_KNEE] if residual is not None else [NO_KNEE] * 2, n)
    seen[:, n:] = np.arcsinh(seen[:, n:] / knee)
    low, high = split.torque_range()
    span = np.asarray(high - low, dtype=float)
    unit = span if residual is None else np.asarray(residual, dtype=float)
    return Scaling(seen.mean(axis=0), seen.std(axis=0) + 1e-9, knee, span, unit)


def sequences(motions: list[Motion], steps: int, stride: int = 1) -> tuple[Tensor, Tensor]:
    """Inputs (sequences, steps, 3n) and torques (sequences, steps, n): every stride-th tick, all phases."""
    inputs, torques = [], []
    for motion in motions:
        for phase in range(stride):
            thin = motion[phase::stride]
            count = len(thin) // steps
            rows = slice(0, count * steps)
            inputs.append(_inputs(thin)[rows].reshape(count, steps, 3 * motion.n))
            torques.append(thin.torque[rows].reshape(count, steps, motion.n))
    if not sum(map(len, inputs)):
        raise RetorqueError(
            f"every recording is shorter than a sequence of {steps} x {stride} ticks; use a larger scale"
        )
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
    return float(np.mean(nmse_by_joint(model, motions, part)))


def nmse_by_joint(model: InverseDynamics, motions: list[Motion], part: str = "all") -> Array:
    """(n,) the same of each joint."""
    total, count = np.zeros(model.robot.n), 0
    for inputs, torque in _whole(motions, model.shape.stride):
        error = (predict(model, inputs, part) - torque) / model.torque_range
        total += torch.sum(torch.square(error).double(), dim=(0, 1)).numpy()
        count += error.shape[0] * error.shape[1]
    return np.asarray(total / count)


def _whole(motions: list[Motion], stride: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Whole motions, each one sequence; those of one length side by side."""
    for length in sorted({len(motion) for motion in motions}):
        alike = [motion for motion in motions if len(motion) == length]
        together = max(1, MOST_TICKS // length)
        for first in range(0, len(alike), together):
            yield sequences(alike[first : first + together], length // stride, stride)


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
    settings: HybridTraining,
    *,
    checkpoint: Path | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> LossCurve:
    """Fit what is not frozen, keep the weights of the best validation loss.

    Args:
        model: trained in place.
        split: recordings to train on and to stop by.
        settings: how.
        checkpoint: a file written after every epoch; training goes on from it where it exists and belongs to these
            settings.
        progress: told the number of finished epochs and the last validation loss.

    Returns:
        The losses; a training whose loss became no number ends there and is marked as failed.
    """
    torch.set_num_threads(settings.threads)
    inputs, torque = sequences(split.train, settings.steps, model.shape.stride)
    data = _prepared(model, (inputs[:: settings.thin], torque[:: settings.thin]))
    held = [_prepared(model, whole) for whole in _whole(split.validation, model.shape.stride)]
    optimiser = _optimiser(model, settings)
    curve, identity = LossCurve(), _identity(model, settings)
    best = {key: value.clone() for key, value in model.state_dict().items()}
    if checkpoint is not None and checkpoint.exists():
        curve, best = _resume(checkpoint, model, optimiser, identity)
    elif model.rigid is not None and model.network is not None and not model.frozen:
        _settle(model, data, settings)
    for epoch in range(len(curve.train), settings.epochs):
        if curve.stopped:
            break
        learnt, loss = _epoch(model, data, optimiser, settings, epoch), _left(model, held)
        curve.failed = not np.isfinite(loss)
        for losses, value in ((curve.train, learnt), (curve.validation, loss)):
            losses.append(value if np.isfinite(value) else FAILED_LOSS)
        if not curve.failed and (curve.best < 0 or loss < curve.validation[curve.best]):
            curve.best = epoch
            best = {key: value.clone() for key, value in model.state_dict().items()}
        curve.stopped = curve.failed or epoch - curve.best >= settings.patience
        if checkpoint is not None:
            save_checkpoint(checkpoint, model, optimiser, {"curve": asdict(curve), "identity": identity}, best)
        if progress:
            progress(epoch + 1, loss)
        log.info("epoch %d: train %.3g, validation %.3g", epoch, curve.train[-1], loss)
    model.load_state_dict(best)
    curve.stopped = True
    return curve


def _inputs(motion: Motion) -> Array:
    return np.concatenate([motion.q, motion.qd, motion.qdd], axis=-1)


def _optimiser(model: InverseDynamics, settings: HybridTraining) -> torch.optim.Optimizer:
    """Adam; only the network's weights decay, since a link's parameters have no reason to be small."""
    network = [] if model.network is None else list(model.network.parameters())
    groups: list[dict[str, Any]] = []
    if network:
        groups.append({"params": network, "weight_decay": settings.decay, "initial_lr": settings.rate})
    if model.rigid is not None and not model.frozen:
        rigid = model.rigid
        links = [rigid.virtual, rigid.rotor_root]
        groups.append({"params": links, "weight_decay": 0.0, "initial_lr": settings.rigid_rate})
        # Friction is as quick as the network, lest that learns it first.
        groups.append({"params": [rigid.coulomb], "weight_decay": 0.0, "initial_lr": settings.rate})
    return torch.optim.AdamW(groups, lr=settings.rate)


@torch.no_grad()
def _prepared(model: InverseDynamics, data: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Where the rigid part is frozen its torque is taken off once, not in every step."""
    inputs, torque = data
    if model.rigid is None or not model.frozen:
        return inputs, torque
    parts = [torque[i : i + 200] - model.stateless(inputs[i : i + 200]) for i in range(0, len(inputs), 200)]
    return inputs, torch.cat(parts)


@torch.no_grad()
def _left(model: InverseDynamics, held: list[tuple[Tensor, Tensor]]) -> float:
    """Normalised mean squared error on prepared motions."""
    total, count = 0.0, 0
    for inputs, torque in held:
        said = model.residual(inputs) if model.frozen else model(inputs)
        error = torch.square((said - torque) / model.torque_range).double()
        total, count = total + float(torch.sum(error)), count + error.numel()
    return total / count


def _settle(model: InverseDynamics, data: tuple[Tensor, Tensor], settings: HybridTraining) -> None:
    """Bring the rigid part near its own best fit: what it does not say by then, the network would learn instead."""
    assert model.rigid is not None
    inputs, torque = (x.reshape(-1, x.shape[-1]) for x in data)
    generator = torch.Generator().manual_seed(settings.seed)
    optimiser = torch.optim.Adam(model.rigid.parameters(), lr=settings.rate)
    for step in range(settings.settle):
        optimiser.param_groups[0]["lr"] = settings.rate * (0.5 + 0.5 * np.cos(np.pi * step / settings.settle))
        rows = torch.randint(len(inputs), (1000,), generator=generator)
        loss = torch.mean(torch.square((model.stateless(inputs[rows]) - torque[rows]) / model.output_scale))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def _error(model: InverseDynamics, inputs: Tensor, torque: Tensor, shift: Tensor, thrift: float) -> Tensor:
    """The loss of a batch in units of the network's output.

    Args:
        model: the model.
        inputs: (batch, steps, 3n).
        torque: (batch, steps, n), less the rigid part's where that is frozen.
        shift: (batch, 1, 3n) added to what the network, but not the rigid part, is shown.
        thrift: price of what the network says beside a rigid part that learns.
    """
    said = model.residual(inputs + shift)
    if model.frozen:
        return torch.mean(torch.square((said - torque) / model.output_scale))
    error = said + model.stateless(inputs) - torque
    return torch.mean((torch.square(error) + thrift * torch.square(said)) / torch.square(model.output_scale))


def _epoch(
    model: InverseDynamics,
    data: tuple[Tensor, Tensor],
    optimiser: torch.optim.Optimizer,
    settings: HybridTraining,
    epoch: int,
) -> float:
    """One pass in an order that the seed and the epoch alone decide, so that a resumed run repeats it."""
    inputs, torque = data
    generator = torch.Generator().manual_seed(1_000_003 * settings.seed + epoch)
    batches = torch.randperm(len(inputs), generator=generator).split(settings.batch)
    learnt = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    blur = torch.zeros(inputs.shape[-1])
    blur[: model.robot.n] = settings.blur
    total = 0.0
    for index, rows in enumerate(batches):
        for group in optimiser.param_groups:
            group["lr"] = group["initial_lr"] * settings.fallen(epoch + index / len(batches))
        shift = torch.randn(len(rows), 1, inputs.shape[-1], generator=generator) * blur
        loss = _error(model, inputs[rows], torque[rows], shift, settings.thrift)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, settings.clip)
        optimiser.step()
        model.keep_apart()
        total += float(loss.detach()) * len(rows)
    return total / len(inputs)


def _resume(
    path: Path, model: InverseDynamics, optimiser: torch.optim.Optimizer, identity: dict[str, Any]
) -> tuple[LossCurve, dict[str, Tensor]]:
    header, best = load_checkpoint(path, model, optimiser)
    check_same_run(path, header["identity"], identity)
    return LossCurve(**header["curve"]), best


def _identity(model: InverseDynamics, settings: HybridTraining) -> dict[str, Any]:
    """What must not change between the parts of a run."""
    training = {name: value for name, value in asdict(settings).items() if name != "threads"}
    return {"robot": model.robot.name, "shape": model.shape.as_dict(), "frozen": model.frozen, **training}
