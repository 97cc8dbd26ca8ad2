"""The history encoder in NumPy, one column of tokens at a time, with cached keys and values."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.preset import Preset
from retorque.work.array import Array

EPSILON = 1e-6


def normed(x: Array) -> Array:
    """Rows scaled to a mean square of one."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPSILON)


def silu(x: Array) -> Array:
    """x times its logistic function."""
    with np.errstate(over="ignore"):  # exp overflows to infinity, and x / infinity is the right limit
        return x / (1.0 + np.exp(-x))


class StreamingEncoder:
    """Latents (trials, n, latent) out of one patch a joint and column; the past is kept as keys and values.

    Weights are of single precision, sums of double: every engine gives the same latents.

    The newest `columns` columns are attended to; older ones are forgotten.

    Args:
        tensors: weights by name.
        preset: sizes.
        context: the robot's.
        trials: robots served at once.
    """

    remembered = ("_column", "_keys", "_values")

    def __init__(self, tensors: dict[str, Array], preset: Preset, context: Context, trials: int):
        self.preset, self.trials, self.n = preset, trials, context.robot.n
        self._w = {k.removeprefix("encoder."): v.astype(float) for k, v in tensors.items() if k.startswith("encoder.")}
        w = self._w
        self._base = w["joint_id.weight"][: self.n]
        if not preset.as_published:
            self._base = self._base + context.static @ w["static.weight"].T + w["static.bias"]
        self._size = preset.width // preset.heads
        half = self._size // 2
        self._frequency = np.exp(-np.log(1e3) * np.arange(half) / half).astype(np.float32).astype(float)  # as trained
        shape = (preset.layers, preset.columns, trials, self.n, preset.heads, self._size)
        self._keys = np.zeros(shape)
        self._values = np.zeros(shape)
        self.reset()

    def reset(self) -> None:
        """Forget the past."""
        self._column = 0

    def push(self, patch: Array) -> Array:
        """Take in the patch of a new column (trials, n, numbers); the latents (trials, n, latent)."""
        w = self._w
        x = self._linear(silu(self._linear(patch, "patch")), "token") + self._base
        for layer in range(self.preset.layers):
            x = self._layer(x, layer)
        self._column += 1
        return self._linear(normed(x) * w["norm"], "latent")

    def _linear(self, x: Array, name: str) -> Array:
        found = x @ self._w[f"{name}.weight"].T
        bias = self._w.get(f"{name}.bias")
        return found if bias is None else found + bias

    def _layer(self, x: Array, layer: int) -> Array:
        name = f"layers.{layer}"
        x = x + self._over_time(x, layer, f"{name}.time")
        if self.preset.factorised:
            x = x + self._over_joints(x, f"{name}.joint")
        hidden = silu(self._linear(normed(x) * self._w[f"{name}.norm"], f"{name}.up"))
        return x + self._linear(hidden, f"{name}.down")

    def _read(self, x: Array, name: str) -> Array:
        """Query, key and value, (3, trials, n, heads, size)."""
        parts = self._linear(normed(x) * self._w[f"{name}.norm"], f"{name}.read")
        return np.moveaxis(parts.reshape(self.trials, self.n, 3, self.preset.heads, self._size), 2, 0)

    def _over_time(self, x: Array, layer: int, name: str) -> Array:
        query, key, value = self._read(x, name)
        slot = self._column % self.preset.columns
        self._keys[layer, slot] = self._rotate(key)
        self._values[layer, slot] = value
        known = min(self._column + 1, self.preset.columns)
        keys, values = self._keys[layer, :known], self._values[layer, :known]
        query = self._rotate(query) / np.sqrt(self._size)
        if self.preset.factorised:
            weight = _softmax(np.einsum("tnhs,ctnhs->tnhc", query, keys))
            found = np.einsum("tnhc,ctnhs->tnhs", weight, values)
        else:
            score = np.einsum("tnhs,ctmhs->tnhcm", query, keys)
            weight = _softmax(score.reshape(*score.shape[:3], -1)).reshape(score.shape)
            found = np.einsum("tnhcm,ctmhs->tnhs", weight, values)
        return self._linear(found.reshape(x.shape), f"{name}.write")

    def _over_joints(self, x: Array, name: str) -> Array:
        query, key, value = self._read(x, name)
        weight = _softmax(np.einsum("tnhs,tmhs->thnm", query / np.sqrt(self._size), key))
        found = np.einsum("thnm,tmhs->tnhs", weight, value)
        return self._linear(found.reshape(x.shape), f"{name}.write")

    def _rotate(self, x: Array) -> Array:
        angle = self._column * self._frequency
        sin, cos = np.sin(angle), np.cos(angle)
        half = self._size // 2
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _softmax(score: Array) -> Array:
    raised = np.exp(score - score.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)
