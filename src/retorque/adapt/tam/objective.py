"""What each variant of the module is trained for."""

from __future__ import annotations

import torch
from torch import Tensor

from retorque.adapt.tam.loss import correction_loss
from retorque.adapt.tam.network import Tam


def objective(network: Tam, batch: dict[str, Tensor], samples: int, generator: torch.Generator) -> dict[str, Tensor]:
    """The loss of a batch and figures to follow it by."""
    return correction_loss(network, batch, samples, generator)
