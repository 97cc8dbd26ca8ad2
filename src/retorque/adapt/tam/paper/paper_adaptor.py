"""The paper's torque adaptor in NumPy (equation 2): windows, nominal torque and latent to an additive torque."""

from __future__ import annotations

import numpy as np

from retorque.adapt.tam.context import Context
from retorque.adapt.tam.encoder import silu
from retorque.adapt.tam.paper.paper_scales import CORRECTION, TORQUE, VARIANCE
from retorque.adapt.tam.preset import Preset
from retorque.work.array import Array


class PaperAdaptor:
    """Corrections (trials, n) [N·m]; none before the first latent, as at the paper's cold start.

    Args:
        tensors: weights by name.
        preset: sizes.
        context: the robot's; nothing of it is read, it is there so that adaptors are made alike.
    """

    def __init__(self, tensors: dict[str, Array], preset: Preset, context: Context):
        self._w = {k.removeprefix("adaptor."): v.astype(float) for k, v in tensors.items() if k.startswith("adaptor.")}
        self.preset = preset
        self._awake = False

    def set_latent(self, z: Array) -> None:
        """Take over new latents (trials, n, latent); zeros stand for none yet."""
        self._awake = bool(np.any(z))
        modulation = z @ self._w["modulate.weight"].T + self._w["modulate.bias"]
        gain, shift = np.split(modulation, 2, axis=-1)
        self._gain = np.split(1.0 + gain, self.preset.depth, axis=-1)
        self._shift = np.split(shift, self.preset.depth, axis=-1)

    def correction(self, q: Array, qd: Array, torque: Array, nominal: Array, ideal: Array, probes: Array) -> Array:
        """The torque to add (trials, n) for windows (trials, n, L), newest first; the last two are not looked at."""
        if not self._awake:
            return np.zeros_like(nominal)
        windows = (("position", q), ("velocity", qd), ("torque", torque / TORQUE))
        parts = [self._linear(silu(self._linear(x, f"{name}.0")), f"{name}.2") for name, x in windows]
        x = self._linear(np.concatenate([*parts, nominal[..., None] / TORQUE], axis=-1), "combine")
        x = x + self._linear(silu(x.mean(axis=-2, keepdims=True)), "summary")
        for index in range(self.preset.depth):
            inner = silu(layer_normed(x) * self._gain[index] + self._shift[index])
            x = x + self._linear(inner, f"layers.{index}")
        return CORRECTION * self._linear(x, "head")[..., 0]

    def _linear(self, x: Array, name: str) -> Array:
        return x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]


def layer_normed(x: Array) -> Array:
    """Rows of mean zero and variance one."""
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + VARIANCE)
