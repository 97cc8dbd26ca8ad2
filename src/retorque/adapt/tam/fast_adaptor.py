"""The torque adaptor in NumPy: what depends on the latent is computed once a column, the rest every tick."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.adaptor_rows import AdaptorRows, RowLayout
from retorque.adapt.tam.context import Context
from retorque.adapt.tam.fast_perceptron import FastPerceptron
from retorque.adapt.tam.features import COEFFICIENTS
from retorque.adapt.tam.preset import Preset
from retorque.work.array import Array

JUMP = 0.025
"""Torque over which a dead zone's jump is smoothed [N·m]; the same as in training."""


class FastAdaptor:
    """Corrections (trials, n) [N·m] out of the last ticks, the nominal torque and the latents.

    Args:
        tensors: weights by name.
        preset: sizes.
        context: the robot's.
    """

    def __init__(self, tensors: dict[str, Array], preset: Preset, context: Context):
        self._w = {k.removeprefix("adaptor."): v.astype(float) for k, v in tensors.items() if k.startswith("adaptor.")}
        self.preset, self.context = preset, context
        self.scales = _Scales(context)
        self._layout = RowLayout(preset.window)
        self._trials = 0

    def set_latent(self, z: Array) -> None:
        """Take over new latents (trials, n, latent)."""
        if len(z) != self._trials:
            self._make_room(len(z))
        w = self._w
        z = z.reshape(-1, z.shape[-1]).T
        modulation = w["modulate.weight"] @ z + w["modulate.bias"][:, None]
        gain, shift = modulation.reshape(2, self.preset.depth, self.preset.hidden, -1)
        self._perceptron.modulate(1.0 + gain, shift)
        middle, half = COEFFICIENTS.T[..., None]
        raw = w["basis.weight"] @ z + w["basis.bias"][:, None]
        found = middle + half * np.tanh((raw - middle) / half)
        self._coefficients = self._layout.coefficients(found, self._unit)
        up, down = np.logaddexp(0.0, w["dead_zone.weight"] @ z + w["dead_zone.bias"][:, None]) * self._unit
        # A logistic function is a tanh: up * side - down * (1 - side) = middle + half * tanh.
        self._jump_middle, self._jump_half = 0.5 * (up - down), 0.5 * (up + down)

    def correction(self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array) -> Array:
        """The torque to add, (trials, n) [N·m]; the arguments are those of `adaptor_features`."""
        shape, nominal = nominal.shape, nominal.reshape(-1)
        rows, smooth, found, most = self._rows, self._smooth, self._found, self._most
        rows.fill(_ticks_first(q), _ticks_first(qd), _ticks_first(torque), nominal, ideal.reshape(-1), probes)
        np.multiply(self._perceptron(rows.inputs), self._unit, out=found)
        self._combined(self._coefficients, smooth)
        np.add(smooth, found, out=smooth)
        np.add(nominal, rows.known, out=found)
        np.add(found, smooth, out=found)
        np.multiply(found, self._per_jump, out=found)
        np.tanh(found, out=found)
        np.multiply(found, self._jump_half, out=found)
        np.add(found, self._jump_middle, out=found)
        np.add(found, smooth, out=found)
        # The most that a target of the robot's profile can need beyond the armature's middle.
        self._combined(self._limits, most)
        np.minimum(found, most, out=found)
        np.negative(most, out=most)
        np.maximum(found, most, out=found)
        return (found + rows.known).reshape(shape)

    def _combined(self, weights: Array, out: Array) -> None:
        """Sums of the basis (22, trials * n) with weights of the same shape."""
        np.multiply(self._rows.basis, weights, out=self._product)
        self._ones.dot(self._product, out=out)

    def _make_room(self, trials: int) -> None:
        """Make the arrays for so many robots."""
        n = self.context.robot.n
        self._rows = AdaptorRows(self.context, self.preset.window, trials)
        self._perceptron = FastPerceptron(self._w, self._layout.embedding(self._w), self.preset, n, trials)
        self._limits = self._layout.limits(self.context, trials)
        self._unit = np.tile(self.context.unit, trials)
        self._per_jump = np.full(trials * n, 0.5 / JUMP)
        self._smooth, self._found, self._most = np.empty((3, trials * n))
        self._product, self._ones = np.empty_like(self._rows.basis), np.ones(len(self._rows.basis))
        self._trials = trials


class _Scales:
    """What `adaptor_features` asks of a robot."""

    def __init__(self, context: Context):
        self.unit = context.unit
        self.load = context.load
        self.armature = context.robot.armature
        self.armature_range = context.armature_range
        self.armature_shift = context.armature_shift


def _ticks_first(window: Array) -> Array:
    """(trials, n, L) -> (L, trials * n); no copy where the ticks are kept that way, as `Recent` does."""
    return window.transpose(2, 0, 1).reshape(window.shape[-1], -1)
