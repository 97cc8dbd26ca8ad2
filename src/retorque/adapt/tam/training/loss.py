"""Nominal torques to ask about, and the loss of the corrections found for them."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from torch import Tensor
from torch.nn import functional

from retorque.adapt.tam.features import adaptor_features
from retorque.adapt.tam.training.labels import forward_drive, teacher
from retorque.adapt.tam.training.network import Tam

HUBER = 1e-2
"""Threshold of the Huber loss [units]."""
TICK = 1e-3
"""Control period [s]."""
AT_REST = 0.1
"""Slower than this, friction changes within a tick [rad/s]."""
STATE_KEYS = ("A", "b", "losses", "external", "ideal_inverse", "ideal_bias", "probe_matrix", "probe_bias", "window")


def nominal_torques(batch: dict[str, Tensor], samples: int, generator: torch.Generator) -> Tensor:
    """Nominal torques around each state, (rollouts, columns, states, samples, n) [N·m].

    One in four is the applied torque plus noise (B.9). The others are what the ideal robot needs for an acceleration
    near the recorded one: under a good correction that is what a controller asks for, and on light joints B.9 alone
    would almost never come near it.
    """
    shape = (*batch["b"].shape[:3], samples, batch["b"].shape[-1])
    unit = batch["unit"][:, None, None, None]

    def normal() -> Tensor:
        return torch.randn(shape, generator=generator)

    def spread(low: float, high: float) -> Tensor:
        share = torch.rand((*shape[:-1], 1), generator=generator)
        return low * (high / low) ** share

    # The clip leaves out what only white noise on the command does to light joints.
    acceleration = batch["acceleration"][..., None, :].clip(-10.0, 10.0) + spread(0.3, 10.0) * normal()
    needed = torch.einsum("rcsij,rcskj->rcski", batch["ideal_mass"], acceleration)
    slip = spread(0.02, 1.0) * (torch.rand((*shape[:-1], 1), generator=generator) < 0.5)
    light = 40.0 * torch.diagonal(batch["ideal_mass"], dim1=-2, dim2=-1)[..., None, :]  # of 40 rad/s² [N·m]
    near = batch["ideal_bias"][..., None, :] + needed + slip * torch.minimum(unit, light) * normal()
    around = batch["command"][..., None, :] + 2.0 * torch.rand((*shape[:-1], 1), generator=generator) * unit * normal()
    most = 1.5 * light
    around = batch["ideal_bias"][..., None, :] + torch.clip(around - batch["ideal_bias"][..., None, :], -most, most)
    chosen = torch.where(torch.rand((*shape[:-1], 1), generator=generator) < 0.25, around, near)
    limit = batch["limit"][:, None, None, None]
    return torch.clip(chosen, -limit, limit)


def correction_loss(
    network: Tam,
    batch: dict[str, Tensor],
    samples: int,
    generator: torch.Generator,
    latents: Tensor | None = None,
    ticks: int = 0,
) -> dict[str, Tensor]:
    """Mean Huber loss of the corrections of a batch (in thresholds), and root mean square figures [units].

    Half of the loss is of the command, half of the nominal torque that its error amounts to. With `ticks`, the same
    loss is taken again after each of so many ticks under the network's own commands (B.2, closed-loop rollout loss).
    """
    z = network.latents(batch) if latents is None else latents
    nominal = nominal_torques(batch, samples, generator)
    found = _losses(network, batch, z, nominal, batch["present"][:, None, None, None].expand_as(nominal))
    for _ in range(ticks):
        batch, moving = rolled(network, batch, z, nominal)
        later = _losses(network, batch, z, nominal, moving)
        found["loss"] = found["loss"] + later["loss"] / ticks
    return found


def _losses(network: Tam, batch: dict[str, Tensor], z: Tensor, nominal: Tensor, counted: Tensor) -> dict[str, Tensor]:
    """The loss and its figures for nominal torques; `counted` marks the joints that count, in the same shape."""
    error, size = correction_errors(network, batch, z, nominal)
    kept = counted.to(error.dtype)
    total = kept.sum().clip(min=1.0)
    weight = 1.0 / (1.0 + 0.1 * size.abs())
    inverse = inverse_response(batch)
    unit = batch["unit"][:, None, None, None]
    nominal_error = torch.matmul(inverse[:, :, :, None], (error * unit)[..., None])[..., 0] / unit
    loss = huber(error * weight, HUBER) + huber(nominal_error / (1.0 + 0.1 * nominal_error.detach().abs()), HUBER)
    # An error along the motion adds energy; where the ideal robot is heavier than its target, that soon runs away.
    along = error.detach() * batch["window"][:, :, :, 1, :, 0][:, :, :, None] > 0.0
    amplified = torch.diagonal(inverse, dim1=-2, dim2=-1).clip(1.0, 1.5)[:, :, :, None]
    loss = torch.where(along, amplified, 1.0) * loss
    return {
        "loss": 0.5 * (loss * kept).sum() / total,
        "nominal": ((nominal_error.detach() * kept).square().sum() / total).sqrt(),
        "error": ((error.detach() * kept).square().sum() / total).sqrt(),
        "size": ((size * kept).square().sum() / total).sqrt(),
        "share": ((error.detach() * weight * kept).abs().sum() / (size * weight * kept).abs().sum()),
    }


def rolled(network: Tam, batch: dict[str, Tensor], z: Tensor, nominal: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The batch one tick later, under the network's command for the first nominal torque of every state.

    The target moves by its own dynamics, M_ξ⁻¹ = M₀⁻¹ A⁻¹; inertia, gravity and losses are those of the recorded state.
    Losses of a joint that is nearly at rest change within a tick, so such joints do not count in what follows.

    Returns:
        The batch with windows moved on, and which joints count (rollouts, columns, states, samples, n).
    """
    with torch.no_grad():
        first = nominal[:, :, :, :1]
        error, wanted = correction_errors(network, batch, z, first)
        unit = batch["unit"][:, None, None]
        return stepped(batch, first[:, :, :, 0] + (error + wanted)[:, :, :, 0] * unit, nominal)


