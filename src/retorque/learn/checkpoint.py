"""Checkpoints of a training: network, optimiser and progress in one file, for an exact resume."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from retorque.work.errors import RetorqueError
from retorque.work.tensors import load_tensors, save_tensors

KIND = "a checkpoint"
FORMAT = 2
STATE = ("step", "exp_avg", "exp_avg_sq")
"""What Adam and AdamW remember of a parameter."""


def save_checkpoint(
    path: Path,
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    header: dict[str, Any],
    best: Mapping[str, Tensor] | None = None,
) -> None:
    """Write network and optimiser whole.

    Args:
        path: the file.
        network: as it is now.
        optimiser: Adam or AdamW, with what it remembers.
        header: what else is needed to go on.
        best: the best network so far, where that is another one.
    """
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in (best or {}).items()}
    for name, parameter in network.named_parameters():
        for key in STATE:
            value = optimiser.state.get(parameter, {}).get(key)
            if value is not None:
                tensors[f"optimiser.{key}.{name}"] = torch.as_tensor(value)
    save_tensors(path, {name: value.detach().numpy() for name, value in tensors.items()}, KIND, FORMAT, header)


def load_checkpoint(
    path: Path, network: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Put a checkpoint back into network and optimiser; the header, and the best network so far."""
    try:
        arrays, header = load_tensors(path, KIND, FORMAT)
        # Copies: what is read may lie in memory that PyTorch must not write to.
        tensors = {name: torch.tensor(array) for name, array in arrays.items()}
        network.load_state_dict(_below("network.", tensors))
    except (RetorqueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise RetorqueError(f"cannot resume: {reason} (or delete '{path}' to start anew)") from error
    for name, parameter in network.named_parameters():
        state = {key: tensors[f"optimiser.{key}.{name}"] for key in STATE if f"optimiser.{key}.{name}" in tensors}
        if state:
            optimiser.state[parameter] = state
    return header, _below("best.", tensors)


def _below(start: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(start): value for name, value in tensors.items() if name.startswith(start)}
