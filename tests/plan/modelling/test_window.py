"""Windows of samples: gaps, values that are no numbers, clocks that run back."""

from __future__ import annotations

import numpy as np

from retorque.plan.modelling.window import Window


def filled(count: int, length: int = 6) -> Window:
    window = Window(length, 2, 1, 0.1)
    for k in range(count):
        assert window.add(0.1 * k, np.array([k, -k]), np.array([10.0 * k]))
    return window


def test_the_newest_samples_stay_with_the_inputs_between_them() -> None:
    samples = filled(20).samples()
    np.testing.assert_array_equal(samples.states[:, 0], np.arange(14, 20))
    np.testing.assert_array_equal(samples.inputs[:, 0], 10.0 * np.arange(15, 20))
    assert samples.number == 19 and samples.valid.all()
    np.testing.assert_array_equal(samples.last(3).inputs[:, 0], [180.0, 190.0])
    before = samples.before(2)
    assert before.number == 17 and before.states[-1, 0] == 17 and len(before.inputs) == 3


def test_what_is_no_number_keeps_its_place_without_weight() -> None:
    window = filled(3)
    assert not window.add(0.3, np.array([np.nan, 0.0]), np.array([1.0]))
    assert window.add(0.4, np.array([4.0, 4.0]), np.array([1.0]))
    samples = window.samples()
    np.testing.assert_array_equal(samples.valid, [True, True, True, False, True])
    assert np.all(np.isfinite(samples.states)) and window.skipped == 1


def test_a_clock_that_runs_back_brings_nothing_and_gaps_are_marked() -> None:
    window = filled(3)
    assert not window.add(0.1, np.zeros(2), np.zeros(1)) and window.count == 3
    assert window.add(0.4, np.full(2, 9.0), np.zeros(1))  # 0.3 was missed
    np.testing.assert_array_equal(window.samples().valid, [True, True, True, False, True])
    assert window.add(2.0, np.full(2, 7.0), np.zeros(1))  # too long ago
    assert window.count == 1 and window.samples().states[0, 0] == 7.0


def test_an_input_that_is_no_number_starts_anew() -> None:
    window = filled(3)
    assert window.add(0.3, np.ones(2), np.array([np.nan]))
    assert window.count == 1 and np.all(np.isfinite(window.samples().states))
