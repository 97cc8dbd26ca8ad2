"""Each joint's unknowns of the linear model, and those that come nearest to given parameters."""

from __future__ import annotations

import numpy as np

from retorque.physics.actuator import DEAD_ZONE_SLOPE, friction
from retorque.physics.parameters import Parameters
from retorque.work.array import Array

WIDTHS = np.array([0.015, 0.05, 0.2])
"""Velocity widths of the friction basis [rad/s]."""
BASIS = 2.2 / WIDTHS
NAMES = (
    "armature",
    "viscous+",
    "viscous-",
    *(f"friction{w:g}+" for w in WIDTHS),
    *(f"friction{w:g}-" for w in WIDTHS),
    "bias+",
    "bias-",
    "dead zone+",
    "dead zone-",
    "scale+",
    "scale-",
)
"""Each joint's unknowns, in order."""
PER_JOINT = len(NAMES)
ARMATURE = 0
VISCOUS = slice(1, 3)
FRICTION_FORWARD, FRICTION_BACKWARD = slice(3, 6), slice(6, 9)
BIAS, DEAD_ZONE, SCALE = slice(9, 11), slice(11, 13), slice(13, 15)
"""Where each of them stands; pairs are (positive, negative)."""
NONNEGATIVE = np.array([name.startswith(("armature", "viscous", "dead zone")) for name in NAMES])
"""(F,) which of them cannot be below zero."""
GRID = 2.0 * np.linspace(0.0, 1.0, 60)[1:] ** 2.5
"""Velocities at which friction is compared, dense where it bends [rad/s]."""


def joint_unknowns(p: Parameters) -> Array:
    """The joint unknowns that come nearest to hidden parameters, (..., n, F)."""
    out = np.empty((*p.armature.shape, PER_JOINT))
    out[..., ARMATURE] = p.armature
    out[..., VISCOUS] = p.viscous
    out[..., FRICTION_FORWARD], out[..., FRICTION_BACKWARD] = _friction_weights(p)
    out[..., BIAS] = p.torque_bias
    out[..., DEAD_ZONE] = (1.0 - DEAD_ZONE_SLOPE) * p.dead_zone
    out[..., SCALE] = p.torque_scale - 1.0
    if p.friction.count:
        _add_terms(out, p)
    return out


def _fit() -> Array:
    """(widths, grid) the basis' least-squares weights of friction at the grid, a little ridge keeping them small."""
    basis = np.tanh(GRID[:, None] * BASIS)
    return np.linalg.solve(basis.T @ basis + 0.02 * np.eye(len(WIDTHS)), basis.T)


def _friction_weights(p: Parameters) -> tuple[Array, Array]:
    lead = p.armature.shape
    both = []
    for sign in (1.0, -1.0):
        values = np.stack([friction(np.full(lead, sign * v), p) for v in GRID], axis=-1)
        both.append(sign * values @ _fit().T)
    return both[0], both[1]


def _add_terms(out: Array, p: Parameters) -> None:
    """Add the friction's linear terms: viscous ones and offsets as they are, the others fitted by the basis."""
    terms = p.friction.names
    own = p.friction_coefficients
    viscous = np.array([term.startswith("viscous") for term in terms])
    offset = np.array([term == "offset" for term in terms])
    for side, word in enumerate(("forward", "backward")):
        sign = 1.0 - 2.0 * side
        at_all = np.array([not term.endswith("backward" if side == 0 else "forward") for term in terms])
        out[..., VISCOUS.start + side] += own[..., viscous & at_all].sum(axis=-1)
        out[..., BIAS.start + side] -= own[..., offset].sum(axis=-1)
        velocity = np.broadcast_to(sign * GRID, (own.shape[-2], len(GRID))).T  # (grid, n)
        features = p.friction.features(velocity)[..., ~(viscous | offset)]  # (grid, n, terms)
        values = np.einsum("gjc,...jc->...jg", features, own[..., ~(viscous | offset)])
        place = FRICTION_FORWARD if word == "forward" else FRICTION_BACKWARD
        out[..., place] += sign * values @ _fit().T
