"""The bench of payload against push: rows, shares, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retorque.bench.told import CASES, Settings, run
from retorque.work.errors import RetorqueError


def test_a_payload_and_a_push_are_told_on_a_tuning_seed(tmp_path: Path) -> None:
    report = run(Settings(trials=2, seed=1000, workers=1))
    report.save(tmp_path / "told.json")
    rows = json.loads((tmp_path / "told.json").read_text())["rows"]
    assert [row["world"] for row in rows] == list(CASES)
    assert {(row["method"], row["robot"], row["unit"]) for row in rows} == {("default", "panda", "%")}
    assert all(row["mean"] == 100.0 for row in rows)


def test_bad_input_is_refused() -> None:
    for wrong in ({"trials": 0}, {"robots": ()}, {"seed": -1}):
        with pytest.raises(RetorqueError):
            run(Settings(**wrong))
