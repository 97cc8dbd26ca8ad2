"""The adaptor's perceptron in NumPy, with every array of a tick kept."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.preset import Preset
from retorque.work.array import Array

EPSILON = 1e-6
"""Added to mean squares; the same as in training."""


class FastPerceptron:
    """One number for each joint out of its rows of inputs; what the latent changes is set beforehand.

    Arrays are (numbers, trials * n) and contiguous, in double precision, so that the compiled core says the same. What
    would be a call of its own is made part of a product: biases are a column of the weights, for a row of ones; the
    last layer and the head are one vector.

    Args:
        weights: by name.
        embed: weights of the embeddings (3 * embed, inputs), biases included.
        preset: sizes.
        joints: the robot's.
        trials: robots served at once.
    """

    def __init__(self, weights: dict[str, Array], embed: Array, preset: Preset, joints: int, trials: int):
        h, wide = preset.hidden, trials * joints
        self._embed = embed
        self._combine, self._summary = _with_bias(weights, "combine"), _with_bias(weights, "summary")
        *self._layers, last = (_with_bias(weights, f"layers.{index}") for index in range(preset.depth))
        head = weights["head.weight"][0]
        self._head = np.concatenate([head, [0.0], head @ last])
        self._head[-1] += weights["head.bias"][0]

        self._embedded_one = np.ones((len(embed) + 1, wide))
        self._embedded = self._embedded_one[:-1]
        self._mean_one = np.ones((h + 1, trials))
        self._mean = self._mean_one[:-1]
        self._mean_flat = self._mean.reshape(-1)
        self._shared = np.empty((h, trials))
        self._shared_wide = self._shared[:, :, None]
        self._per_joint = np.full(joints, 1.0 / joints)

        # What the layers add to, a row that makes its mean square larger by EPSILON, a layer's inputs, and ones: the
        # head reads them all.
        self._state = np.ones((2 * h + 2, wide))
        self._x_epsilon, self._inner_one = self._state[: h + 1], self._state[h + 1 :]
        self._x_epsilon[-1] = np.sqrt(EPSILON * h)
        self._x, self._inner = self._x_epsilon[:-1], self._inner_one[:-1]
        self._x_flat, self._x_trials = self._x.reshape(-1, joints), self._x.reshape(h, trials, joints)
        self._squares, self._step = np.empty_like(self._x_epsilon), np.empty_like(self._x)
        self._share = np.full(h + 1, 1.0 / h)
        self._scale, self._out = np.empty((2, wide))
        # The larger of an array and zeros of its shape is found three times as fast as that of an array and 0.0.
        self._zeros = np.zeros_like(self._embedded)
        self._mean_zeros, self._inner_zeros = np.zeros_like(self._mean), np.zeros_like(self._inner)
        self._modulation = [(self._inner_zeros, self._inner_zeros)] * preset.depth

    def modulate(self, gain: Array, shift: Array) -> None:
        """Gains and shifts of the layers, each (depth, hidden, trials * n)."""
        self._modulation = list(zip(gain, shift, strict=True))

    def __call__(self, inputs: Array) -> Array:
        """The output (trials * n) for inputs (inputs, trials * n); the array is used again by the next call."""
        x = self._x
        self._embed.dot(inputs, out=self._embedded)
        np.maximum(self._embedded, self._zeros, out=self._embedded)
        self._combine.dot(self._embedded_one, out=x)
        self._x_flat.dot(self._per_joint, out=self._mean_flat)
        np.maximum(self._mean, self._mean_zeros, out=self._mean)
        self._summary.dot(self._mean_one, out=self._shared)
        np.add(self._x_trials, self._shared_wide, out=self._x_trials)
        for weight, modulation in zip(self._layers, self._modulation, strict=False):
            self._normalise(*modulation)
            weight.dot(self._inner_one, out=self._step)
            np.add(x, self._step, out=x)
        self._normalise(*self._modulation[-1])
        return self._head.dot(self._state, out=self._out)

    def _normalise(self, gain: Array, shift: Array) -> None:
        """A layer's inputs: the state scaled to a mean square of one, modulated and rectified."""
        inner = self._inner
        np.multiply(self._x_epsilon, self._x_epsilon, out=self._squares)
        self._share.dot(self._squares, out=self._scale)
        np.sqrt(self._scale, out=self._scale)
        np.divide(self._x, self._scale, out=inner)
        np.multiply(inner, gain, out=inner)
        np.add(inner, shift, out=inner)
        np.maximum(inner, self._inner_zeros, out=inner)


def _with_bias(weights: dict[str, Array], name: str) -> Array:
    """Weights (out, in + 1) whose last column is the bias."""
    return np.column_stack([weights[f"{name}.weight"], weights[f"{name}.bias"]])
