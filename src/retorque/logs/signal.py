"""From raw samples to a motion: even times, zero-phase Butterworth filters, central differences, decimation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from retorque.logs.motion import Motion
from retorque.physics.presliding import slip
from retorque.work.array import Array
from retorque.work.errors import RetorqueError


@dataclass(frozen=True, kw_only=True)
class Filter:
    """How a log is smoothed before it is learnt from."""

    cutoff: float = 5.0
    """Cut-off of the zero-phase Butterworth filter for positions, velocities and torques alike [Hz]."""
    order: int = 4
    """Order of the filter in each direction."""
    decimate: int = 0
    """Keep one sample in this many; 0 keeps ten for each period of the cut-off frequency."""

    def __post_init__(self) -> None:
        if not self.cutoff > 0.0:
            raise RetorqueError(f"the cut-off frequency must be above zero, got {self.cutoff} Hz")
        if self.order < 1 or self.decimate < 0:
            raise RetorqueError("the filter's order must be at least 1 and the decimation at least 0")

    def stride(self, rate: float) -> int:
        """Keep one sample in this many at a sampling rate [Hz]."""
        return self.decimate or max(1, int(rate / (10.0 * self.cutoff)))

    def smooth(self, values: Array, rate: float) -> Array:
        """Filter along the first axis, forwards and backwards so that nothing is delayed."""
        if self.cutoff >= 0.45 * rate or len(values) < 4:
            return values
        # less the line between its ends, a signal continued oddly is periodic: the filter meets no edge
        part = np.linspace(0.0, 1.0, len(values)).reshape(-1, *[1] * (values.ndim - 1))
        line = values[:1] + part * (values[-1:] - values[:1])
        rest = values - line
        spectrum = np.fft.rfft(np.concatenate([rest, -rest[-2:0:-1]]), axis=0)
        gain = self.gain(np.linspace(0.0, 0.5 * rate, len(spectrum)), rate)
        smooth = np.fft.irfft(spectrum * gain.reshape(-1, *part.shape[1:]), 2 * len(rest) - 2, axis=0)
        return line + smooth[: len(values)]

    def gain(self, frequency: Array, rate: float) -> Array:
        """Gain of both directions together at frequencies [Hz]: the squared magnitude of the digital Butterworth."""
        with np.errstate(over="ignore"):
            bent = np.tan(np.pi * np.minimum(frequency / rate, 0.4999)) / np.tan(np.pi * self.cutoff / rate)
            return 1.0 / (1.0 + bent ** (2 * self.order))

    @property
    def settling(self) -> float:
        """Time at the ends of a record, and of a piece of it, within which the filter is not to be trusted [s]."""
        return 2.0 / self.cutoff


def resample(time: Array, values: Array, rate: float) -> tuple[Array, Array]:
    """Linear interpolation to even times at `rate` [Hz]; (samples,), (samples, columns)."""
    even = time[0] + np.arange(int((time[-1] - time[0]) * rate + 1e-6) + 1) / rate
    index = np.clip(np.searchsorted(time, even, side="right") - 1, 0, len(time) - 2)
    part = ((even - time[index]) / (time[index + 1] - time[index]))[:, None]
    return even, values[index] + part * (values[index + 1] - values[index])


def to_motion(
    time: Array,
    position: Array,
    velocity: Array | None,
    torque: Array,
    rate: float,
    settings: Filter,
    start: Array | None = None,
) -> tuple[Motion, Array]:
    """A motion from evenly sampled signals, and the unfiltered presliding states; nothing is decimated yet.

    Args:
        time: (samples,) even times [s].
        position: (samples, n) [rad].
        velocity: (samples, n) [rad/s], or None to differentiate positions.
        torque: (samples, n) [N·m].
        rate: sampling rate [Hz].
        settings: the filter.
        start: presliding state before the first sample.
    """
    q = settings.smooth(position, rate)
    qd = np.gradient(q, 1.0 / rate, axis=0) if velocity is None else settings.smooth(velocity, rate)
    wound = slip(q, start)
    motion = Motion(
        q=q,
        qd=qd,
        qdd=np.gradient(qd, 1.0 / rate, axis=0),
        torque=settings.smooth(torque, rate),
        time=time,
        # friction passes through the same filter as the torque that it is compared with
        slip=settings.smooth(wound.reshape(len(q), -1), rate).reshape(wound.shape),
    )
    return motion, wound
