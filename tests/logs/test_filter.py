"""The zero-phase filter against SciPy's, and what any such filter must leave alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt, sosfreqz

from retorque.logs.cutoff import HIGHEST, LOWEST, bandwidth, choose_cutoff
from retorque.logs.signal import Filter, resample, to_motion

RATE = 500.0


@pytest.mark.parametrize("order", (1, 2, 4, 8))
@pytest.mark.parametrize("cutoff", (2.0, 20.0, 150.0))
def test_the_gain_is_that_of_a_butterworth_there_and_back(order: int, cutoff: float) -> None:
    frequency, response = sosfreqz(butter(order, cutoff, fs=RATE, output="sos"), worN=400, fs=RATE)
    found = Filter(cutoff=cutoff, order=order).gain(frequency, RATE)
    np.testing.assert_allclose(found, np.abs(response) ** 2, atol=1e-7)
    assert Filter(cutoff=cutoff, order=order).gain(np.array([cutoff]), RATE) == pytest.approx(0.5)


@pytest.mark.parametrize("cutoff", (5.0, 12.0, 40.0))
@pytest.mark.parametrize("samples", (2000, 2001))
def test_away_from_its_ends_a_record_is_filtered_as_scipy_does(cutoff: float, samples: int) -> None:
    values = np.cumsum(np.random.default_rng(0).standard_normal((samples, 3)), axis=0)
    ours = Filter(cutoff=cutoff).smooth(values, RATE)
    theirs = sosfiltfilt(butter(4, cutoff, fs=RATE, output="sos"), values, axis=0, padlen=900)
    inside = slice(int(RATE / cutoff * 3), -int(RATE / cutoff * 3))
    np.testing.assert_allclose(ours[inside], theirs[inside], atol=2e-3 * np.ptp(values))


@settings(max_examples=30, deadline=None)
@given(samples=st.integers(4, 200), cutoff=st.floats(1.0, 100.0), order=st.integers(1, 6), seed=st.integers(0, 999))
def test_filtering_is_linear_the_same_backwards_and_leaves_lines(
    samples: int, cutoff: float, order: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, samples, 2))
    smooth = lambda values: Filter(cutoff=cutoff, order=order).smooth(values, RATE)  # noqa: E731
    np.testing.assert_allclose(smooth(2.0 * a - 3.0 * b), 2.0 * smooth(a) - 3.0 * smooth(b), atol=1e-9)
    np.testing.assert_allclose(smooth(a[::-1]), smooth(a)[::-1], atol=1e-9)
    line = np.linspace(-3.0, 5.0, samples)[:, None] * np.ones(2)
    np.testing.assert_allclose(smooth(line), line, atol=1e-9)
    np.testing.assert_allclose(smooth(a)[[0, -1]], a[[0, -1]], atol=1e-9)  # its ends stay where they are


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 9999), count=st.integers(3, 80), rate=st.floats(5.0, 500.0))
def test_even_times_are_numpys_interpolation(seed: int, count: int, rate: float) -> None:
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(1e-3, 0.1, count)) + rng.uniform(-5.0, 5.0)
    values = rng.standard_normal((count, 2))
    even, found = resample(time, values, rate)
    np.testing.assert_allclose(np.diff(even), 1.0 / rate, rtol=1e-6)
    assert even[0] == time[0] and time[-1] - 1.0 / rate - 1e-6 <= even[-1] <= time[-1] + 1e-6
    wanted = np.stack([np.interp(even, time, column) for column in values.T], axis=1)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_torque_and_friction_states_pass_through_one_filter() -> None:
    time = np.arange(2000) / RATE
    q = 0.4 * np.sin(2.0 * time)[:, None]
    qd = 0.8 * np.cos(2.0 * time)[:, None]
    _, wound = to_motion(time, q, qd, q, RATE, Filter(cutoff=8.0))
    for k in range(wound.shape[-1]):
        motion, _ = to_motion(time, q, qd, wound[:, :, k], RATE, Filter(cutoff=8.0))
        assert motion.slip is not None
        np.testing.assert_allclose(motion.slip[:, :, k], motion.torque, atol=1e-9)


@pytest.mark.parametrize("frequency", (0.3, 1.0, 2.5))
@pytest.mark.parametrize("scale", (0.1, 1.0, 2.0))
def test_the_bandwidth_is_the_motions_whatever_its_size_offset_and_noise(frequency: float, scale: float) -> None:
    time = np.arange(0.0, 20.0, 1.0 / RATE)
    noise = 1e-4 * scale * np.random.default_rng(1).standard_normal((len(time), 2))
    q = scale * np.sin(2.0 * np.pi * frequency * time)[:, None] + noise + [5.0, -2.0]
    assert bandwidth(q, RATE) == pytest.approx(frequency, rel=0.25)
    chosen = choose_cutoff(iter([(np.arange(len(time)), time, q, None, q)]))
    assert LOWEST <= chosen <= HIGHEST and 5.0 * frequency <= chosen <= 25.0 * max(frequency, 0.2)


def test_a_robot_at_rest_has_no_bandwidth() -> None:
    noise = 1e-4 * np.random.default_rng(0).standard_normal((4000, 2))
    assert bandwidth(noise, RATE) == 0.0
    time = np.arange(4000) / RATE
    assert choose_cutoff(iter([(np.arange(4000), time, noise, None, noise)])) == LOWEST
