"""Checkpoints of a training: network, optimiser and progress in one safetensors file, for an exact resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import nn

from retorque.work.errors import RetorqueError
from retorque.work.files import write_whole

FORMAT = 1
KEY = "retorque-tam-checkpoint"


def save_checkpoint(path: Path, network: nn.Module, optimiser: torch.optim.AdamW, header: dict[str, Any]) -> None:
    """Write network and optimiser whole; `header` is what else is needed to go on."""
    tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for key, value in optimiser.state.get(parameter, {}).items():
            tensors[f"optimiser.{key}.{name}"] = value.reshape(-1) if value.ndim == 0 else value
    content = {k: v.detach().contiguous() for k, v in tensors.items()}
    write_whole(path, save(content, metadata={KEY: json.dumps({"format": FORMAT, **header})}))


def load_checkpoint(path: Path, network: nn.Module, optimiser: torch.optim.AdamW) -> dict[str, Any]:
    """Put a checkpoint back into network and optimiser; the header."""
    try:
        with safe_open(path, framework="pt") as file:
            header = json.loads((file.metadata() or {})[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']}")
        network.load_state_dict({k.removeprefix("network."): v for k, v in tensors.items() if k.startswith("network.")})
    except (OSError, SafetensorError, KeyError, ValueError, TypeError, RuntimeError) as error:
        raise RetorqueError(f"cannot resume from '{path}' ({error}); delete it to start anew") from error
    for name, parameter in network.named_parameters():
        state = {}
        for key in ("step", "exp_avg", "exp_avg_sq"):
            value = tensors.get(f"optimiser.{key}.{name}")
            if value is not None:
                state[key] = value[0] if key == "step" else value
        if state:
            optimiser.state[parameter] = state
    return header
