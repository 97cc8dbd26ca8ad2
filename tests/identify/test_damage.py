"""Logs damaged on purpose: each damage does what its name says, and nothing to the log it was made from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from retorque.identify.verdict.damage import Damage, RawLog, damages
from retorque.logs.log import Log
from retorque.robots.robot import Robot

ARM = Robot.load("z1")
N, RATE = ARM.n, 200.0
CAUSES = {
    *("scale", "dead channel", "time unit", "permutation", "sign", "time shift", "joint offset", "frozen channel"),
    *("zeros", "no motion", "wrong robot"),
}
ALL = {damage.name: damage for damage in damages(N, ("piper",))}


def well() -> RawLog:
    rng = np.random.default_rng(0)
    time = np.arange(4000) / RATE
    phase = time[:, None] * (1.0 + 0.1 * np.arange(N)) + np.arange(N)
    noise = 0.01 * rng.standard_normal((len(time), N))
    return RawLog(time=time, position=np.sin(phase), velocity=np.cos(phase), torque=3.0 * np.sin(phase) + noise)


LOG = well()


def spoilt(name: str) -> RawLog:
    return ALL[name].spoil(LOG)


def test_every_cause_has_its_damage() -> None:
    assert {damage.cause for damage in ALL.values()} == CAUSES and len(ALL) == len(damages(N, ("piper",)))
    assert ALL["card of piper"].robot == "piper" and spoilt("card of piper") is LOG


@pytest.mark.parametrize("damage", ALL.values(), ids=lambda damage: damage.name.replace(" ", "-"))
def test_a_damaged_log_is_still_a_log(damage: Damage) -> None:
    before = well()
    found = damage.spoil(LOG)
    rows = len(found.time)
    assert found.position.shape == found.torque.shape == (rows, N) and rows > 0.5 * len(LOG.time)
    assert found.velocity is None or found.velocity.shape == (rows, N)
    for name in ("time", "position", "velocity", "torque"):  # the log itself stays as it was
        np.testing.assert_array_equal(getattr(LOG, name), getattr(before, name))
    if not damage.robot:
        same = [
            getattr(found, name) is not None and np.array_equal(getattr(found, name), getattr(LOG, name))
            for name in ("time", "position", "velocity", "torque")
        ]
        assert not all(same)


def test_late_torques_are_those_of_another_moment() -> None:
    late, early = spoilt("torques 80 ms late"), spoilt("torques 80 ms early")
    rows = round(0.08 * RATE)
    np.testing.assert_array_equal(late.position, LOG.position[rows:])
    np.testing.assert_array_equal(late.torque, LOG.torque[:-rows])
    np.testing.assert_array_equal(early.torque, LOG.torque[rows:])
    np.testing.assert_array_equal(early.time, LOG.time[:-rows])


def test_exchanged_and_reversed_columns_are_where_they_should_be() -> None:
    backwards = spoilt("joints in reverse order")
    np.testing.assert_array_equal(backwards.position, LOG.position[:, ::-1])
    np.testing.assert_array_equal(backwards.torque, LOG.torque[:, ::-1])
    swapped = spoilt("torques of joints 2 and 3 exchanged")
    np.testing.assert_array_equal(swapped.torque[:, [2, 1]], LOG.torque[:, [1, 2]])
    np.testing.assert_array_equal(swapped.position, LOG.position)
    mirrored = spoilt("position of joint 3 reversed")
    assert mirrored.velocity is not None and LOG.velocity is not None
    np.testing.assert_array_equal(mirrored.velocity[:, 2], -LOG.velocity[:, 2])
    np.testing.assert_array_equal(mirrored.torque, LOG.torque)


def test_dead_frozen_turned_and_zeroed_channels() -> None:
    assert not np.any(spoilt("dead channel").torque[:, 2])
    assert np.ptp(spoilt("dead channel at its last value").torque[:, 1]) == 0.0
    frozen = spoilt("frozen encoder")
    assert np.ptp(frozen.position[:, 1]) == 0.0 and frozen.velocity is not None and np.ptp(frozen.velocity[:, 1]) > 1.0
    assert spoilt("frozen encoder, no velocities").velocity is None
    turned = spoilt("joint 2 off by 90 degrees").position - LOG.position
    np.testing.assert_allclose(turned[:, 1], 0.5 * np.pi)
    assert np.sum(np.all(spoilt("3 s of zeros").position == 0.0, axis=1)) == round(3.0 * RATE)
    assert np.sum(np.all(spoilt("3 s of zero torque").torque == 0.0, axis=1)) == round(3.0 * RATE)
    assert np.all(np.ptp(spoilt("no motion").position, axis=0) < 1e-3)


def test_a_log_outlives_its_file(tmp_path: Path) -> None:
    assert LOG.rate == pytest.approx(RATE)
    read = RawLog.of(Log((LOG.save(tmp_path / "log.npz"),), ARM))
    for name in ("time", "position", "velocity", "torque"):
        np.testing.assert_allclose(getattr(read, name), getattr(LOG, name))
    bare = spoilt("clock in ms, no velocities").save(tmp_path / "bare.npz")
    assert RawLog.of(Log((bare,), ARM)).velocity is None
