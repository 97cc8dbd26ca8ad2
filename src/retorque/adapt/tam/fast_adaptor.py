"""The torque adaptor in NumPy: what depends on the latent is computed once a column, the rest every tick."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.features import BASIS, COEFFICIENTS, SHIFT
from retorque.adapt.tam.preset import Preset

Array = np.ndarray

JUMP = 0.025
"""Torque over which a dead zone's jump is smoothed [N·m]; the same as in training."""
EPSILON = np.float32(1e-6)
BENDS, NEWEST_BENDS = 1.0 / np.array([0.01, 0.03, 0.1]), 1.0 / np.array([0.02, 0.1])
"""Inverse widths of the adaptor's saturating velocity features [s/rad]; the same as in `adaptor_features`."""


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
        groups = ("position", "velocity", "torque")
        sizes = [w[f"{name}.weight"].shape[1] for name in groups]
        e = preset.embed
        # The embeddings side by side are one block-diagonal matrix: one product instead of three.
        self._embed = np.zeros((sum(sizes), 3 * e), dtype=np.float32)
        row = 0
        for index, (name, size) in enumerate(zip(groups, sizes, strict=True)):
            self._embed[row : row + size, index * e : (index + 1) * e] = w[f"{name}.weight"].T
            row += size
        self._embed_bias = np.concatenate([w[f"{name}.bias"] for name in groups])
        self._combine, self._summary = _transposed(w["combine.weight"]), _transposed(w["summary.weight"])
        self._layers = [(_transposed(w[f"layers.{i}.weight"]), w[f"layers.{i}.bias"]) for i in range(preset.depth)]
        self._head, self._head_bias = w["head.weight"][0], w["head.bias"]
        self._combine_bias, self._summary_bias = w["combine.bias"], w["summary.bias"]
        self._share = np.float32(1.0 / context.robot.n)
        self._inputs, self._basis = np.empty((0, 0), dtype=np.float32), np.empty((0, 0), dtype=np.float32)
        self._unit = context.unit.astype(np.float32)
        p = context.profile
        constant = p.friction_max + p.bias_max * (1.0 + p.bias_difference) + p.dead_zone_max + context.unit
        self._limits = (constant / context.unit, p.viscous_max / context.unit)

    def set_latent(self, z: Array) -> None:
        """Take over new latents (trials, n, latent)."""
        w, h = self._w, self.preset.hidden
        modulation = z @ w["modulate.weight"].T + w["modulate.bias"]
        half = modulation.shape[-1] // 2
        gain, shift = 1.0 + modulation[..., :half], modulation[..., half:]
        self._gain = [np.ascontiguousarray(gain[..., i * h : (i + 1) * h]) for i in range(self.preset.depth)]
        self._shift = [np.ascontiguousarray(shift[..., i * h : (i + 1) * h]) for i in range(self.preset.depth)]
        middle, half = COEFFICIENTS.T
        raw = z @ w["basis.weight"].T + w["basis.bias"]
        self._coefficients = middle + half * np.tanh((raw - middle) / half)
        self._widths = np.logaddexp(0.0, z @ w["dead_zone.weight"].T + w["dead_zone.bias"]).astype(np.float32)

    def correction(self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array) -> Array:
        """The torque to add, (trials, n) [N·m]; the arguments are those of `adaptor_features`."""
        inputs, basis = self._features(q, qd, torque, nominal, ideal, probes)
        x = inputs @ self._embed
        x += self._embed_bias
        np.maximum(x, 0.0, out=x)
        x = x @ self._combine
        x += self._combine_bias
        mean = np.add.reduce(x, axis=-2) * self._share
        np.maximum(mean, 0.0, out=mean)
        mean = mean @ self._summary
        mean += self._summary_bias
        x += mean[..., None, :]
        size = np.float32(1.0 / x.shape[-1])
        for (weight, bias), gain, shift in zip(self._layers, self._gain, self._shift, strict=True):
            scale = np.einsum("...i,...i->...", x, x)
            scale *= size
            scale += EPSILON
            np.sqrt(scale, out=scale)
            inner = x / scale[..., None]
            inner *= gain
            inner += shift
            np.maximum(inner, 0.0, out=inner)
            x += inner @ weight
            x += bias
        smooth = x @ self._head
        smooth += self._head_bias
        known = basis[..., SHIFT]
        smooth += np.einsum("...i,...i->...", self._coefficients, basis)
        smooth += known
        side = expit((nominal + smooth * self._unit) * (1.0 / JUMP))
        found = smooth + self._widths[..., 0] * side - self._widths[..., 1] * (1.0 - side)
        most = self._most(basis)
        return np.minimum(np.maximum(found, known - most), known + most) * self._unit

    def _features(
        self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array
    ) -> tuple[Array, Array]:
        """What `adaptor_features` computes, written into two arrays that are kept: this is the hot path."""
        s, window = self.scales, self.preset.window
        lead = nominal.shape
        if self._inputs.shape[:-1] != lead:
            self._inputs = np.empty((*lead, self._embed.shape[0]), dtype=np.float32)
            self._basis = np.empty((*lead, BASIS), dtype=np.float32)
        x, basis = self._inputs, self._basis
        now, newest = q[..., 0], qd[..., 0]
        mean = np.add.reduce(qd, axis=-1) * (1.0 / window)
        x[..., 0] = np.sin(now)
        x[..., 1] = np.cos(now)
        np.multiply(q[..., 1:] - now[..., None], 50.0, out=x[..., 2 : window + 1], casting="same_kind")
        at = window + 1
        x[..., at : at + window] = qd
        at += window
        bends = np.tanh(mean[..., None] * BENDS)
        x[..., at : at + 3] = bends
        x[..., at + 3 : at + 5] = np.tanh(newest[..., None] * NEWEST_BENDS)
        at += 5
        bounded = np.tanh(torque * s.half_per_load[:, None])
        bounded *= 2.0
        x[..., at:] = bounded
        carried = nominal - s.armature * ideal
        basis[..., 0] = 1.0
        basis[..., 1] = mean
        basis[..., 2] = np.abs(mean)
        basis[..., 3:6] = bends
        basis[..., 6] = np.abs(bends[..., 1])
        basis[..., 7] = ideal * s.spread
        basis[..., 8] = ideal * s.shift
        basis[..., 9] = carried * s.per_unit
        basis[..., 10:] = np.swapaxes(probes, -1, -2)
        return x, basis

    def _most(self, basis: Array) -> Array:
        """The most that a target of the robot's profile can need beyond the armature's middle, (trials, n) [units]."""
        constant, viscous = self._limits
        moving = np.abs(basis[..., 7]) + viscous * basis[..., 2] + 0.25 * np.abs(basis[..., 9])
        return constant + moving + np.abs(basis[..., 10:]).sum(axis=-1)


class _Scales:
    """What `adaptor_features` asks of a robot."""

    def __init__(self, context: Context):
        self.unit = context.unit
        self.load = context.load
        self.armature = context.robot.armature
        self.armature_range = context.armature_range
        self.armature_shift = context.armature_shift
        self.per_unit, self.half_per_load = 1.0 / self.unit, 0.5 / self.load
        self.spread, self.shift = self.armature_range / self.unit, self.armature_shift / self.unit


def _transposed(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix.T)
