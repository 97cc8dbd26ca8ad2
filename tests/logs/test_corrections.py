"""From recorded numbers to SI units at the joints: clocks, signs, offsets, coupled motors."""

from __future__ import annotations

import numpy as np
import pytest

from retorque.logs.columns import Columns
from retorque.logs.corrections import SECONDS, Corrections
from retorque.robots.robot import Robot
from retorque.work.errors import RetorqueError

ARM = Robot.load("z1")
N = ARM.n
RNG = np.random.default_rng(0)
TIME, Q, QD, EFFORT = np.arange(5.0), *RNG.normal(0.0, 1.0, (3, 5, N))


def test_without_a_mapping_nothing_changes() -> None:
    time, q, qd, effort = Corrections.of(None, ARM).apply(TIME, Q, QD, EFFORT)
    assert qd is not None
    for found, given in zip((time, q, qd, effort), (TIME, Q, QD, EFFORT), strict=True):
        np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("unit", SECONDS)
def test_clocks_in_every_unit(unit: str) -> None:
    given = TIME / SECONDS[unit]
    np.testing.assert_allclose(Corrections.of(Columns(time_unit=unit), ARM).apply(given, Q, QD, EFFORT)[0], TIME)


def test_a_scale_of_time_goes_before_its_unit() -> None:
    assert Corrections.of(Columns(time_unit="ms", time_scale=0.25), ARM).time == 0.25


def test_signs_scales_and_offsets_are_each_joints_own() -> None:
    sign = (1.0, -1.0, 1.0, 1.0, -1.0, 1.0)
    said = Columns(position_scale=sign, position_offset=0.5, effort_scale=(2.0,) * N)
    _, q, qd, effort = Corrections.of(said, ARM).apply(TIME, Q, QD, EFFORT)
    assert qd is not None
    np.testing.assert_allclose(q, Q * sign + 0.5)
    np.testing.assert_allclose(qd, QD * sign)  # a velocity turns round with its position, and has no offset
    np.testing.assert_allclose(effort, 2.0 * EFFORT)
    apart = Corrections.of(Columns(position_scale=sign, velocity_scale=3.0), ARM).apply(TIME, Q, QD, EFFORT)[2]
    assert apart is not None
    np.testing.assert_allclose(apart, 3.0 * QD)


def test_degrees_turn_joints_but_not_velocities_of_their_own_scale() -> None:
    _, q, qd, _ = Corrections.of(Columns(degrees=True), ARM).apply(TIME, Q, QD, EFFORT)
    assert qd is not None
    np.testing.assert_allclose(q, np.deg2rad(Q))
    np.testing.assert_allclose(qd, np.deg2rad(QD))


def test_coupled_motors_keep_their_power() -> None:
    matrix = np.eye(N)
    matrix[4:, 4:] = [[0.5, 0.5], [-0.5, 0.5]]
    said = Columns(coupling=tuple(map(tuple, matrix.tolist())))
    _, q, qd, effort = Corrections.of(said, ARM).apply(TIME, Q, QD, EFFORT)
    assert qd is not None
    np.testing.assert_allclose(q, Q @ matrix.T)
    np.testing.assert_allclose(np.sum(qd * effort, axis=1), np.sum(QD * EFFORT, axis=1))


def test_missing_velocities_stay_missing() -> None:
    assert Corrections.of(Columns(position_scale=2.0), ARM).apply(TIME, Q, None, EFFORT)[2] is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (Columns(time_unit="min"), "unit of time"),
        (Columns(time_scale=0.0), "above zero"),
        (Columns(position_scale=(1.0, 2.0)), "one for each joint"),
        (Columns(effort_scale=0.0), "none of them zero"),
        (Columns(position_offset=float("nan")), "finite"),
        (Columns(coupling=((1.0, 0.0), (0.0, 1.0))), "regular matrix"),
        (Columns(coupling=tuple((1.0,) * N for _ in range(N))), "regular matrix"),
    ],
)
def test_what_cannot_be_is_refused(said: Columns, words: str) -> None:
    with pytest.raises(RetorqueError, match=words):
        Corrections.of(said, ARM)
