"""The filter's cut-off follows the motion, not the noise."""

from __future__ import annotations

import numpy as np

from retorque.logs.cutoff import HIGHEST, LOWEST, bandwidth, choose_cutoff
from retorque.logs.signal import Filter


def path(frequency: float, rate: float = 500.0, noise: float = 1e-4) -> tuple[np.ndarray, np.ndarray]:
    time = np.arange(0.0, 20.0, 1.0 / rate)
    rng = np.random.default_rng(0)
    phase = 2.0 * np.pi * frequency * time[:, None]
    q = 0.3 * np.sin(phase) + 0.5 * np.sin(0.31 * phase + 1.0) + noise * rng.standard_normal((len(time), 2))
    return time, q


def test_a_fast_motion_is_filtered_less() -> None:
    found = {}
    for frequency in (0.2, 1.0, 3.0):
        time, q = path(frequency)
        assert abs(bandwidth(q, 500.0) / frequency - 1.0) < 0.3
        found[frequency] = choose_cutoff(iter([(np.arange(len(time)), time, q, None, q)]))
    assert found[0.2] == LOWEST and 10.0 <= found[1.0] <= 15.0 and 30.0 <= found[3.0] <= HIGHEST


def test_corrupt_rows_and_short_logs() -> None:
    time, q = path(0.2)
    q[100] = np.nan
    q[200] = 1e300
    assert choose_cutoff(iter([(np.arange(len(time)), time, q, None, q)])) <= 6.0
    assert choose_cutoff(iter([(np.arange(20), time[:20], q[:20], None, q[:20])])) == LOWEST


def test_the_filter_is_a_butterworth_both_ways() -> None:
    from scipy.signal import butter, sosfiltfilt

    _, q = path(1.0, noise=0.01)
    want = sosfiltfilt(butter(4, 5.0, fs=500.0, output="sos"), q, axis=0, padlen=300)
    found = Filter(cutoff=5.0).smooth(q, 500.0)
    assert np.allclose(found[300:-300], want[300:-300], atol=1e-6)
    assert np.allclose(Filter().smooth(np.ones((50, 3)), 500.0), 1.0)
