"""The benches of compliance: rows, units, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retorque.bench.comply.comply_speed import Settings as SpeedSettings
from retorque.bench.comply.comply_speed import run as run_speed
from retorque.bench.comply.wrench import ESTIMATORS, Settings, _rows
from retorque.bench.comply.wrench_checks import phantom_moment
from retorque.cli.main import main


def test_every_estimator_reads_the_same_recording() -> None:
    settings = Settings(robots=("arx_x5",), trials=1, seed=1006)
    rows = _rows("arx_x5", "hold", 1.0, settings)
    assert [row.method for row in rows] == list(ESTIMATORS)
    for row in rows:
        assert row.metric == "force error" and row.unit == "N" and row.extra["signal"] == "best"
        assert 0.0 < row.mean < 5.0 and row.extra["norm"] > row.mean
    assert rows[0].mean < rows[-1].mean


def test_a_pure_force_has_no_phantom_moment() -> None:
    ours, theirs = phantom_moment(5, 1007)
    assert ours.mean < 0.05 < theirs.mean


def test_speed_rows(tmp_path: Path) -> None:
    report = run_speed(SpeedSettings(robots=("arx_x5",), ticks=100))
    content = json.loads(report.save(tmp_path / "speed.json").read_text())
    assert [row["method"] for row in content["rows"]][-1] == "hybrid servoing (OCHS)"
    assert all(row["mean"] > 0.0 and row["unit"] == "us" for row in content["rows"])


@pytest.mark.parametrize(
    "words",
    (
        ["wrench", "--robots", "panda"],
        ["wrench", "--estimators", "guess"],
        ["wrench", "--motions", "fast"],
        ["compliance", "--methods", "magic"],
        ["compliance", "--robot", "panda"],
        ["comply-speed", "--ticks", "1"],
    ),
)
def test_bad_options_end_in_one_sentence(words: list[str], capsys: pytest.CaptureFixture) -> None:
    assert main(["bench", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1
