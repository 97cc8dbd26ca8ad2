"""The torque adaptor in NumPy: what depends on the latent is computed once a column, the rest every tick."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.features import SHIFT, adaptor_features
from retorque.adapt.tam.preset import Preset

Array = np.ndarray

JUMP = 0.025
"""Torque over which a dead zone's jump is smoothed [N·m]; the same as in training."""
EPSILON = np.float32(1e-6)


class FastAdaptor:
    """Corrections (trials, n) [N·m] out of the last ticks, the nominal torque and the latents.

    Args:
        tensors: weights by name.
        preset: sizes.
        context: the robot's.
    """

    def __init__(self, tensors: dict[str, Array], preset: Preset, context: Context):
        w = {k.removeprefix("adaptor."): v for k, v in tensors.items() if k.startswith("adaptor.")}
        self._w, self.preset = w, preset
        self.context = context
        self.scales = _Scales(context)
        groups = ("position", "velocity", "torque", "query")
        sizes = [w[f"{name}.weight"].shape[1] for name in groups]
        e = preset.embed
        # The four embeddings side by side are one block-diagonal matrix: one product instead of four.
        self._embed = np.zeros((sum(sizes), 4 * e), dtype=np.float32)
        row = 0
        for index, (name, size) in enumerate(zip(groups, sizes, strict=True)):
            self._embed[row : row + size, index * e : (index + 1) * e] = w[f"{name}.weight"].T
            row += size
        self._embed_bias = np.concatenate([w[f"{name}.bias"] for name in groups])
        self._combine, self._summary = _transposed(w["combine.weight"]), _transposed(w["summary.weight"])
        self._layers = [(_transposed(w[f"layers.{i}.weight"]), w[f"layers.{i}.bias"]) for i in range(preset.depth)]
        self._head = w["head.weight"][0]
        self._unit = context.unit.astype(np.float32)

    def set_latent(self, z: Array) -> None:
        """Take over new latents (trials, n, latent)."""
        w, h = self._w, self.preset.hidden
        modulation = z @ w["modulate.weight"].T + w["modulate.bias"]
        half = modulation.shape[-1] // 2
        gain, shift = 1.0 + modulation[..., :half], modulation[..., half:]
        self._gain = [np.ascontiguousarray(gain[..., i * h : (i + 1) * h]) for i in range(self.preset.depth)]
        self._shift = [np.ascontiguousarray(shift[..., i * h : (i + 1) * h]) for i in range(self.preset.depth)]
        self._coefficients = z @ w["basis.weight"].T + w["basis.bias"]
        self._widths = np.logaddexp(0.0, z @ w["dead_zone.weight"].T + w["dead_zone.bias"]).astype(np.float32)

    def correction(self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array) -> Array:
        """The torque to add, (trials, n) [N·m]; the arguments are those of `adaptor_features`."""
        *groups, basis = adaptor_features(np, self.scales, q, qd, torque, nominal, ideal, probes)
        inputs = np.concatenate(groups, axis=-1).astype(np.float32)
        x = np.maximum(inputs @ self._embed + self._embed_bias, 0.0) @ self._combine
        x += self._w["combine.bias"]
        mean = np.maximum(x.mean(axis=-2), 0.0) @ self._summary + self._w["summary.bias"]
        x += mean[..., None, :]
        size = np.float32(1.0 / x.shape[-1])
        for (weight, bias), gain, shift in zip(self._layers, self._gain, self._shift, strict=True):
            scale = 1.0 / np.sqrt(np.einsum("...i,...i->...", x, x) * size + EPSILON)
            inner = x * scale[..., None]
            inner *= gain
            inner += shift
            np.maximum(inner, 0.0, out=inner)
            x += inner @ weight
            x += bias
        smooth = x @ self._head + self._w["head.bias"]
        smooth = smooth + np.einsum("...i,...i->...", self._coefficients, basis) + basis[..., SHIFT]
        side = expit((nominal + smooth * self._unit) / JUMP)
        return (smooth + self._widths[..., 0] * side - self._widths[..., 1] * (1.0 - side)) * self._unit


class _Scales:
    """What `adaptor_features` asks of a robot."""

    def __init__(self, context: Context):
        self.unit: Any = context.unit
        self.load = context.load
        self.armature = context.robot.armature
        self.armature_range = context.armature_range
        self.armature_shift = context.armature_shift


def _transposed(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix.T)
