"""The learned module in NumPy: weights of a filter over residuals, out of what they look like."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam_recursive.residuals import TAPS
from retorque.work.array import Array

OFFSET = 0.5
"""Largest torque that is not a multiple of residuals [units]."""


class ResidualNetwork:
    """Two torques a joint: from outside, and the robot's own beyond its estimate.

    Both are weighted sums of the residuals; a perceptron chooses the weights from all joints' residuals, so that a
    push twice as strong is answered twice as strongly once it is recognised.

    Args:
        tensors: weights by name.
    """

    def __init__(self, tensors: dict[str, Array]):
        # In double precision: at this size it costs the same, and every engine gives the same torques.
        self._w = {name: np.ascontiguousarray(value.T, dtype=float) for name, value in tensors.items()}
        self._layers = sum(name.startswith("layers.") and name.endswith(".weight") for name in tensors)

    def __call__(self, features: Array, taps: Array) -> tuple[Array, Array]:
        """External torque and own torque (trials, n) each [units], from (trials, n, FEATURES) and (trials, n, TAPS)."""
        w = self._w
        x = features @ w["embed.weight"] + w["embed.bias"]
        np.maximum(x, 0.0, out=x)
        summary = np.concatenate([x.mean(axis=-2), x.max(axis=-2)], axis=-1)
        x = x @ w["combine.weight"] + (summary @ w["summary.weight"] + w["summary.bias"])[..., None, :]
        for index in range(self._layers):
            inner = np.maximum(x, 0.0)
            x = x + inner @ w[f"layers.{index}.weight"] + w[f"layers.{index}.bias"]
        out = np.maximum(x, 0.0) @ w["head.weight"] + w["head.bias"]
        external = -np.einsum("...k,...k->...", out[..., :TAPS], taps)
        own = np.einsum("...k,...k->...", out[..., TAPS : 2 * TAPS], taps)
        return external, own + OFFSET * np.tanh(out[..., 2 * TAPS])
