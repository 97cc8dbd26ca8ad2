"""How much a filtered log really says: neighbouring samples share their noise, so fewer count than were recorded."""

from __future__ import annotations

import numpy as np

from retorque.work.array import Array


def autocorrelation_time(residual: Array, longest: float = 0.05) -> Array:
    """Integrated autocorrelation time of each column of (samples, n), in samples, at least 1.

    1 + 2 sum of the autocorrelation up to the first window that is five times the result (Sokal's rule). Below zero
    correlation (differenced noise) counts as none, which errs on the side of larger error bars.

    Args:
        residual: evenly sampled residuals.
        longest: longest lag as a part of the record; beyond it a record says nothing about its own correlation.
    """
    samples = len(residual)
    if samples < 20:
        return np.ones(residual.shape[1])
    centred = residual - residual.mean(axis=0)
    length = 1 << (2 * samples - 1).bit_length()  # a power of two: a prime one takes ten times as long
    spectrum = np.fft.rfft(centred, length, axis=0)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[: max(2, int(longest * samples))]
    power = covariance[0]
    correlation = np.where(power > 0.0, covariance / np.where(power > 0.0, power, 1.0), 0.0)
    running = 1.0 + 2.0 * np.cumsum(correlation[1:], axis=0)  # (lags, n)
    lags = np.arange(1, len(running) + 1)[:, None]
    enough = lags >= 5.0 * running
    first = np.where(np.any(enough, axis=0), np.argmax(enough, axis=0), len(running) - 1)
    return np.maximum(1.0, running[first, np.arange(residual.shape[1])])
