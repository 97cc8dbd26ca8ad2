"""Rows, intervals and files of a bench."""

from __future__ import annotations

import json

import numpy as np
from scipy import stats

from retorque.bench.report import Report, Row

FIELDS = {"robot": "panda", "method": "direct", "metric": "joint RMSE", "unit": "deg"}


def test_mean_spread_and_interval_are_students() -> None:
    values = np.random.default_rng(0).normal(3.0, 1.0, 25)
    row = Row.of(values, **FIELDS)
    interval = stats.t.interval(0.95, 24, loc=values.mean(), scale=values.std(ddof=1) / 5.0)
    np.testing.assert_allclose(row.ci95, interval)
    np.testing.assert_allclose((row.mean, row.std), (values.mean(), values.std(ddof=1)))
    single = Row.of([2.0], **FIELDS)
    assert (single.mean, single.std, single.ci95, single.trials) == (2.0, 0.0, (2.0, 2.0), 1)


def test_json_knows_no_nan_and_extras_do_not_hide_fields(tmp_path) -> None:
    row = Row.of([1.0, np.inf], **FIELDS, extra={"worst": np.float64(4.0), "mean": 99.0, "curve": np.arange(2)})
    Report(bench="b", settings={"seed": 0, "path": tmp_path}, rows=[row]).save(tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())["rows"][0]
    assert found["mean"] is None and found["worst"] == 4.0 and found["curve"] == [0, 1]
