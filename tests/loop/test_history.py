"""The one ring of reports and the one rule for what is new, late, missing or not finite."""

import numpy as np
import pytest

from retorque.loop.clock import Clock
from retorque.loop.history import BRIDGED, ROOM, History
from retorque.robots.state import State

DT = 1e-3


def filled(values, ticks=5, times=None):
    """A history of reports (count, trials) that are the same in every number."""
    values = np.asarray(values, dtype=float)
    history = History(ticks, values.shape[1], 2, DT)
    for tick, row in enumerate(values):
        numbers = np.repeat(row[:, None], 2, axis=1)
        history.add(State(tick * DT if times is None else times[tick], numbers, numbers, numbers))
    return history


def test_the_last_rows_come_oldest_first_and_in_one_piece():
    rng = np.random.default_rng(0)
    history = History(5, 2, 3, DT)
    reports = rng.standard_normal((3 * ROOM, 3, 2, 3))
    for tick, report in enumerate(reports):
        assert history.add(State(tick * DT, *report))
        seen = [reports[max(tick - back, 0)] for back in range(4, -1, -1)]  # the first stands for all before it
        np.testing.assert_array_equal(history.last(5), np.swapaxes(seen, 0, 1))
        np.testing.assert_array_equal(history.last(2, back=1), np.swapaxes(seen[2:4], 0, 1))
    assert history.total == len(reports) and history.count == 5
    assert history.valid(5).all()


def test_a_late_or_repeated_report_is_left_out():
    history = filled([[1.0], [2.0]], times=[0.0, DT])
    for late in (DT, 0.0, np.nan, np.inf):
        assert not history.add(State(late, *np.full((3, 1, 2), 9.0)))
    assert history.total == 2 and np.all(history.last(1) == 2.0)


def test_missed_ticks_are_rows_that_are_interpolated_when_few():
    history = filled([[0.0], [3.0]], times=[0.0, 3 * DT])
    np.testing.assert_allclose(history.last(4)[0, :, 0, 0], [0.0, 1.0, 2.0, 3.0])
    assert history.valid(4).all()
    long = filled([[0.0], [3.0]], ticks=9, times=[0.0, (BRIDGED + 2) * DT])
    assert long.total == BRIDGED + 3 and not long.valid(BRIDGED + 2)[:-1].any()
    np.testing.assert_allclose(long.last(3)[0, :, 0, 0], [0.0, 0.0, 3.0])


def test_one_trials_bad_report_never_touches_another():
    values = np.arange(6.0)[:, None] * np.ones(3)
    broken = values.copy()
    broken[2:4, 1] = np.nan
    whole, spoilt = filled(values), filled(broken)
    np.testing.assert_array_equal(spoilt.last(5)[:, :, [0, 2]], whole.last(5)[:, :, [0, 2]])
    np.testing.assert_allclose(spoilt.last(5)[:, :, 1], whole.last(5)[:, :, 1])  # bridged
    for extra in range(6, 6 + BRIDGED + 1):
        row = np.full((3, 3, 2), float(extra))
        row[:, 1] = np.inf
        spoilt.add(State(extra * DT, *row))
    assert np.isfinite(spoilt.last(5)).all()
    assert not spoilt.valid(4)[:, 1].any() and spoilt.valid(4)[:, [0, 2]].all()


def test_reset_forgets():
    history = filled([[1.0], [2.0]])
    history.reset()
    history.add(State(0.0, *np.full((3, 1, 2), 7.0)))
    assert np.all(history.last(5) == 7.0) and history.count == 1


def test_stamps_that_jitter_are_all_in_order():
    rng = np.random.default_rng(1)
    clock = Clock(DT)
    steps = [clock.ticks_since(5.0 + tick * DT + rng.uniform(-4e-4, 4e-4)) for tick in range(2000)]
    assert sum(step != 1 for step in steps[50:]) == 0
    assert abs(sum(steps) - 2000) <= 1


@pytest.mark.parametrize("back", [2.0, 0.01, 1e4])
def test_a_clock_set_back_goes_on_after_a_few_reports(back):
    clock = Clock(DT)
    times = np.arange(100) * DT + 3e4
    steps = [clock.ticks_since(float(t)) for t in times]
    steps += [clock.ticks_since(float(t)) for t in times + 0.1 - back]
    assert steps[:100] == [1] * 100
    assert sum(steps[100:]) == 100 and steps[105:] == [1] * 95


def test_a_clock_that_repeats_or_is_not_finite_counts_nothing_and_hides_no_gap():
    clock = Clock(DT)
    assert [clock.ticks_since(t) for t in (0.0, DT, DT, np.nan, 0.0, 6 * DT)] == [1, 1, 0, 0, 0, 5]
