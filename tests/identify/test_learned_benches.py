"""The benches of the learned models at a tiny scale, from recording to table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from retorque.bench.models import identification, impedance_tracking, inverse_dynamics
from retorque.identify.hybrid import motion_tracking
from retorque.work.errors import RetorqueError

SCALE = 0.002


def test_identification(tmp_path: Path) -> None:
    report = identification.run(identification.Settings(scale=SCALE, trials=1, thin=5, epochs=2))
    assert {row.method for row in report.rows} == {"sdp", "diffbary", "diffnea", "delan"}
    assert {row.metric for row in report.rows} == {"train NMSE", "validation NMSE", "test NMSE"}
    loss = {row.method: row.mean for row in report.rows if row.metric == "train NMSE"}
    assert loss["diffbary"] <= 1.02 * loss["sdp"]
    assert loss["diffnea"] <= 1.02 * loss["sdp"]
    report.save(tmp_path / "out.json")
    assert json.loads((tmp_path / "out.json").read_text())["rows"][0]["paper"] == 0.0070


def test_table_two_and_three_share_their_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = inverse_dynamics.Settings(scale=SCALE, epochs=2, folder=tmp_path, threads=1)
    report = inverse_dynamics.run(settings)
    assert {row.method for row in report.rows} == set(inverse_dynamics.PAPER)
    assert all(np.isfinite(row.mean) and row.mean > 0.0 for row in report.rows)
    files = sorted(path.name for path in (tmp_path / "trial-0").glob("*.safetensors"))
    assert len(files) == 8
    again = inverse_dynamics.run(settings)
    assert [row.mean for row in again.rows] == [row.mean for row in report.rows]
    for speed in motion_tracking.DURATIONS:
        monkeypatch.setitem(motion_tracking.DURATIONS, speed, 0.05)
    tracking = impedance_tracking.Settings(scale=SCALE, epochs=2, folder=tmp_path, threads=1, routes=1)
    rows = impedance_tracking.run(tracking).rows
    assert len(rows) == 8 * 3 * 2
    assert all(np.isfinite(row.mean) for row in rows)
    with pytest.raises(RetorqueError, match="other settings"):
        inverse_dynamics.run(inverse_dynamics.Settings(scale=SCALE, epochs=3, folder=tmp_path, threads=1))


def test_odd_settings_are_refused() -> None:
    with pytest.raises(RetorqueError, match="did you mean 'sdp'"):
        identification.run(identification.Settings(methods=("sdpp",)))
    with pytest.raises(RetorqueError, match="between 1 and"):
        inverse_dynamics.run(inverse_dynamics.Settings(trials=0))
    with pytest.raises(RetorqueError, match="between 1 and"):
        impedance_tracking.run(impedance_tracking.Settings(routes=0))


def test_min_jerk_starts_and_ends_at_rest() -> None:
    start, goal = np.zeros(2), np.array([1.0, -2.0])
    for time, place in ((0.0, start), (2.0, goal), (3.0, goal)):
        q, qd, qdd = motion_tracking.min_jerk(start, goal, time, 2.0)
        assert np.allclose(q, place) and np.allclose(qd, 0.0) and np.allclose(qdd, 0.0)
    before, now, after = (motion_tracking.min_jerk(start, goal, 0.7 + k * 1e-5, 2.0) for k in (-1, 0, 1))
    assert np.allclose((after[0] - before[0]) / 2e-5, now[1], atol=1e-6)
    assert np.allclose((after[1] - before[1]) / 2e-5, now[2], atol=1e-6)
