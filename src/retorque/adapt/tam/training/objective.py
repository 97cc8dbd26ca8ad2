"""What each variant of the module is trained for."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from retorque.adapt.tam.training.loss import correction_loss
from retorque.adapt.tam.training.network import Tam
from retorque.adapt.tam.training.paper_loss import paper_loss


def objective(
    network: Tam, batch: dict[str, Tensor], samples: int, generator: torch.Generator, ticks: int = 0
) -> dict[str, Tensor]:
    """The loss of a batch and figures to follow it by.

    `physpred` learns the parameters themselves; `privileged` learns a latent of the true parameters that corrects well,
    and the encoder imitates that latent; all others learn corrections end to end, also after `ticks` ticks under their
    own commands.
    """
    if network.preset.variant == "physpred":
        return _parameter_loss(network, batch)
    if network.preset.variant == "privileged":
        return _privileged_loss(network, batch, samples, generator, ticks)
    return _correction_loss(network, batch, samples, generator, network.latents(batch), ticks)


def _correction_loss(
    network: Tam, batch: dict[str, Tensor], samples: int, generator: torch.Generator, latents: Tensor, ticks: int
) -> dict[str, Tensor]:
    """The paper's own loss where the preset is the paper's, ours otherwise."""
    chosen = paper_loss if network.preset.as_published else correction_loss
    return chosen(network, batch, samples, generator, latents, ticks)


def _parameter_loss(network: Tam, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    present = batch["present"]
    z = network.latents(batch)
    joint, payload = network.physical(z, present[:, None].expand(z.shape[:-1]))
    of_joints = functional.huber_loss(joint, batch["joint_numbers"][:, None].expand_as(joint), reduction="none")
    kept = present[:, None, :, None].to(joint.dtype).expand_as(joint)
    of_payload = functional.huber_loss(payload, batch["payload_numbers"][:, None].expand_as(payload))
    loss = (of_joints * kept).sum() / kept.sum() + of_payload
    return {"loss": loss, "payload": of_payload}


def _privileged_loss(
    network: Tam, batch: dict[str, Tensor], samples: int, generator: torch.Generator, ticks: int
) -> dict[str, Tensor]:
    taught = network.privileged(batch["joint_numbers"], batch["payload_numbers"])
    z = network.latents(batch)
    wide = taught[:, None].expand_as(z)
    found = _correction_loss(network, batch, samples, generator, wide, ticks)
    kept = batch["present"][:, None, :, None].to(z.dtype).expand_as(z)
    imitation = ((z - wide.detach()).square() * kept).sum() / kept.sum()
    return {**found, "loss": found["loss"] + imitation, "imitation": imitation}
