"""The filter's cut-off from the log's own spectra: above the motion, below the noise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from retorque.logs.signal import resample
from retorque.work.array import Array

ENERGY = 0.99
"""Part of the motion's energy, noise taken off, that lies below its bandwidth."""
ABOVE = 12.0
"""Cut-off over the motion's bandwidth: products of velocities double frequencies, and friction reverses within a
tenth of a period."""
CLEAR = 20.0
"""Power over the noise's at which a spectrum still belongs to the motion."""
SMOOTH = 5
"""Lines of a spectrum that are averaged."""
MOVED = 0.02
"""Range of positions of a joint that moved [rad or m]."""
FARTHEST = 50.0
"""Positions beyond this are corrupt [rad or m]."""
LOWEST, HIGHEST = 5.0, 50.0
"""Cut-offs that are chosen [Hz]."""
MOST = 40_000
"""Rows that are looked at."""
STEPS = (5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0)
"""The cut-offs to choose from [Hz]."""


def choose_cutoff(blocks: Iterator[tuple[Array, Array, Array, Array | None, Array]]) -> float:
    """The cut-off for a log [Hz], from blocks of rows, times, positions, velocities and torques."""
    times, positions, count = [], [], 0
    for _, time, position, _, _ in blocks:
        with np.errstate(invalid="ignore"):
            good = np.isfinite(time) & np.all(np.abs(position) < FARTHEST, axis=1)
        times.append(time[good])
        positions.append(position[good])
        count += len(time)
        if count >= MOST:
            break
    time, position = np.concatenate(times), np.concatenate(positions)
    order = np.unique(time, return_index=True)[1]
    time, position = time[order], position[order]
    if len(time) < 100:
        return LOWEST
    rate = 1.0 / float(np.median(np.diff(time)))
    cuts = np.flatnonzero(np.diff(time) > 8.0 / rate) + 1
    stretch = max(np.split(np.arange(len(time)), cuts), key=len)
    if len(stretch) < 100:
        return LOWEST
    _, even = resample(time[stretch], position[stretch], rate)
    wanted = ABOVE * bandwidth(even, rate)
    wanted = float(np.clip(wanted, LOWEST, min(HIGHEST, 0.2 * rate)))
    return min((step for step in STEPS if step <= max(0.2 * rate, LOWEST)), key=lambda step: abs(np.log(step / wanted)))


def bandwidth(position: Array, rate: float) -> float:
    """Frequency below which nearly all of the motion's kinetic energy lies, that of the liveliest joint [Hz].

    Args:
        position: (samples, n) evenly sampled.
        rate: [Hz]
    """
    samples = len(position)
    line = np.linspace(0.0, 1.0, samples)[:, None] * (position[-1] - position[0]) + position[0]
    window = np.hanning(samples)[:, None]
    power = np.square(np.abs(np.fft.rfft((position - line) * window, axis=0)))
    frequency = np.fft.rfftfreq(samples, 1.0 / rate)
    floor = np.median(power[frequency > 0.5 * frequency[-1]], axis=0)
    # a joint's own spectrum falls steeply: the first gap below the noise ends it
    smooth = np.array([np.convolve(column, np.ones(SMOOTH) / SMOOTH, mode="same") for column in power.T]).T
    found = [0.0]
    for j in np.flatnonzero(np.ptp(position, axis=0) > MOVED):
        under = np.flatnonzero((smooth[:, j] < CLEAR * floor[j]) & (frequency > 0.05))
        end = under[0] if len(under) else len(frequency)
        energy = np.cumsum(power[:end, j] * np.square(frequency[:end]))
        if end > 1 and energy[-1] > 0.0:
            found.append(float(frequency[np.searchsorted(energy / energy[-1], ENERGY)]))
    return max(found)
