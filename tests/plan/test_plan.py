"""A plan in time: which row is now, and what is left of it later (algorithm 2)."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.plan.plan import Plan

H, DT, START = 5, 0.02, 1.0


def made() -> Plan:
    rows = np.arange(H, dtype=float)
    states = np.arange(H + 1, dtype=float)[:, None] * np.array([1.0, 10.0])
    gains = rows[:, None, None] * np.ones((1, 1, 2))
    return Plan(START, DT, states, rows[:, None] + 0.5, gains, cost=1.0, version=3)


def test_it_ends_after_its_steps() -> None:
    plan = made()
    assert plan.horizon == H
    assert plan.end == pytest.approx(START + H * DT)


@pytest.mark.parametrize(
    ("time", "row"),
    [(-5.0, 0), (START, 0), (START + 0.5 * DT, 0), (START + DT, 1), (START + 4.999 * DT, 4), (START + 99.0, 4)],
)
def test_a_time_falls_into_one_row_whatever_the_time(time: float, row: int) -> None:
    assert made().index(time) == row


def test_rounding_never_holds_a_row_twice() -> None:
    plan = made()
    assert [plan.index(START + k * DT) for k in range(H)] == list(range(H))
    assert [plan.index(START + k * DT - 1e-9) for k in range(1, H)] == list(range(1, H))


def test_shifted_by_nothing_it_is_itself() -> None:
    plan = made()
    for found, kept in zip(plan.shifted(START, H), (plan.states, plan.inputs, plan.gains), strict=True):
        np.testing.assert_array_equal(found, kept)
        assert not np.shares_memory(found, kept)


def test_what_is_over_is_dropped_and_nothing_is_invented_beyond_the_end() -> None:
    plan = made()
    states, inputs, gains = plan.shifted(START + 2 * DT, H)
    np.testing.assert_array_equal(states[:4], plan.states[2:])
    np.testing.assert_array_equal(states[4:], plan.states[[-1, -1]])
    np.testing.assert_array_equal(inputs[:, 0], [2.5, 3.5, 4.5, 0.0, 0.0])
    np.testing.assert_array_equal(gains[:, 0, 0], [2.0, 3.0, 4.0, 4.0, 4.0])


def test_a_longer_horizon_ends_at_rest() -> None:
    states, inputs, gains = made().shifted(START, 2 * H)
    assert (states.shape, inputs.shape, gains.shape) == ((2 * H + 1, 2), (2 * H, 1), (2 * H, 1, 2))
    np.testing.assert_array_equal(inputs[H:], 0.0)


@pytest.mark.parametrize("late", [1.0, 100.0])
def test_long_after_its_end_only_the_last_state_is_left(late: float) -> None:
    states, inputs, _ = made().shifted(START + late, H)
    np.testing.assert_array_equal(states, np.tile([5.0, 50.0], (H + 1, 1)))
    np.testing.assert_array_equal(inputs, 0.0)
