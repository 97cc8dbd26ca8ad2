"""How much of a correction goes out: times as set, bounds, joints apart, trips."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retorque.loop.guard.fading import Fading
from retorque.loop.guard.supervisor_settings import SupervisorSettings

DT = 1e-3
SETTINGS = SupervisorSettings(enable_ramp=0.05, recovery=0.02, bridge=0.01, fade=0.04, trip_after=0.1, rearm=0.2)
YES, NO = np.ones(3, dtype=bool), np.zeros(3, dtype=bool)


def advance(
    made: Fading,
    seconds: float,
    trusted: np.ndarray = YES,
    out: np.ndarray = NO,
    limited: np.ndarray = NO,
    blind: np.ndarray = NO,
):
    for _ in range(round(seconds / DT)):
        made.advance(trusted, out, limited, blind)
    return made.gain.copy()


@pytest.fixture
def full() -> Fading:
    made = Fading((3,), DT, SETTINGS)
    advance(made, 0.06)
    return made


def test_a_correction_comes_in_over_its_ramp() -> None:
    made = Fading((3,), DT, SETTINGS)
    np.testing.assert_allclose(advance(made, 0.025), 0.5, atol=0.03)
    assert not made.full
    np.testing.assert_array_equal(advance(made, 0.026), 1.0)
    assert made.full


def test_doubt_is_bridged_and_then_fades(full: Fading) -> None:
    np.testing.assert_array_equal(advance(full, 0.01, trusted=NO), 1.0)
    np.testing.assert_allclose(advance(full, 0.02, trusted=NO), 0.5, atol=0.05)
    np.testing.assert_allclose(advance(full, 0.025, trusted=NO), 0.0, atol=1e-12)


def test_what_must_go_goes_at_once_and_comes_back_faster_than_it_first_came(full: Fading) -> None:
    gone = advance(full, 0.001, out=YES)
    assert np.all(gone < 1.0)
    np.testing.assert_allclose(advance(full, 0.04, out=YES), 0.0, atol=1e-12)
    back = advance(full, 0.01)
    assert np.all((back > 0.4) & (back < 0.6))  # half of the recovery, a fifth of the ramp


def test_a_blind_nominal_torque_is_gone_within_milliseconds(full: Fading) -> None:
    one = np.array([False, True, False])
    np.testing.assert_array_equal(advance(full, 0.002, blind=one), 1.0)  # the correction stays
    np.testing.assert_allclose(full.nominal_gain, [1.0, 0.6, 1.0], atol=0.05)
    assert not full.full
    advance(full, 0.01)
    np.testing.assert_allclose(full.nominal_gain, 1.0, atol=0.05)
    advance(full, 0.01)
    assert full.full
    advance(full, 0.005, blind=YES)
    np.testing.assert_allclose(full.nominal_gain, 0.0, atol=1e-12)
    advance(full, 0.01)
    np.testing.assert_allclose(full.nominal_gain, 0.5, atol=0.01)


def test_lone_doubts_cost_nothing(full: Fading) -> None:
    for _ in range(50):
        advance(full, 0.005, trusted=NO)
        assert np.all(advance(full, DT) == 1.0)


def test_joints_fade_apart_from_each_other(full: Fading) -> None:
    one = np.array([False, True, False])
    np.testing.assert_allclose(advance(full, 0.2, out=one), [1.0, 0.0, 1.0], atol=1e-12)
    assert not full.full


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(*[st.lists(st.booleans(), min_size=3, max_size=3).map(np.array)] * 3), min_size=20, max_size=120)
)
def test_no_sequence_of_verdicts_makes_it_jump_or_leave_its_bounds(verdicts: list[tuple[np.ndarray, ...]]) -> None:
    made = Fading((3,), DT, SETTINGS)
    before = made.gain.copy()
    for verdict in verdicts:
        made.advance(*verdict, verdict[0])
        assert np.all((made.nominal_gain >= 0.0) & (made.nominal_gain <= 1.0))
        assert np.all((made.gain >= 0.0) & (made.gain <= 1.0))
        assert np.max(np.abs(made.gain - before)) <= DT / SETTINGS.recovery + 1e-12
        before = made.gain.copy()


def test_a_joint_at_its_limit_is_tripped_and_armed_again(full: Fading) -> None:
    one = np.array([True, False, False])
    np.testing.assert_array_equal(advance(full, 0.09, limited=one), 1.0)
    advance(full, 0.02, limited=one)
    np.testing.assert_array_equal(full.tripped, one)
    np.testing.assert_allclose(advance(full, 0.05, limited=one), [0.0, 1.0, 1.0], atol=1e-12)
    advance(full, 0.19)
    assert full.tripped[0]
    advance(full, 0.02)
    assert not full.tripped.any()
    np.testing.assert_array_equal(advance(full, 0.05), 1.0)


def test_a_limit_in_every_second_tick_trips_too(full: Fading) -> None:
    for _ in range(300):
        advance(full, DT, limited=YES)
        advance(full, DT)
    assert np.all(full.tripped)


def test_reset_is_a_new_one_and_a_batch_is_each_of_its_robots(full: Fading) -> None:
    rng = np.random.default_rng(0)
    story = rng.uniform(size=(120, 3, 2, 3)) < np.array([0.7, 0.05, 0.3])[:, None, None]
    together, alone = Fading((2, 3), DT, SETTINGS), Fading((3,), DT, SETTINGS)
    advance(full, 0.3, out=YES, limited=YES)
    full.reset()
    for trusted, out, limited in story:
        together.advance(trusted, out, limited, out)
        for made in (alone, full):
            made.advance(trusted[1], out[1], limited[1], out[1])
        np.testing.assert_array_equal(together.nominal_gain[1], alone.nominal_gain)
        np.testing.assert_array_equal(together.gain[1], alone.gain)
        np.testing.assert_array_equal(full.gain, alone.gain)
        np.testing.assert_array_equal(full.tripped, alone.tripped)
