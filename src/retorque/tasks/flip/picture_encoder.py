"""Pictures to tokens by strided convolutions, in NumPy."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from retorque.work.array import Array

CHANNELS = (16, 32, 64)
"""Of the convolutions before the last, whose channels are a token's width."""
KERNEL, STRIDE, PADDING = 3, 2, 1
"""Of each."""


def token_grid(height: int, width: int) -> tuple[int, int]:
    """Rows and columns of tokens that a picture of so many pixels becomes."""
    for _ in range(len(CHANNELS) + 1):
        height, width = -(-height // STRIDE), -(-width // STRIDE)
    return height, width


def centred(pictures: Array) -> Array:
    """Bytes as numbers around zero, within ±1."""
    return pictures.astype(np.float32) / np.float32(127.5) - np.float32(1.0)


def picture_tokens(pictures: Array, weights: dict[str, Array]) -> Array:
    """(trials, tokens, width) of pictures (trials, height, width, 3) of bytes.

    Args:
        pictures: what is seen.
        weights: `eye.N.weight` (out, in, KERNEL, KERNEL) and `eye.N.bias` by name.
    """
    x = centred(pictures)
    for layer in range(len(CHANNELS) + 1):
        x = _convolve(x, weights[f"eye.{layer}.weight"], weights[f"eye.{layer}.bias"])
        if layer < len(CHANNELS):
            x = np.maximum(x, np.float32(0.0))
    return x.reshape(len(x), -1, x.shape[-1])


def _convolve(x: Array, weight: Array, bias: Array) -> Array:
    """(trials, rows, columns, out) from (trials, height, width, in)."""
    around = np.pad(x, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    windows = sliding_window_view(around, (KERNEL, KERNEL), axis=(1, 2))[:, ::STRIDE, ::STRIDE]
    flat = windows.reshape(*windows.shape[:3], -1)
    return flat @ weight.reshape(len(weight), -1).T + bias