def stepped(batch: dict[str, Tensor], command: Tensor, nominal: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    """The batch one tick later under commands (rollouts, columns, states, n) [N·m]; what is returned as of `rolled`."""
    with torch.no_grad():
        limit = batch["limit"][:, None, None]
        command = torch.clip(command, -limit, limit)
        drive = {k: batch[k][:, None, None] for k in ("dead_zone", "torque_scale")}
        moving = forward_drive(torch, command, **drive) - batch["losses"] + batch["external"] - batch["b"]
        ideal = torch.matmul(inverse_response(batch), moving[..., None])[..., 0] - batch["ideal_bias"]
        acceleration = torch.matmul(batch["ideal_inverse"], ideal[..., None])[..., 0].clip(-200.0, 200.0)
        q, qd, torque = batch["window"].unbind(3)  # (rollouts, columns, states, n, L)
        faster = qd[..., 0] + TICK * acceleration
        window = torch.stack(
            [
                torch.cat([(q[..., 0] + TICK * faster)[..., None], q[..., :-1]], -1),
                torch.cat([faster[..., None], qd[..., :-1]], -1),
                torch.cat([command[..., None], torque[..., :-1]], -1),
            ],
            3,
        )
        counted = batch["present"][:, None, None] & (faster.abs() > AT_REST)
    return {**batch, "window": window}, counted[:, :, :, None].expand_as(nominal)


def inverse_response(batch: dict[str, Tensor]) -> Tensor:
    """A⁻¹ of every state, (rollouts, columns, states, n, n): from errors of the command to errors of nominal torque.

    Where the hidden inertia is far from the ideal one, the same error of the command moves the robot very differently.
    """
    missing = 1.0 - batch["present"].to(batch["A"].dtype)
    return torch.linalg.inv(batch["A"] + torch.diag_embed(missing)[:, None, None])


def huber(error: Tensor, threshold: float) -> Tensor:
    """Huber loss of each error, in thresholds."""
    return functional.huber_loss(error, torch.zeros_like(error), delta=threshold, reduction="none") / threshold


def correction_errors(network: Tam, batch: dict[str, Tensor], z: Tensor, nominal: Tensor) -> tuple[Tensor, Tensor]:
    """Error of the corrections and the teacher's corrections, (rollouts, columns, states, samples, n) [units]."""
    wide = {k: batch[k][:, :, :, None] for k in STATE_KEYS}
    drive = {k: batch[k][:, None, None, None] for k in ("dead_zone", "torque_scale")}
    scales = SimpleNamespace(
        **{
            k: batch[k][:, None, None, None]
            for k in ("unit", "load", "armature", "armature_range", "armature_shift", "present")
        }
    )
    ideal = torch.matmul(wide["ideal_inverse"], (nominal - wide["ideal_bias"])[..., None])[..., 0]
    probes = torch.matmul(wide["probe_matrix"], ideal[..., None, :, None])[..., 0] + wide["probe_bias"]
    window = wide["window"].expand(*nominal.shape[:4], *wide["window"].shape[4:])
    features = adaptor_features(
        torch, scales, window[..., 0, :, :], window[..., 1, :, :], window[..., 2, :, :], nominal, ideal, probes
    )
    wanted = (teacher(torch, {**wide, **drive}, nominal) - nominal) / scales.unit
    latent = z[:, :, None, None]
    found = network.adaptor(latent, features, nominal / scales.unit, scales.unit, scales.present)
    return found - wanted, wanted
